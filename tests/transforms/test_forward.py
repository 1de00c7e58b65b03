"""`jvp`, `jacobian`, `hessian`, `hvp`: values, compositions, what they cost, what they refuse."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from treadle import (
    Tensor,
    Variable,
    checkpoint,
    cond,
    float64,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    no_grad,
    scan,
    vjp,
    vmap,
    while_loop,
)
from treadle.engine.realize import prepare
from treadle.graph.tree import flatten
from treadle.ir import ops
from treadle.ir.node import toposort

RANDOM = np.random.default_rng(41)
W = RANDOM.standard_normal((3, 5))
X = RANDOM.standard_normal(3)
V = RANDOM.standard_normal(3)


def close(found: Any, want: Any, tolerance: float = 1e-6) -> None:
    one, other = flatten(found), flatten(want)
    assert one[1] == other[1]
    for a, b in zip(one[0], other[0]):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def directional(f: Callable[..., Tensor], x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The derivative of f along v, by a central difference."""
    step = 1e-5
    return (f(Tensor(x + step * v)).numpy() - f(Tensor(x - step * v)).numpy()) / (2 * step)


def layer(x: Tensor) -> Tensor:
    return (x @ Tensor(W)).tanh()


def value(x: Tensor) -> Tensor:
    return (layer(x) ** 2).sum()


# ---- jvp -----------------------------------------------------------------------------------------
def test_value_and_change() -> None:
    y, change = jvp(layer, (Tensor(X),), (Tensor(V),))
    close(y, layer(Tensor(X)))
    close(change, directional(layer, X, V))


@dataclass
class Model:
    weight: Any
    bias: list[Any]


def test_trees() -> None:
    model = Model(Tensor(W), [Tensor(np.ones(5))])
    move = Model(Tensor(W * 0.5), [Tensor(np.full(5, 2.0))])

    def f(model: Model, x: Tensor) -> dict[str, Any]:
        y = x @ model.weight + model.bias[0]
        return {"y": y, "both": (y.sum(), y.argmax()), "x": x}

    outputs, changes = jvp(f, [model, Tensor(X)], [move, Tensor(V)])
    want = V @ W + X @ W * 0.5 + 2
    close(changes["y"], want)
    close(changes["both"][0], want.sum())
    assert changes["both"][1].tolist() == 0 and changes["both"][1].dtype is outputs["both"][1].dtype
    close(changes["x"], V)


def test_what_does_not_depend_has_zeros_and_aux_is_passed_on() -> None:
    y, change, aux = jvp(
        lambda x: (Tensor([1.0, 2.0]), {"seen": x, "name": "a"}),
        (Tensor(X),),
        (Tensor(V),),
        has_aux=True,
    )
    assert y.tolist() == [1.0, 2.0] and change.tolist() == [0.0, 0.0]
    close(aux["seen"], X)
    assert aux["name"] == "a"


def test_values_can_be_read_inside() -> None:
    def f(x: Tensor) -> Tensor:
        total = (x * x).sum()
        scale = 2.0 if total.item() > 0 else 3.0
        return total * total * scale

    _, change = jvp(f, (Tensor(X),), (Tensor(V),))
    close(change, 4 * (X @ X) * 2 * (X @ V))
    _, change = jvp(grad(f), (Tensor(X),), (Tensor(V),))
    close(change, 16 * X * (X @ V) + 8 * (X @ X) * V)
    for twice in (hessian(f), jacrev(jacrev(f)), jacfwd(jacfwd(f)), jacrev(jacfwd(f))):
        close(twice(Tensor(X)), 16 * np.outer(X, X) + 8 * (X @ X) * np.eye(3))
    y = Tensor(X, requires_grad=True)
    grad(f)(y).sum().backward()
    close(y.grad, 16 * X * X.sum() + 8 * (X @ X))


@pytest.mark.parametrize("wrap", [lambda f: f, jit, checkpoint], ids=["plain", "jit", "checkpoint"])
def test_an_argument_that_is_changed_inside(wrap: Any) -> None:
    """Derivatives are by the argument as it was given, and the caller's tensor keeps its value."""

    def f(x: Tensor) -> Tensor:
        x[0] = x[1] * 2
        x *= 3
        return (x * x).sum()

    f = wrap(f)
    given = Tensor([1.0, 2.0, 3.0])
    for _ in range(2):
        assert grad(f)(given).tolist() == [0.0, 180.0, 54.0]
        assert vjp(f, given)[1](Tensor(1.0))[0].tolist() == [0.0, 180.0, 54.0]
        assert jvp(f, (given,), (Tensor([5.0, 1.0, 0.0]),))[1].item() == 180.0
        assert jacobian(f, mode="forward")(given).tolist() == [0.0, 180.0, 54.0]
        assert hessian(f)(given).tolist() == [[0.0] * 3, [0.0, 90.0, 0.0], [0.0, 0.0, 18.0]]
    assert given.tolist() == [1.0, 2.0, 3.0]


def test_no_grad_outside_does_not_stop_tangents() -> None:
    with no_grad():
        close(jvp(value, (Tensor(X),), (Tensor(V),))[1], directional(value, X, V))
        close((grad(value)(Tensor(X)) * Tensor(V)).sum(), directional(value, X, V))
        close((jacfwd(value)(Tensor(X)) * Tensor(V)).sum(), directional(value, X, V))


COMPOSED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "jvp of grad": (
        lambda x, v: jvp(grad(value), (x,), (v,))[1],
        lambda x, v: grad(lambda x: (grad(value)(x) * v).sum())(x),
    ),
    "grad of jvp": (
        lambda x, v: grad(lambda x: jvp(value, (x,), (v,))[1])(x),
        lambda x, v: grad(lambda x: (grad(value)(x) * v).sum())(x),
    ),
    "jvp of jvp": (
        lambda x, v: jvp(lambda x: jvp(value, (x,), (v,))[1], (x,), (v,))[1],
        lambda x, v: (grad(lambda x: (grad(value)(x) * v).sum())(x) * v).sum(),
    ),
    "jvp of vjp": (
        lambda x, v: jvp(lambda x: vjp(value, x)[1](Tensor(1.0, dtype=float64))[0], (x,), (v,))[1],
        lambda x, v: hvp(value, (x,), (v,))[0],
    ),
    "jit of jvp": (
        lambda x, v: jit(lambda x, v: jvp(value, (x,), (v,))[1])(x, v),
        lambda x, v: (grad(value)(x) * v).sum(),
    ),
    "jvp of jit": (
        lambda x, v: jvp(jit(value), (x,), (v,))[1],
        lambda x, v: (grad(value)(x) * v).sum(),
    ),
    "jvp of checkpoint": (
        lambda x, v: jvp(grad(checkpoint(value)), (x,), (v,))[1],
        lambda x, v: hvp(value, (x,), (v,))[0],
    ),
    "jvp of cond": (
        lambda x, v: jvp(
            lambda x: cond(x.sum() > 99, layer, lambda x: layer(2 * x), x), (x,), (v,)
        )[1],
        lambda x, v: jvp(lambda x: layer(2 * x), (x,), (v,))[1],
    ),
    "jvp of while_loop": (
        lambda x, v: jvp(
            lambda x: while_loop(
                lambda c: c[1] < 3, lambda c: (c[0].sin(), c[1] + 1), (x, Tensor(0))
            )[0],
            (x,),
            (v,),
        )[1],
        lambda x, v: jvp(lambda x: x.sin().sin().sin(), (x,), (v,))[1],
    ),
    "jvp of grad of scan": (
        lambda x, v: jvp(
            grad(lambda x: scan(lambda c, e: ((c * e).sin(), c), x[0], x)[0]), (x,), (v,)
        )[1],
        lambda x, v: jvp(
            grad(lambda x: (((x[0] * x[0]).sin() * x[1]).sin() * x[2]).sin()), (x,), (v,)
        )[1],
    ),
    "jvp of indexing": (
        lambda x, v: jvp(lambda x: x[Tensor([0, 2, 0])] ** 2, (x,), (v,))[1],
        lambda x, v: (2 * x * v)[[0, 2, 0]],
    ),
    "jvp of an update": (
        lambda x, v: jvp(_updated, (x,), (v,))[1],
        lambda x, v: Tensor.stack([2 * v[0], 3 * v[0], 2 * v[2]]),
    ),
    "jvp with a draw": (
        lambda x, v: jvp(lambda x: x * Tensor.rand(3, generator_key=7), (x,), (v,))[1],
        lambda x, v: v * Tensor.rand(3, generator_key=7),
    ),
    "jacobian of jacobian": (
        lambda x, v: jacobian(jacobian(layer))(x),
        lambda x, v: jacfwd(jacfwd(layer))(x),
    ),
    "three times": (
        lambda x, v: jacfwd(hessian(value))(x),
        lambda x, v: jacrev(jacrev(jacrev(value)))(x),
    ),
    "vmap of hvp": (
        lambda x, v: vmap(lambda v: hvp(value, (x,), (v,))[0])(Tensor(np.eye(3))),
        lambda x, v: hessian(value)(x),
    ),
    "jit of hessian": (lambda x, v: jit(hessian(value))(x), lambda x, v: jacrev(jacrev(value))(x)),
}


def _updated(x: Tensor) -> Tensor:
    y = x * 2
    y[1] = x[0] * 3
    return y


@pytest.mark.parametrize("name", COMPOSED)
def test_compositions(name: str) -> None:
    composed, plain = COMPOSED[name]
    close(composed(Tensor(X), Tensor(V)), plain(Tensor(X), Tensor(V)))


# ---- jacobians -----------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_jacobian(mode: str) -> None:
    found = jacobian(layer, mode=mode)(Tensor(X))
    columns = [directional(layer, X, unit) for unit in np.eye(3)]
    close(found, np.stack(columns, axis=1))
    whole = jacobian(lambda w: Tensor(X) @ w, mode=mode)(Tensor(W))
    close(whole, np.einsum("i,jk->jik", X, np.eye(5)))
    scalar = jacobian(value, mode=mode)(Tensor(X))
    close(scalar, grad(value)(Tensor(X)))
    assert jacobian(lambda x: x * 0 + 1, mode=mode)(Tensor(2.0)).item() == 0


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_jacobians_of_trees(mode: str) -> None:
    def f(a: dict[str, Tensor], b: Tensor) -> tuple[Tensor, list[Tensor]]:
        return a["x"] * b, [a["y"].sum(), b.exp()]

    a = {"x": Tensor(X), "y": Tensor(W)}
    found = jacobian(f, argnums=(0, 1), mode=mode)(a, Tensor(2.0))
    assert flatten(found)[1] == flatten(((a, 0), [(a, 0), (a, 0)]))[1]
    close(found[0][0]["x"], 2 * np.eye(3))
    close(found[0][0]["y"], np.zeros((3, 3, 5)))
    close(found[0][1], X)
    close(found[1][0][0]["y"], np.ones((3, 5)))
    close(found[1][1][1], np.exp(2.0))
    alone = jacobian(f, mode=mode)(a, b=Tensor(2.0))
    close(alone[0]["x"], 2 * np.eye(3))


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_jacobian_of_a_symbolic_size(mode: str) -> None:
    size = Variable("N", 1, 8)
    for count in (2, 3):
        x = Tensor(X)[: size.bind(count)]
        close(
            jacobian(lambda x: x * x.sum(), mode=mode)(x),
            np.diag([X[:count].sum()] * count) + X[:count, None],
        )


def test_hessian_and_its_product() -> None:
    found = hessian(value)(Tensor(X))
    close(found, found.T)
    close(hvp(value, (Tensor(X),), (Tensor(V),))[0], found @ Tensor(V))
    tree = {"a": Tensor(X), "b": [Tensor(1.5)]}
    move = {"a": Tensor(V), "b": [Tensor(0.5)]}
    f = lambda t: (t["a"] ** 3).sum() * t["b"][0]  # noqa: E731
    (product,) = hvp(f, (tree,), (move,))
    close(product, {"a": 6 * X * V * 1.5 + 3 * X**2 * 0.5, "b": [Tensor((3 * X**2) @ V)]})


# ---- what it costs -------------------------------------------------------------------------------
def test_a_tangent_of_a_matrix_product_is_matrix_products() -> None:
    """No zmul, which no schedule would know for a contraction."""
    x, w = Tensor(np.ones((64, 48), np.float32)), Tensor(np.ones((48, 32), np.float32))
    _, change = jvp(lambda x, w: x @ w, (x, w), (x, w))
    assert ops.ZMUL not in {node.op for node in toposort(change.node)}


def test_a_jacobian_is_one_pass_over_all_rows() -> None:
    """As many kernels for 64 rows as for 2."""
    counts = []
    for size in (2, 64):
        x = Tensor(RANDOM.standard_normal(size).astype(np.float32))
        w = Tensor(RANDOM.standard_normal((size, size)).astype(np.float32))
        found = jacobian(lambda x, w=w: ((x @ w).tanh() @ w).tanh())(x)
        counts.append(sum(len(list(p.schedule.calls())) for p in prepare([found])))
    assert counts[0] == counts[1]


# ---- what is refused -----------------------------------------------------------------------------
def _x() -> Tensor:
    return Tensor(X)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "integer": (
        lambda: jvp(lambda i: i * 2, (Tensor([1, 2]),), (Tensor([1, 2]),)),
        TypeError,
        r"an argument is int64: bind it, as in lambda x: f\(x, indices\)",
    ),
    "number": (lambda: jvp(layer, (2.0,), (1.0,)), TypeError, "are tensors, not float: bind"),
    "no tuple": (
        lambda: jvp(layer, _x(), _x()),
        TypeError,
        r"primals is a tuple of the function's arguments, not a Tensor: write jvp\(f, \(x,\)",
    ),
    "tree": (
        lambda: jvp(layer, (_x(),), (_x(), _x())),
        ValueError,
        r"the primals are \(\*,\) and the tangents \(\*, \*\)",
    ),
    "shape": (
        lambda: jvp(layer, (_x(),), (Tensor(W),)),
        ValueError,
        r"has the shape of its primal, \(3,\), not \(3, 5\)",
    ),
    "dtype": (
        lambda: jvp(layer, (_x(),), (Tensor([1.0, 2.0, 3.0]),)),
        TypeError,
        r"the dtype of its primal, float64, not float32: cast it: .cast\(float64\)",
    ),
    "no tensor": (lambda: jvp(lambda x: 3, (_x(),), (_x(),)), TypeError, "it returned an int"),
    "a tangent that is none": (
        lambda: jvp(layer, (_x(),), (X,)),
        TypeError,
        "tangents are tensors",
    ),
    "aux": (
        lambda: jvp(layer, (_x(),), (_x(),), has_aux=True),
        TypeError,
        r"with has_aux the function must return \(result, aux\)",
    ),
    "mode": (lambda: jacobian(layer, mode="both"), ValueError, 'is "reverse" or "forward", not'),
    "integer result": (
        lambda: jacobian(lambda x: x.argmax())(_x()),
        TypeError,
        "only floating-point results have a derivative, not int64",
    ),
    "argnums": (lambda: jacobian(layer, 1)(_x()), TypeError, "there is no argument 1: 1 was given"),
    "hessian of many": (
        lambda: hvp(layer, (_x(),), (_x(),)),
        TypeError,
        "must return one floating number",
    ),
    "hvp": (lambda: hvp(value, _x(), _x()), TypeError, r"write hvp\(f, \(x,\), \(t,\)\)"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()
