"""`while_loop` and `cond` from Python: captured or not, on every runner, interrupted, wrong."""

import os
import signal
import threading
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import Tensor, Variable, cond, config, events, grad, jit, nn, scan, while_loop
from treadle.schedule.plan import FOREVER, Loop


def array(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


def count_to(n: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    return while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1), (Tensor(0), x))


def test_as_many_trips_as_it_takes_without_another_trace() -> None:
    traces: list[Any] = []
    captured = jit(count_to)
    with events.listen("trace", traces.append):
        for trips in (3, 0, 100_000, 1):
            count, x = captured(Tensor(trips), Tensor(4.0))
            want = 2 + 2 * 0.5**trips
            assert (count.item(), x.item()) == (trips, pytest.approx(want))
    assert len(traces) == 1


def test_ten_trips_and_a_hundred_thousand_are_one_program() -> None:
    found: list[Any] = []
    with events.listen("schedule", found.append):
        for trips in (10, 100_000):
            count, _ = count_to(Tensor(np.array(trips)), Tensor(1.0))
            assert count.item() == trips
    (scheduled,) = found
    (loop,) = [item for item in scheduled["schedule"].items if isinstance(item, Loop)]
    assert loop.trips == FOREVER
    assert len({call.phase for call in loop.body}) == 1


WEIGHT = np.random.default_rng(7).standard_normal((40, 40)).astype(np.float32) / 10


def stepped(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix product in a loop whose end depends on the values, with a choice in it."""

    def body(s: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        count, x = s
        x = cond(
            count % 2 == 0,
            lambda x: x @ w + 0.1,
            lambda x: scan(lambda c, row: (c * 0.9 + row, None), x, w[:3])[0],
            x,
        )
        return count + 1, x

    return while_loop(lambda s: (s[0] < 20) & (s[1].abs().max() < 50), body, (Tensor(0), x))


def unrolled(x: np.ndarray, w: np.ndarray) -> tuple[int, np.ndarray]:
    count = 0
    while count < 20 and np.abs(x).max() < 50:
        if count % 2 == 0:
            x = x @ w + 0.1
        else:
            for row in w[:3]:
                x = x * 0.9 + row
        count += 1
    return count, x


RUNNERS = [{}, {"THREADS": 1}, {"THREADS": 4}, {"DEVICE": "INTERP"}]


@pytest.mark.parametrize("knobs", RUNNERS, ids=str)
@pytest.mark.parametrize("captured", [True, False])
def test_every_runner(knobs: dict[str, Any], captured: bool) -> None:
    size = 6 if "DEVICE" in knobs else 40
    with ExitStack() as stack:
        for name, value in knobs.items():
            stack.enter_context(getattr(config, name).set(value))
        f = jit(stepped) if captured else stepped
        x, w = np.ones((size, size), np.float32), WEIGHT[:size, :size].copy()
        for _ in range(2):
            count, found = f(Tensor(x), Tensor(w))
            want_count, want = unrolled(x, w)
            assert count.item() == want_count
            np.testing.assert_allclose(found.numpy(), want, rtol=1e-4, atol=1e-5)


def test_symbolic_dimensions() -> None:
    n = Variable("n", 1, 10)
    f = jit(
        lambda x: cond(
            x.sum() > 3,
            lambda x: while_loop(lambda y: y.sum() < 100, lambda y: y * 2, x),
            lambda x: -x,
            x,
        )
    )
    for length, want in ((2, -1.0), (4, 32.0), (7, 16.0)):
        x = Tensor(np.ones(10, np.float32))[: n.bind(length)]
        np.testing.assert_array_equal(f(x).numpy(), np.full(length, want))


def test_only_the_chosen_branch_runs() -> None:
    """The other would be out of range."""
    x = array(1, 2, 3)

    @jit
    def f(i: Tensor) -> Tensor:
        return cond(i < 3, lambda: x[i], lambda: Tensor(-1.0))

    assert [f(Tensor(i)).item() for i in (0, 2, 3, 50)] == [1.0, 3.0, -1.0, -1.0]


def test_an_index_out_of_range_in_a_body() -> None:
    x = array(1, 2, 3)

    @jit
    def f(n: Tensor) -> Tensor:
        def body(s: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            return s[0] + 1, s[1] + x[s[0]]

        return while_loop(lambda s: s[0] < n, body, (n * 0, x[0]))[1]

    assert f(Tensor(3)).item() == 7.0
    with pytest.raises(IndexError, match="out of range"):
        f(Tensor(5)).item()
    assert f(Tensor(2)).item() == 4.0


def test_gradients_by_backward_and_by_grad() -> None:
    layer = nn.Linear(3, 3)
    x = array(0.1, 0.2, 0.3)

    def loss(x: Tensor, way: bool) -> Tensor:
        return cond(Tensor(way), lambda x: layer(x).tanh().sum(), lambda x: (x * x).sum(), x)

    def direct(x: Tensor, way: bool) -> Tensor:
        return layer(x).tanh().sum() if way else (x * x).sum()

    for way in (True, False):
        found = grad(lambda x, way=way: loss(x, way))(x)
        want = grad(lambda x, way=way: direct(x, way))(x)
        np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-6)
    loss(x, True).backward()
    found = layer.weight.grad.numpy()
    layer.weight.grad = None
    layer(x).tanh().sum().backward()
    np.testing.assert_allclose(found, layer.weight.grad.numpy(), rtol=1e-6)


def test_trained_through_a_choice() -> None:
    """A captured step whose loss depends on a value, and weights that are updated in place."""
    layer = nn.Linear(2, 1)
    optimizer = nn.optim.SGD(layer.parameters(), lr=0.1)

    @jit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        y = layer(x)
        loss = cond(x.sum() > 0, lambda y: (y - 1).square().sum(), lambda y: y.abs().sum(), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(array(0.5, 0.5)).item() for _ in range(30)]
    assert losses[-1] < 1e-2 * max(losses[0], 1e-3) or losses[-1] < 1e-6
    before = layer.weight.numpy()
    step(array(-0.5, -0.5))
    assert np.abs(layer.weight.numpy() - before).max() > 0.01


def test_a_loop_without_end_can_be_interrupted() -> None:
    """The caller's tensors are whole, and the next call works."""
    total = array(1, 2)

    @jit
    def f(limit: Tensor) -> Tensor:
        total.assign(total + 1)
        return while_loop(lambda y: y < limit, lambda y: (y + 1) % 1000, Tensor(0))

    assert f(Tensor(7)).item() == 7
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(Tensor(5000)).item()
    timer.join()
    assert total.tolist() in ([2.0, 3.0], [3.0, 4.0])
    assert f(Tensor(9)).item() == 9


def test_a_value_inside_cannot_be_read() -> None:
    with pytest.raises(RuntimeError, match="cannot be read"):
        while_loop(lambda s: bool(s < 3), lambda s: s, Tensor(0))
    with pytest.raises(RuntimeError, match="cannot be read"):
        cond(Tensor(True), lambda x: x * x.item(), lambda x: x, Tensor(1.0))


# ---- transforms ----------------------------------------------------------------------------------
def root(a: Tensor, start: Tensor) -> Tensor:
    """Newton's iteration for a square root."""
    return while_loop(lambda x: (x * x - a).abs() > 1e-5 * a, lambda x: (x + a / x) / 2, start)


def bent(x: Tensor) -> Tensor:
    return cond(x > 0, lambda x: x**3, lambda x: -x, x)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "captured"])
def test_transforms_of_a_while_loop(wrap: Any) -> None:
    one, a = Tensor(1.0), array(2, 3, 100)
    many = wrap(treadle.vmap(root, in_axes=(0, None)))
    np.testing.assert_allclose(many(a, one).numpy(), np.sqrt([2, 3, 100]), rtol=1e-5)
    slope = wrap(lambda a: treadle.jvp(lambda a: root(a, one), (a,), (one,))[1])
    assert slope(Tensor(4.0)).item() == pytest.approx(0.25, rel=1e-4)
    slopes = wrap(treadle.jacobian(lambda a: many(a, one), mode="forward"))(a)
    np.testing.assert_allclose(slopes.numpy(), np.diag(0.5 / np.sqrt([2, 3, 100])), rtol=1e-3)
    with pytest.raises(NotImplementedError, match="Use scan with a fixed length"):
        wrap(grad(root))(Tensor(2.0), one)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "captured"])
def test_transforms_of_a_choice(wrap: Any) -> None:
    x = array(1, -2, 3)
    assert wrap(treadle.vmap(bent))(x).tolist() == [1.0, 2.0, 27.0]
    assert wrap(treadle.vmap(grad(bent)))(x).tolist() == [3.0, -1.0, 27.0]
    assert wrap(treadle.vmap(grad(grad(bent))))(x).tolist() == [6.0, 0.0, 18.0]
    assert wrap(grad(lambda x: treadle.vmap(bent)(x).sum()))(x).tolist() == [3.0, -1.0, 27.0]
    assert wrap(treadle.hessian(bent))(Tensor(2.0)).item() == 12.0
    in_loop = grad(lambda c: scan(lambda c, v: (bent(c) + v, None), c, array(1, -9, 2))[0])
    assert wrap(in_loop)(Tensor(1.0)).item() == -36.0


def test_examples_that_are_done_read_nothing_out_of_range() -> None:
    x = array(1, 2, 3)

    def first(n: Tensor) -> Tensor:
        def body(s: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            return s[0] + 1, s[1] + x[s[0]]

        return while_loop(lambda s: s[0] < n, body, (n * 0, Tensor(0.0)))[1]

    def element(i: Tensor) -> Tensor:
        return cond(i < 3, lambda: x[i], lambda: Tensor(-1.0))

    assert treadle.vmap(first)(Tensor([0, 3, 1])).tolist() == [0.0, 6.0, 1.0]
    assert treadle.vmap(element)(Tensor([0, 3, 1])).tolist() == [1.0, -1.0, 2.0]


def test_a_body_changes_its_own_tensors_only() -> None:
    total = Tensor(0.0)

    def filled(state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        count, tokens = state
        tokens[count] = count * count
        return count + 1, tokens

    count, tokens = while_loop(lambda s: s[0] < 3, filled, (Tensor(0), Tensor([7, 7, 7, 7])))
    assert (count.item(), tokens.tolist()) == (3, [0, 1, 4, 7])
    with pytest.raises(RuntimeError, match="outside of the function given to while_loop"):
        while_loop(lambda s: s < 3, lambda s: (total.assign(s), s + 1)[1], Tensor(0.0))
    with pytest.raises(RuntimeError, match="outside of the function given to cond"):
        cond(Tensor(True), lambda: total.assign(total + 1), lambda: total)
    assert total.item() == 0.0


def test_the_names_are_public() -> None:
    assert {"cond", "while_loop"} <= set(treadle.__all__)
