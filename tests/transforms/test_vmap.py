"""`vmap`: against a loop over examples, in every composition, and what it refuses."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import (
    Tensor,
    Variable,
    explain,
    float32,
    grad,
    jacobian,
    jit,
    jvp,
    nn,
    scan,
    uint64,
    value_and_grad,
    vmap,
)
from treadle.engine.realize import prepare
from treadle.graph.tree import flatten

RANDOM = np.random.default_rng(31)
W = RANDOM.standard_normal((3, 5)).astype(np.float32)
XS = RANDOM.standard_normal((4, 3)).astype(np.float32)


def tensor(*shape: int) -> Tensor:
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def close(found: Any, want: Any, tolerance: float = 1e-5) -> None:
    one, other = flatten(found), flatten(want)
    assert one[1] == other[1]
    for a, b in zip(one[0], other[0]):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def loop(f: Callable[..., Tensor], xs: Tensor, *rest: Any) -> Tensor:
    return Tensor.stack([f(x, *rest) for x in xs])


def value(x: Tensor, w: Tensor) -> Tensor:
    return ((x @ w).tanh() ** 2).sum()


# ---- axes and trees ------------------------------------------------------------------------------
@settings(deadline=None, max_examples=25)
@given(
    ins=st.tuples(st.sampled_from([None, 0, 1, 2, -1]), st.sampled_from([None, 0, 1, -2])),
    out=st.sampled_from([0, 1, 2, -1]),
)
def test_axes(ins: tuple[int | None, int | None], out: int) -> None:
    if ins == (None, None):
        return
    a, b = tensor(4, 4, 4), tensor(4, 4, 4)
    found = vmap(lambda x, y: x.sin() * y.exp(), in_axes=ins, out_axes=out)(
        a[0] if ins[0] is None else a, b[0] if ins[1] is None else b
    )
    pick = lambda t, axis, n: t[0] if axis is None else t.movedim(axis, 0)[n]  # noqa: E731
    rows = [pick(a, ins[0], n).sin() * pick(b, ins[1], n).exp() for n in range(4)]
    close(found, Tensor.stack(rows, dim=out))


class Pair(NamedTuple):
    first: Any
    second: Any


def test_trees_of_arguments_axes_and_results() -> None:
    data = {"a": Tensor(XS), "b": [Tensor(W), 3]}
    axes = ({"a": 0, "b": [1, None]},)
    found = vmap(
        lambda d: Pair({"p": d["a"].sum()}, (d["b"][0] * d["b"][1],)),
        in_axes=({"a": 0, "b": [None, None]},),
        out_axes=Pair(0, (None,)),
    )(data)
    close(found, Pair({"p": Tensor(XS.sum(1))}, (Tensor(W * 3),)))
    with pytest.raises(ValueError, match=r"4 along axis 0 of shape .4, 3., 5 along axis 1"):
        vmap(lambda d: d["a"], in_axes=axes)(data)


def test_spellings_of_pytorch_and_named_arguments() -> None:
    x = Tensor(XS)
    assert vmap(lambda a: a, in_dims=1, out_dims=1)(x).shape == (4, 3)
    close(vmap(lambda a, b: a + b)(x, b=x), 2 * XS)
    with pytest.raises(TypeError, match="in_axes and in_dims are one argument"):
        vmap(lambda a: a, in_axes=1, in_dims=1)


def test_a_result_that_no_example_changes() -> None:
    x = Tensor(XS)
    found = vmap(lambda a: (a, Tensor(2.0)))(x)[1]
    assert found.tolist() == [2.0] * 4
    assert vmap(lambda a: (a, Tensor(2.0)), out_axes=(0, None))(x)[1].item() == 2.0


def test_no_examples_and_one() -> None:
    close(vmap(value, (0, None))(Tensor(XS[:0]), Tensor(W)), np.zeros(0))
    close(vmap(value, (0, None))(Tensor(XS[:1]), Tensor(W)), value(Tensor(XS[0]), Tensor(W))[None])


def test_symbolic_number_of_examples() -> None:
    size = Variable("B", 1, 4)
    for count in (2, 4):
        part = Tensor(XS)[: size.bind(count)]
        for f in (value, grad(value)):
            mapped = vmap(f, (0, None))
            close(mapped(part, Tensor(W)), mapped(Tensor(XS), Tensor(W))[:count])


# ---- composition ---------------------------------------------------------------------------------
def test_per_example_gradients_and_the_gradient_of_a_batch() -> None:
    x, w = Tensor(XS), Tensor(W)
    by_w = grad(value, argnums=1)
    close(vmap(by_w, (0, None))(x, w), loop(by_w, x, w))
    close(grad(lambda w: vmap(value, (0, None))(x, w).sum())(w), loop(by_w, x, w).sum(0))
    close(vmap(value_and_grad(value), (0, None))(x, w)[0], loop(value, x, w))


COMPOSED: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "vmap of jvp": (
        lambda x, w: vmap(lambda x: jvp(lambda x: value(x, w), (x,), (x,))[1])(x),
        lambda x, w: loop(lambda x: (grad(value)(x, w) * x).sum(), x),
    ),
    "jvp of vmap": (
        lambda x, w: jvp(lambda x: vmap(value, (0, None))(x, w), (x,), (x,))[1],
        lambda x, w: loop(lambda x: (grad(value)(x, w) * x).sum(), x),
    ),
    "vmap of grad of grad": (
        lambda x, w: vmap(grad(lambda x: (grad(value)(x, w) * x).sum()))(x),
        lambda x, w: loop(grad(lambda x: (grad(value)(x, w) * x).sum()), x),
    ),
    "vmap of jacobian": (
        lambda x, w: vmap(jacobian(lambda x: (x @ w).tanh()))(x),
        lambda x, w: loop(jacobian(lambda x: (x @ w).tanh()), x),
    ),
    "vmap of vmap": (
        lambda x, w: vmap(vmap(value, (None, 0)), (0, None))(x, Tensor.stack([w, 2 * w])),
        lambda x, w: loop(lambda x: Tensor.stack([value(x, w), value(x, 2 * w)]), x),
    ),
    "vmap of jit": (
        lambda x, w: vmap(jit(value), (0, None))(x, w),
        lambda x, w: loop(value, x, w),
    ),
    "jit of vmap of grad": (
        lambda x, w: jit(vmap(grad(value), (0, None)))(x, w),
        lambda x, w: loop(grad(value), x, w),
    ),
    "vmap of scan": (
        lambda x, w: vmap(lambda x: scan(lambda c, e: ((c * e).sin() + e, c), x[0], x)[1])(x),
        lambda x, w: loop(lambda x: scan(lambda c, e: ((c * e).sin() + e, c), x[0], x)[1], x),
    ),
    "scan of vmap": (
        lambda x, w: scan(lambda c, e: (vmap(lambda a, b: a * b + 1)(c, e), c), x[0], x)[1],
        lambda x, w: scan(lambda c, e: (c * e + 1, c), x[0], x)[1],
    ),
    "vmap of grad of scan": (
        lambda x, w: vmap(grad(lambda x: scan(lambda c, e: ((c * e).sin(), c), x[0], x)[0]))(x),
        lambda x, w: loop(grad(lambda x: scan(lambda c, e: ((c * e).sin(), c), x[0], x)[0]), x),
    ),
    "vmap of an update": (
        lambda x, w: vmap(_updated)(x),
        lambda x, w: loop(_updated, x),
    ),
}


def _updated(x: Tensor) -> Tensor:
    y = x * 2
    y[1] = x[0] * 3
    y += 1
    return y


@pytest.mark.parametrize("name", COMPOSED)
def test_compositions(name: str) -> None:
    composed, plain = COMPOSED[name]
    close(composed(Tensor(XS), Tensor(W)), plain(Tensor(XS), Tensor(W)))


def test_indexing_by_examples() -> None:
    table, ids = tensor(10, 4), Tensor([[1, 2], [9, 1], [-1, 1]])
    found = vmap(lambda i: table[i].sum(0))(ids)
    close(found, table.numpy()[ids.numpy()].sum(1))
    close(vmap(lambda x, i: x[i])(Tensor(XS), Tensor([0, 2, 1, 0])), XS[range(4), [0, 2, 1, 0]])
    derived = grad(lambda t: vmap(lambda i: t[i].sum(0))(ids).sum())(table)
    want = np.zeros((10, 4))
    np.add.at(want, ids.numpy(), 1.0)
    close(derived, want)
    with pytest.raises(IndexError, match=r"index 11 is out of range for an axis of size 10"):
        vmap(lambda i: table[i])(Tensor([1, 11])).numpy()


def test_requires_grad_and_backward_inside() -> None:
    def inner(x: Tensor) -> Tensor:
        own = (x * 2).detach().requires_grad_()
        (own**3).sum().backward()
        assert own.grad is not None
        return own.grad

    close(vmap(inner)(Tensor(XS)), 3 * (2 * XS) ** 2)


def test_a_gradient_flows_back_through_vmap() -> None:
    w = Tensor(W, requires_grad=True)
    vmap(value, (0, None))(Tensor(XS), w).sum().backward()
    close(w.grad, loop(grad(value, 1), Tensor(XS), Tensor(W)).sum(0))


# ---- programs ------------------------------------------------------------------------------------
def test_a_batch_times_one_matrix_is_one_matrix_product() -> None:
    x, w = tensor(64, 32, 48), tensor(48, 40)
    y = vmap(lambda x: (x @ w).relu())(x)
    (program,) = prepare([y])
    assert len(list(program.schedule.calls())) == 1
    shown = str(explain(y))
    assert "fuse i, j: ij" in shown and "< 2048" in shown  # the rows of all examples: 64 * 32
    close(y, np.maximum(x.numpy() @ w.numpy(), 0), 1e-4)


def test_as_many_kernels_as_the_batch_written_by_hand() -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
    x = tensor(128, 16)
    by_hand, mapped = model(x).softmax(-1), vmap(lambda x: model(x).softmax(-1))(x)
    counts = [len(list(prepare([y])[-1].schedule.calls())) for y in (by_hand, mapped)]
    assert counts[0] == counts[1]
    close(mapped.detach(), by_hand.detach())


# ---- randomness ----------------------------------------------------------------------------------
def noisy(x: Tensor) -> Tensor:
    return x * 0 + Tensor.rand(3)


def test_a_random_draw_raises_and_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r'randomness="different".*"same".*map over keys'):
        vmap(noisy)(Tensor(XS))
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(nn.Dropout(0.5))(Tensor(XS))


def test_same_and_different_draws() -> None:
    Tensor.manual_seed(5)
    same = vmap(noisy, randomness="same")(Tensor(XS)).numpy()
    Tensor.manual_seed(5)
    np.testing.assert_array_equal(same, np.broadcast_to(Tensor.rand(3).numpy(), (4, 3)))
    Tensor.manual_seed(5)
    different = vmap(noisy, randomness="different")(Tensor(XS)).numpy()
    assert len(np.unique(different)) == 12
    Tensor.manual_seed(5)
    captured = jit(vmap(noisy, randomness="different"))
    np.testing.assert_array_equal(captured(Tensor(XS)).numpy(), different)
    assert not np.array_equal(captured(Tensor(XS)).numpy(), different)


def test_draws_in_two_maps() -> None:
    def drawn(outer: str, inner: str) -> np.ndarray:
        f = vmap(lambda x: x * 0 + Tensor.rand(), randomness=inner)
        return vmap(f, randomness=outer)(Tensor(XS)).numpy()

    assert len(np.unique(drawn("different", "different"))) == 12
    assert len(np.unique(drawn("same", "different"))) == 3
    assert len(np.unique(drawn("different", "same"))) == 4
    with pytest.raises(RuntimeError, match="randomness"):
        drawn("different", "error")


def test_many_different_draws_are_uniform() -> None:
    x = Tensor.zeros(64, 100)
    drawn = vmap(lambda x: x + Tensor.rand(100), randomness="different")(x).numpy()
    assert abs(drawn.mean() - 0.5) < 0.02
    assert abs(np.corrcoef(drawn).mean()) < 0.05


def test_keys() -> None:
    keys = Tensor([1, 2, 3], dtype=uint64)
    found = vmap(lambda k: Tensor.rand(4, generator_key=k))(keys).numpy()
    for key, row in zip((1, 2, 3), found):
        np.testing.assert_array_equal(row, Tensor.rand(4, generator_key=key).numpy())


# ---- what is refused -----------------------------------------------------------------------------
def test_values_cannot_be_read() -> None:
    x = Tensor(XS)
    for read in (
        lambda a: a * a.sum().item(),
        lambda a: a if a.sum() > 0 else -a,
        grad(lambda a: a.sum() * a[0].item()),
    ):
        with pytest.raises(RuntimeError, match="inside a function given to vmap cannot be read"):
            vmap(read)(x)
    other = Tensor([2.0])
    close(vmap(lambda a: a * other.item())(x), 2 * XS)  # one from outside can


def test_a_value_that_leaks_belongs_to_the_function() -> None:
    kept: list[Tensor] = []

    def f(x: Tensor) -> Tensor:
        kept.append(x * 2)
        return x

    weight = Tensor(np.ones(3, np.float32))
    vmap(f)(Tensor(XS)).numpy()
    kept.append(kept[0] + weight)
    weight += 1
    weight.realize()  # what is left over does not keep it from its new value
    for leaked in kept:
        with pytest.raises(RuntimeError, match="belongs to the function given to vmap"):
            leaked.numpy()
        with pytest.raises(RuntimeError, match="belongs to the function given to vmap"):
            jit(lambda y, leaked=leaked: y + leaked)(Tensor(XS[0]))
    kept.clear()

    def step(c: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        kept.append(c + x)
        return c, x

    scan(step, Tensor(0.0), Tensor(XS[0]))
    with pytest.raises(RuntimeError, match="belongs to the function given to scan"):
        kept[0].item()


def _changes() -> dict[str, Callable[[Tensor], Tensor]]:
    total = Tensor(np.zeros(3, np.float32))
    weight = Tensor(np.ones(3, np.float32), requires_grad=True)
    weight.grad = Tensor(np.ones(3, np.float32))
    optimizer = nn.optim.SGD([weight], lr=0.1)
    norm = nn.BatchNorm1d(3)

    def put(x: Tensor) -> Tensor:
        total[0] = x[0]
        return x

    def backward(x: Tensor) -> Tensor:
        (weight * x).sum().backward()
        return x

    def step(x: Tensor) -> Tensor:
        optimizer.step()
        return x

    return {
        "assign": lambda x: total.assign(total + x),
        "in place": lambda x: total.add_(x),
        "part": put,
        "backward": backward,
        "optimizer": step,
        "statistics": lambda x: norm(x[None].expand(2, 3))[0],
    }


@pytest.mark.parametrize("name", _changes())
def test_changes_of_what_is_outside(name: str) -> None:
    change = _changes()[name]
    with pytest.raises(RuntimeError, match=r"test_vmap.py:\d+ changes a tensor .* every example"):
        vmap(change)(Tensor(XS))
    with pytest.raises(RuntimeError, match="from outside of the function given to scan"):
        scan(lambda c, x: (c, change(x)), Tensor(0.0), Tensor(XS))
    with pytest.raises(RuntimeError, match="every example"):
        jit(vmap(change))(Tensor(XS))


def test_a_change_that_was_waiting_is_done_first() -> None:
    weight = Tensor(np.ones(3, np.float32))
    weight.realize()
    weight += 1
    other = Tensor([3.0])
    close(vmap(lambda x: x * weight * other.item())(Tensor(XS)), XS * 6)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no tensor": (lambda: vmap(lambda a: 3)(Tensor(XS)), TypeError, "it returned an int"),
    "unequal": (
        lambda: vmap(lambda a, b: a)(Tensor(XS), Tensor(W)),
        ValueError,
        r"unequal numbers of examples: 4 along axis 0 of shape \(4, 3\), 3 along axis 0",
    ),
    "range": (
        lambda: vmap(lambda a: a, in_axes=2)(Tensor(XS)),
        ValueError,
        r"axis 2 of a tensor of shape \(4, 3\), which has 2 dimensions",
    ),
    "0-d": (
        lambda: vmap(lambda a: a)(Tensor(1.0)),
        ValueError,
        r"axis 0 of a tensor of shape \(\)",
    ),
    "out range": (
        lambda: vmap(lambda a: a, out_axes=2)(Tensor(XS)),
        ValueError,
        "out_axes says axis 2 of a result that has 2 dimensions",
    ),
    "out none": (
        lambda: vmap(lambda a: a, out_axes=None)(Tensor(XS)),
        ValueError,
        "out_axes says None for a result that differs",
    ),
    "number": (lambda: vmap(lambda a, b: a)(Tensor(XS), 2.0), TypeError, r"in_axes=\(0, None\)"),
    "named": (
        lambda: vmap(lambda a, training: a)(Tensor(XS), training=True),
        TypeError,
        r"functools.partial\(f, name=value\)",
    ),
    "nothing": (lambda: vmap(lambda a: a, None)(Tensor(XS)), ValueError, "an axis of at least one"),
    "count": (
        lambda: vmap(lambda a: a, (0, 0))(Tensor(XS)),
        ValueError,
        "in_axes has 2 entries for 1 arguments",
    ),
    "tree": (
        lambda: vmap(lambda a: a["x"], ({"y": 0},))({"x": Tensor(XS)}),
        ValueError,
        r"in_axes has \{'y': \*\} where there is \{'x': \*\}",
    ),
    "axis": (lambda: vmap(lambda a: a, "0")(Tensor(XS)), TypeError, "made of ints and None"),
    "randomness": (
        lambda: vmap(lambda a: a, randomness="no"),
        ValueError,
        "error, same, different",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


def test_bound_arguments() -> None:
    close(vmap(partial(lambda a, scale: a * scale, scale=2.0))(Tensor(XS)), 2 * XS)
    close(vmap(lambda a, b: a * b, (0, None))(XS, 2.0), 2 * XS)  # NumPy arrays are tensors, too
    assert vmap(lambda a: a)(Tensor(XS)).dtype is float32


@pytest.mark.parametrize("device", ["C", "INTERP"])
def test_devices(device: str) -> None:
    try:
        x = Tensor(XS, device=device)
        x.numpy()
    except Exception as error:
        pytest.skip(str(error))
    y = vmap(lambda a: a * np.float32(2) + np.ones(3, np.float32))(x)
    assert y.device == device
    close(y, XS * 2 + 1)
