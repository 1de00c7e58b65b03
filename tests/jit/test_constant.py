"""What a captured function makes of unchanged tensors is made once, and again after every write."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from treadle import Tensor, Variable, checkpoint, cond, events, grad, jit, nn, no_grad, scan
from treadle.captured import Jit
from treadle.engine import capture
from treadle.engine.constant import Division
from treadle.engine.storage import allocator, memory

random = np.random.default_rng(7)


def draw(*shape: int) -> Tensor:
    return Tensor(random.standard_normal(shape).astype(np.float32))


class Counting:
    """A runner that notes how many records each run has."""

    def __init__(self, captured: Any) -> None:
        self.inner = captured.runner
        self.all = len(captured.native.records.records)
        self.counts: list[int] = []
        captured.runner = self

    def run(self, records: Any) -> None:
        self.counts.append(self.all - records.start)
        self.inner.run(records)

    def new(self) -> list[int]:
        """The counts since this was asked last."""
        found, self.counts = self.counts, []
        return found


def counting(function: Jit) -> Counting:
    assert function.last is not None
    return Counting(function.last.captured)


def reference(function: Callable[..., Tensor], *args: Any) -> np.ndarray:
    """What the function gives when everything is run at every call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture, "divide", lambda steps, *_: Division((), set(), tuple(steps), set()))
        return jit(lambda *given: function(*given))(*args).numpy()


class Mixed(nn.Module):
    """The softmax of the weight is a kernel of its own, which reads nothing but the weight."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(draw(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.softmax(1)


def test_what_depends_on_unchanged_weights_is_run_once() -> None:
    model, x = Mixed(), draw(4, 8)
    f = jit(model)
    with no_grad():
        expected = reference(model, x)
        f(x)
        counts = counting(f)
        for _ in range(3):
            np.testing.assert_array_equal(f(x).numpy(), expected)
        np.testing.assert_array_equal(f(x * 2).numpy(), reference(model, x * 2))
    assert counts.new() == [1] * 4
    assert counts.all == 2


def test_a_packed_panel_is_kept() -> None:
    layer, x = nn.Conv2d(64, 64, 3, padding=1), draw(1, 64, 28, 28)
    f = jit(layer)
    with no_grad():
        expected = reference(layer, x)
        f(x)
        counts = counting(f)
        assert counts.all == 2
        np.testing.assert_array_equal(f(x).numpy(), expected)
        layer.weight.mul_(2)
        np.testing.assert_array_equal(f(x).numpy(), reference(layer, x))
        f(x)
    assert counts.new() == [1, 2, 1]


def test_filters_are_packed_for_the_calls_to_come() -> None:
    """Few results for each filter: not captured, packing would cost more than it saves."""
    layer, x = nn.Conv2d(256, 256, 3, padding=1, bias=False), draw(1, 256, 7, 7)
    f = jit(layer)
    with no_grad():
        expected = layer(x).numpy()
        f(x)
        counts = counting(f)
        assert counts.all == 2
        np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-4, atol=1e-4)
        layer.weight.mul_(2)
        np.testing.assert_allclose(f(x).numpy(), 2 * expected, rtol=1e-4, atol=1e-4)
    assert counts.new() == [1, 2]


def _assign(model: Mixed) -> None:
    model.weight.assign(draw(8, 8))


def _add(model: Mixed) -> None:
    model.weight += 1


def _set_item(model: Mixed) -> None:
    model.weight[2:4] = 5


def _load(model: Mixed) -> None:
    model.load_state_dict({"weight": draw(8, 8)})


def _replace(model: Mixed) -> None:
    model.weight = nn.Parameter(draw(8, 8))


def _step(model: Mixed) -> None:
    model.weight.grad = draw(8, 8)
    nn.optim.SGD([model.weight], lr=0.5).step()


def _captured_write(model: Mixed) -> None:
    jit(lambda: model.weight.mul_(2))()


def _captured_swap(model: Mixed) -> None:
    jit(lambda: model.weight.assign(model.weight.T @ model.weight))()


@pytest.mark.parametrize(
    "write",
    [_assign, _add, _set_item, _load, _replace, _step, _captured_write, _captured_swap],
)
def test_every_kind_of_write_is_seen(write: Callable[[Mixed], None]) -> None:
    model, x = Mixed(), draw(4, 8)
    f = jit(model)
    with no_grad():
        f(x)
        counts = counting(f)
        for _ in range(2):
            write(model)
            expected = reference(model, x)
            np.testing.assert_array_equal(f(x).numpy(), expected)
            np.testing.assert_array_equal(f(x).numpy(), expected)
    assert counts.new() == [2, 1, 2, 1]


def test_a_write_to_another_tensor_packs_nothing() -> None:
    model, x, other = Mixed(), draw(4, 8), draw(3)
    f = jit(model)
    with no_grad():
        f(x)
        counts = counting(f)
        other += 1
        other.numpy()
        jit(lambda: other.mul_(2))()
        f(x)
    assert counts.new() == [1]


def test_a_captured_training_step_between_calls_is_seen() -> None:
    model, x = Mixed(), draw(4, 8)
    opt = nn.optim.Adam(model.parameters(), lr=0.1)

    @jit
    def step(x: Tensor) -> Tensor:
        opt.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        opt.step()
        return loss

    evaluate = jit(lambda x: model(x))
    with no_grad():
        evaluate(x)
    counts = counting(evaluate)
    for _ in range(3):
        step(x)
        with no_grad():
            np.testing.assert_array_equal(evaluate(x).numpy(), reference(model, x))
            evaluate(x)
    assert counts.new() == [2, 1, 2, 1, 2, 1]
    assert step.last is not None
    assert step.last.captured.kept is None  # it writes to what it reads


def test_only_what_the_function_itself_writes_is_made_at_every_call() -> None:
    model, state = Mixed(), draw(8, 8)

    @jit
    def f(x: Tensor) -> Tensor:
        y = x @ model.weight.softmax(1) @ state.softmax(1)
        state.assign(state * 0.5)
        return y

    before, x = state.numpy(), draw(4, 8)
    results = []
    with no_grad():
        results.append(f(x).numpy())
        counts = counting(f)
        results += [f(x).numpy() for _ in range(2)]
    assert len(set(counts.new())) == 1
    assert f.last is not None
    assert f.last.captured.kept is not None
    for number, result in enumerate(results):
        own = Tensor(before * np.float32(0.5**number))
        expected = (x @ model.weight.softmax(1) @ own.softmax(1)).numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_a_state_that_is_rebound_inside_does_not_make_the_weights_again() -> None:
    class Cell(nn.Module):
        def __init__(self) -> None:
            self.inner = Mixed()
            self.state = draw(4, 8)

        def forward(self, x: Tensor) -> Tensor:
            self.state = self.inner(self.state.softmax(0)) + x
            return self.state * 1

    cell = Cell()
    f = jit(cell)
    x, expected = draw(4, 8), cell.state
    with no_grad():
        f(x)
        counts = counting(f)
        f(x)
        result = f(x)
        for _ in range(3):
            expected = expected.softmax(0) @ cell.inner.weight.softmax(1) + x
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-5)
    assert len(set(counts.new())) == 1
    assert f.last is not None
    assert f.last.captured.kept is not None


def test_variants_keep_their_own() -> None:
    model, small, large = Mixed(), draw(2, 8), draw(6, 8)
    f = jit(model)
    with no_grad():
        for _ in range(2):
            for x in (small, large):
                np.testing.assert_array_equal(f(x).numpy(), reference(model, x))
        model.weight.mul_(3)
        for x in (small, large):
            np.testing.assert_array_equal(f(x).numpy(), reference(model, x))


def test_a_variable_length_beside_unchanged_weights() -> None:
    model, length = Mixed(), Variable("length", 1, 16)
    data = draw(16, 8)
    f = jit(model)
    with no_grad():
        f(data[: length.bind(3)])
        counts = counting(f)
        for size in (5, 16, 1):
            x = data[: length.bind(size)]
            np.testing.assert_array_equal(f(x).numpy(), reference(model, x))
    assert counts.new() == [1, 1, 1]


def test_gradients_flow_through_what_was_kept() -> None:
    model, x = Mixed(), draw(4, 8)
    f = jit(model)
    f(x)
    counts = counting(f)
    f(x).square().sum().backward()
    assert counts.new() == [1]
    found = model.weight.grad.numpy()
    model.weight.grad = None
    model(x).square().sum().backward()
    np.testing.assert_allclose(found, model.weight.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_what_is_the_same_in_every_trip_of_a_loop_is_made_before_it() -> None:
    weight, xs = draw(8, 8), draw(5, 2, 8)

    def f(xs: Tensor) -> Tensor:
        step = lambda c, x: (((c + x) @ weight.softmax(1)).tanh(), None)  # noqa: E731
        return scan(step, Tensor.zeros(2, 8), xs)[0]

    captured = jit(f)
    expected = reference(f, xs)
    captured(xs)
    for _ in range(2):
        np.testing.assert_array_equal(captured(xs).numpy(), expected)
    weight.mul_(2)
    np.testing.assert_array_equal(captured(xs).numpy(), reference(f, xs))


def test_an_index_out_of_range_among_the_constants_is_told_at_every_call() -> None:
    table, where = draw(4, 8), Tensor([0, 9])
    f = jit(lambda x: x @ table[where].softmax(1).T)
    for _ in range(2):
        with pytest.raises(IndexError):
            f(draw(3, 8))
    where.assign(Tensor([0, 3]))
    assert f(draw(3, 8)).shape == (3, 2)


def test_a_run_that_was_interrupted_is_not_trusted() -> None:
    model, x = Mixed(), draw(4, 8)
    f = jit(model)
    with no_grad():
        expected = f(x).numpy()
        counts = counting(f)
        inner = counts.inner

        class Broken:
            def run(self, records: Any) -> None:
                raise KeyboardInterrupt

        counts.inner = Broken()
        with pytest.raises(KeyboardInterrupt):
            f(x)
        counts.inner = inner
        np.testing.assert_array_equal(f(x).numpy(), expected)
        f(x)
    assert counts.new() == [1, 2, 1]


def test_lent_memory_is_read_at_every_call() -> None:
    model, x = Mixed(), draw(4, 8)
    f = jit(model)
    with no_grad():
        f(x)
        counts = counting(f)
        buffer = memory[model.weight.node]
        buffer.lent = True
        memory.disturb()
        view = buffer.array(model.weight.dtype, (8, 8))
        for value in (1.0, 2.0):
            view[:, 0] = value
            np.testing.assert_array_equal(f(x).numpy(), reference(model, x))
        buffer.lent = False
    assert counts.new() == [2, 2]


def test_threads_share_what_is_kept() -> None:
    model = Mixed()
    f = jit(model)
    xs = [draw(4, 8) for _ in range(4)]
    expected = [reference(model, x) for x in xs]
    found: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        for _ in range(10):
            found[number] = f(xs[number]).numpy()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, value in enumerate(expected):
        np.testing.assert_array_equal(found[number], value)


def test_what_is_kept_goes_with_the_function() -> None:
    weight = draw(512, 512)
    f = jit(lambda x: x @ weight.softmax(1))
    f(draw(2, 512))
    assert f.last is not None
    assert f.last.captured.kept is not None
    assert f.last.captured.kept.bytes == 512 * 512 * 4
    before = allocator.in_use
    del f
    gc.collect()
    assert allocator.in_use <= before - 512 * 512 * 4


def test_a_change_does_not_trace_again() -> None:
    model, x = Mixed(), draw(4, 8)
    f = jit(model)
    traces: list[Any] = []
    with no_grad(), events.listen("trace", traces.append):
        for _ in range(3):
            f(x)
            model.weight.mul_(2)
    assert len(traces) == 1


def test_a_predicate_that_is_the_same_at_every_call_keeps_its_memory() -> None:
    """What tests a branch is read, too: its memory is not that of a later temporary."""
    state = Tensor(np.linspace(-1, 2, 64, dtype=np.float32).reshape(8, 8)).realize()

    def layer(x: Tensor, w: Tensor) -> Tensor:
        return cond(x.sum() > 0, lambda x: (x @ w).tanh(), lambda x: (x @ w).sin(), x)

    def loss(weights: list[Tensor]) -> Tensor:
        x = state
        for w in weights:
            x = checkpoint(layer)(x, w)
        return (x * x).sum()

    weights = [Tensor(np.full((8, 8), sign * 0.1, np.float32)).realize() for sign in (-1, 1, 1)]
    want, captured = grad(loss)(weights), jit(grad(loss))
    for _ in range(2):
        for got, expected in zip(captured(weights), want, strict=True):
            assert np.array_equal(got.numpy(), expected.numpy())


def test_a_branch_that_is_not_chosen_is_not_run_before_all_calls() -> None:
    """Although its inputs are the same at every call: it might fail."""
    table, place = Tensor([1.0, 2.0]).realize(), Tensor([7]).realize()
    chosen = jit(
        lambda x: cond(x.sum() > 0, lambda x: table[place].clone() + x, lambda x: x * 2, x)
    )
    assert chosen(Tensor([-1.0])).tolist() == [-2.0]
    with pytest.raises(IndexError):
        chosen(Tensor([1.0])).tolist()


def test_indices_that_nothing_reads_in_the_end() -> None:
    """The sum over no elements reads neither x nor the indices, which have no slot then."""
    f = jit(lambda x: x[[1, 2, 3]].sum(1) + 5)
    for _ in range(2):
        old = Tensor.full((3,), 9.0).realize()
        del old  # the result may get its memory
        assert f(Tensor.ones(13, 0)).tolist() == [5.0, 5.0, 5.0]
