"""`vjp`, `checkpoint`, `stop_gradient`, `custom_vjp`, `custom_jvp`: values, composition, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from treadle import (
    Tensor,
    checkpoint,
    custom_jvp,
    custom_vjp,
    events,
    float64,
    grad,
    jit,
    manual_seed,
    nn,
    no_grad,
    scan,
    stop_gradient,
    value_and_grad,
    vjp,
)
from treadle.engine.realize import prepare
from treadle.graph import batching, forward

X, Y = Tensor([0.3, 0.5]).realize(), Tensor([2.0, 3.0]).realize()
XS = np.array([[0.3, 0.5], [0.1, 0.7], [-0.2, 0.4]], np.float32)


def close(got: Any, want: Any) -> None:
    got, want = (v.numpy() if isinstance(v, Tensor) else v for v in (got, want))
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


def pushed(f: Callable[..., Tensor], x: Tensor, t: Any) -> Tensor:
    """The derivative of f at x along t, in forward mode."""
    (found,) = forward.tangents([f(x).node], {x.node: Tensor(t).node})
    assert found is not None
    return Tensor._of(found)


def for_each(f: Callable[[Tensor], Tensor], xs: np.ndarray) -> Tensor:
    """f of every row."""
    x = Tensor(np.zeros(xs.shape[1:], xs.dtype)).realize()
    ((found, has),) = batching.batched([f(x).node], {x.node: Tensor(xs).node}, len(xs))
    assert has
    return Tensor._of(found)


@custom_vjp
def odd(x: Tensor, power: int, y: Tensor) -> Tensor:
    """(x y)**power, with a derivative by x that is 7 x g (which it is not)."""
    return (x * y) ** power


odd.defvjp(lambda x, n, y: (odd(x, n, y), (x, y)), lambda r, g: (g * 7 * r[0], g * r[1]))


@custom_jvp
def strange(x: Tensor, y: Tensor) -> Tensor:
    """x y, with ten times its derivative by x."""
    return x * y


strange.defjvp(lambda xs, ts: (strange(*xs), ts[0] * xs[1] * 10 + ts[1] * xs[0]))


# ---- vjp and has_aux -----------------------------------------------------------------------------
def test_vjp_of_trees_called_twice() -> None:
    outputs, pullback = vjp(lambda d: {"a": d["x"] * d["y"], "b": d["x"]}, {"x": X, "y": Y})
    close(outputs["a"], [0.6, 1.5])
    for scale in (1.0, 2.0):
        (found,) = pullback({"a": Tensor([scale, scale]), "b": Tensor([scale, 0.0])})
        close(found["x"], [3 * scale, 3 * scale])
        close(found["y"], [0.3 * scale, 0.5 * scale])


def test_a_value_read_inside_of_vjp() -> None:
    def f(x: Tensor) -> Tensor:
        y = x.sin()
        return y * 2 if y.sum().item() > 0 else y

    close(vjp(f, X)[1](Tensor([1.0, 1.0]))[0], 2 * np.cos([0.3, 0.5]))


def test_has_aux() -> None:
    def f(x: Tensor) -> tuple[Tensor, Any]:
        return (x * x).sum(), {"twice": x * 2, "name": "f"}

    (value, aux), derived = value_and_grad(f, has_aux=True)(X)
    close(value, 0.34)
    close(aux["twice"], [0.6, 1.0])
    derived, aux = grad(f, has_aux=True)(X)
    close(derived, [0.6, 1.0])
    assert aux["name"] == "f"
    _, pullback, aux = vjp(lambda x: (x * x, x), X, has_aux=True)
    close(aux, [0.3, 0.5])
    close(pullback(Tensor([1.0, 1.0]))[0], [0.6, 1.0])


def test_what_vjp_refuses() -> None:
    with pytest.raises(TypeError, match=r"vjp: with has_aux the function must return \(result"):
        vjp(lambda x: x, X, has_aux=True)
    with pytest.raises(TypeError, match="vjp: the function must return floating tensors"):
        vjp(lambda x: x > 0, X)
    with pytest.raises(TypeError, match="vjp: only floating-point tensors have a derivative"):
        vjp(lambda x: x, Tensor([1, 2]))
    pullback = vjp(lambda x: (x, x), X)[1]
    with pytest.raises(ValueError, match="cotangents of structure"):
        pullback(X)
    with pytest.raises(ValueError, match="the gradient of an output has its shape"):
        pullback((X, Tensor([1.0])))


def test_stop_gradient_of_a_tree() -> None:
    found = grad(lambda x: (x * stop_gradient({"a": x, "b": 3})["a"]).sum())(X)
    close(found, X)


# ---- checkpoint ----------------------------------------------------------------------------------
def layer(x: Tensor, w: Tensor) -> Tensor:
    return (((x @ w).tanh() @ w).exp() @ w).sin()


RANDOM = np.random.default_rng(0)
WEIGHTS = [Tensor(RANDOM.standard_normal((16, 16)).astype(np.float32) / 4) for _ in range(6)]
W = WEIGHTS[0]
H = Tensor(RANDOM.standard_normal((64, 16)).astype(np.float32)).realize(*WEIGHTS)


def plainly(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


def deep(wrap: Callable[..., Any]) -> Callable[[Tensor, list[Tensor]], Tensor]:
    def f(x: Tensor, weights: list[Tensor]) -> Tensor:
        for w in weights:
            x = wrap(layer)(x, w)
        return (x * x).sum()

    return f


def test_a_checkpoint_has_the_same_bits() -> None:
    plain, again = (value_and_grad(deep(f), (0, 1)) for f in (plainly, checkpoint))
    (value, (by_x, by_weights)), (value_, (by_x_, by_weights_)) = (
        f(H, WEIGHTS) for f in (plain, again)
    )
    for got, want in zip((value, by_x, *by_weights), (value_, by_x_, *by_weights_)):
        assert np.array_equal(got.numpy(), want.numpy())


def test_a_value_alone_runs_the_same_kernels() -> None:
    plain, again = (prepare([deep(f)(H, WEIGHTS)]) for f in (plainly, checkpoint))
    assert plain == again  # the very same Programs


def test_a_checkpoint_takes_less_memory() -> None:
    arenas = []
    for wrap in (plainly, checkpoint):
        by_x, by_weights = grad(deep(wrap), (0, 1))(H, WEIGHTS)
        (program,) = prepare([by_x, *by_weights])
        arenas.append(program.schedule.arena)
    assert arenas[1] < 0.5 * arenas[0]


def test_a_checkpoint_in_jit_and_in_scan_and_nested() -> None:
    def nested(x: Tensor, w: Tensor) -> Tensor:
        return checkpoint(lambda h: checkpoint(layer)(checkpoint(layer)(h, w), w))(x).sum()

    def looped(x: Tensor, w: Tensor) -> Tensor:
        return scan(lambda h, _: (checkpoint(layer)(h, w), None), x, length=2)[0].sum()

    want = grad(lambda x, w: layer(layer(x, w), w).sum(), (0, 1))(H, W)
    for f in (nested, looped, jit(nested)):
        for got, expected in zip(grad(f, (0, 1))(H, W), want):
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
    for got, expected in zip(jit(grad(nested, (0, 1)))(H, W), want):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


def test_gradients_reach_the_weights_of_a_checkpointed_module() -> None:
    block = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16))
    block(H).sum().backward()
    want = [p.grad.numpy() for p in block.parameters()]
    for loss in (lambda: checkpoint(block)(H).sum(), jit(lambda: checkpoint(block)(H).sum())):
        for p in block.parameters():
            p.grad = None
        loss().backward()
        for p, expected in zip(block.parameters(), want):
            close(p.grad, expected)


def test_running_statistics_change_once() -> None:
    norms = [nn.BatchNorm(16), nn.BatchNorm(16)]
    for norm, wrap in zip(norms, (plainly, checkpoint)):
        x = Tensor(H.numpy(), requires_grad=True)
        (wrap(norm)(x) ** 2).sum().backward()
        assert x.grad is not None
        x.grad.realize(norm.running_mean)
    for name in ("running_mean", "running_var"):
        close(getattr(norms[1], name), getattr(norms[0], name))
    assert norms[1].running_mean.numpy().any()


def test_draws_are_drawn_again() -> None:
    """The mask of a dropout is made anew for the derivative, and it is the same one."""

    def dropped(x: Tensor) -> Tensor:
        return (x.dropout(0.5) * x).sin().sum()

    found = []
    for wrap in (plainly, checkpoint):
        manual_seed(3)
        found.append(grad(wrap(dropped))(H).numpy())
    assert np.array_equal(*found)


def test_a_value_read_inside_of_a_checkpoint() -> None:
    def f(x: Tensor) -> Tensor:
        y = x.sin()
        return y.cos() * y if y.sum().item() > 0 else y

    close(grad(lambda x: checkpoint(f)(x).sum())(X), grad(lambda x: f(x).sum())(X))
    x = Tensor([0.3, 0.5], requires_grad=True)
    checkpoint(f)(x).sum().backward()
    close(x.grad, grad(lambda x: f(x).sum())(X))


def test_checkpoint_in_forward_mode_and_for_each() -> None:
    f = checkpoint(lambda x: (x * Y).sin() * x)
    close(pushed(f, X, [1.0, 2.0]), pushed(f.__wrapped__, X, [1.0, 2.0]))
    close(for_each(f, XS), np.stack([f(Tensor(x)).numpy() for x in XS]))
    derived = grad(lambda x: f(x).sum())
    close(for_each(derived, XS), np.stack([derived(Tensor(x)).numpy() for x in XS]))
    along = grad(lambda x: (derived(x) * Tensor([1.0, 2.0])).sum())
    close(pushed(derived, X, [1.0, 2.0]), along(X))


def test_checkpoint_passes_on_what_is_no_tensor() -> None:
    found = checkpoint(lambda x, n, *, name: {"y": x * n, "x": x, "name": name})(X, 2, name="f")
    assert found["name"] == "f"
    assert found["x"] is X
    with pytest.raises(TypeError, match=r"write checkpoint\(f\)\(x\)"):
        checkpoint(X)


# ---- rules of users ------------------------------------------------------------------------------
def test_the_rule_is_used() -> None:
    by_x, by_y = grad(lambda x, y: odd(x, 2, y).sum(), (0, 1))(X, Y)
    close(by_x, 7 * X.numpy())
    close(by_y, Y)
    close(odd(X, 2, Y), (X.numpy() * Y.numpy()) ** 2)
    by_x, by_y = grad(lambda x, y: strange(x, y).sum(), (0, 1))(X, Y)
    close(by_x, 10 * Y.numpy())
    close(by_y, X)


def test_rules_to_third_order() -> None:
    second = grad(lambda x: grad(lambda x: odd(x, 2, Y).sum())(x).sum())
    close(second(X), [7, 7])
    close(grad(lambda x: second(x).sum())(X), [0, 0])
    close(grad(lambda y: grad(lambda x: strange(x, y).sum())(X).sum())(Y), [10, 10])


def test_each_mode_transposes_the_other() -> None:
    close(pushed(lambda x: odd(x, 2, Y), X, [1.0, 2.0]), 7 * X.numpy() * [1, 2])
    close(pushed(lambda x: strange(x, Y), X, [1.0, 2.0]), 10 * Y.numpy() * [1, 2])


def test_rules_for_each() -> None:
    for f in (
        lambda x: odd(x, 2, Y),
        lambda x: strange(x, Y),
        lambda y: odd(X, 2, y) + strange(X, y),
    ):
        for each in (f, grad(lambda x, f=f: f(x).sin().sum())):
            close(for_each(each, XS), np.stack([each(Tensor(x)).numpy() for x in XS]))
    # what all examples share gets the sum
    stacked = Tensor(XS)
    y = Tensor([2.0, 3.0], requires_grad=True)
    x = Tensor(np.zeros(2, np.float32)).realize()
    call = strange(x, y)
    ((node, _),) = batching.batched([call.node], {x.node: stacked.node}, len(XS))
    Tensor._of(node).sum().backward()
    close(y.grad, XS.sum(0))


def test_rules_in_jit_in_scan_and_by_backward() -> None:
    close(jit(grad(lambda x: odd(x, 2, Y).sum()))(X), 7 * X.numpy())
    captured = jit(lambda x: odd(x, 2, Y).sum())
    for loss in (captured, lambda x: odd(x, 2, Y).sum()):
        x = Tensor([0.3, 0.5], requires_grad=True)
        loss(x).backward()
        close(x.grad, [2.1, 3.5])
    looped = scan(lambda c, y: (odd(c, 1, y), None), X, Tensor([[1.0, 2.0], [2.0, 3.0]]))[0].sum()
    close(looped, 0.3 * 2 + 0.5 * 6)
    found = grad(
        lambda x: scan(lambda c, y: (odd(c, 1, y), None), x, Tensor([[1.0, 2.0]] * 2))[0].sum()
    )(X)
    close(found, 7 * X.numpy() * 7 * X.numpy() * [1.0, 2.0])


def test_a_rule_of_trees_without_some_cotangents() -> None:
    @custom_vjp
    def f(pair: dict[str, Any], n: Tensor) -> tuple[Tensor, Tensor]:
        return pair["a"] * pair["b"] * n, pair["a"]

    f.defvjp(
        lambda pair, n: (f(pair, n), pair),
        lambda pair, gs: ({"a": gs[0] * 5 + gs[1], "b": None, "k": None}, None),
    )
    pair = {"a": X, "b": Y, "k": 3}
    found = grad(lambda a, b: f({"a": a, "b": b, "k": 3}, Tensor(2))[0].sum(), (0, 1))(X, Y)
    close(found[0], [5, 5])
    close(found[1], [0, 0])
    assert f(pair, Tensor(2))[1].shape == (2,)


def test_a_method_and_arguments_by_name() -> None:
    class Scaled:
        factor = 3

        @custom_vjp
        def apply(self, x: Tensor, y: Tensor) -> Tensor:
            return x * y * self.factor

    Scaled.apply.defvjp(lambda self, x, y: (self.apply(x, y), y), lambda y, g: (g * y * 100, g))
    close(grad(lambda x: Scaled().apply(y=Y, x=x).sum())(X), 100 * Y.numpy())


def test_rules_that_do_not_fit() -> None:
    def derivative(forward: Any, backward: Any) -> Tensor:
        f = custom_vjp(lambda x, y: x * y)
        f.defvjp(forward, backward)
        return grad(lambda x: f(x, Y).sum())(X)

    right = lambda x, y: (x * y, None)  # noqa: E731
    for forward_rule, backward, kind, message in (
        (lambda x, y: x * y, right, TypeError, r"must return \(result, residuals\), not a Tensor"),
        (lambda x, y: ((x, y), None), right, ValueError, "gives a result of structure"),
        (lambda x, y: (x.sum(), None), right, ValueError, r"gives a result of float32 \(\)"),
        (right, lambda _, g: g, TypeError, "must return a tuple of 2"),
        (right, lambda _, g: (g,), TypeError, "must return a tuple of 2"),
        (right, lambda _, g: (g, (g, g)), TypeError, "gives a tuple as a cotangent"),
        (right, lambda _, g: (g.sum(), g), ValueError, r"a cotangent of float32 \(\), which must"),
        (right, lambda _, g: (g.cast(float64), g), ValueError, "a cotangent of float64"),
        (right, lambda _, g: (3.0, g), TypeError, "gives a float as a cotangent"),
    ):
        with pytest.raises(kind, match=message):
            derivative(forward_rule, backward)
    with pytest.raises(TypeError, match=r"has no rule: call .*\.defvjp"):
        custom_vjp(lambda x: x)(X)
    with pytest.raises(TypeError, match=r"has no rule: call .*\.defjvp"):
        custom_jvp(lambda x: x)(X)
    with pytest.raises(TypeError, match="takes a function, not a Tensor"):
        custom_vjp(X)
    wrong = custom_vjp(lambda x: 3)
    wrong.defvjp(right, right)
    with pytest.raises(TypeError, match="must return tensors, in trees"):
        wrong(X)


def test_a_tensor_from_outside_has_no_derivative_in_a_rule() -> None:
    outside = Tensor([1.0, 2.0], requires_grad=True)
    f = custom_vjp(lambda x: x * outside)
    f.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
    close(f(X), X.numpy() * [1, 2])
    with pytest.raises(NotImplementedError, match="uses a tensor from outside"):
        f(X).sum().backward()
    with no_grad():
        close(f(X), X.numpy() * [1, 2])


# ---- memory --------------------------------------------------------------------------------------
def test_jit_tells_its_memory_before_it_runs() -> None:
    runs: list[Any] = []
    f = jit(lambda x: (x @ W).exp() @ W)
    with events.listen("run", runs.append), events.listen("memory", runs.append):
        told = f.memory(H)
        assert [event["event"] for event in runs] == ["memory"]
        assert f.memory(H) == told
    value = 64 * 16 * 4
    assert (told.arguments, told.closed_over, told.results) == (value, 16 * 16 * 4, value)
    assert told.peak == 2 * value + 16 * 16 * 4 + told.temporaries
    traced: list[Any] = []
    with events.listen("trace", traced.append):
        close(f(H), (H @ W).exp() @ W)
    assert not traced


def test_asking_for_memory_draws_no_number() -> None:
    found = []
    for ask in (False, True):
        manual_seed(1)
        f = jit(lambda x: x + Tensor.rand(2))
        if ask:
            f.memory(X)
        found.append(f(X).numpy())
    assert np.array_equal(*found)


def test_more_memory_than_the_machine_has_is_refused() -> None:
    @jit
    def huge(x: Tensor) -> Tensor:
        return (x.expand(1 << 20, 1 << 18).exp().cumsum(0)).cumsum(1).sum()

    with pytest.raises(MemoryError, match=r"huge needs .* largest temporaries are .* of float32"):
        huge(Tensor([[1.0]]))
