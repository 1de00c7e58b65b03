"""What has bitten users of functions like this: each trap is a test."""

from __future__ import annotations

import gc
import threading
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from treadle import JitError, Tensor, Variable, events, grad, jit, manual_seed, nn, no_grad, scan


def numbers(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """How often there is a trace, a retrace, a new schedule and a compilation."""
    counts = dict.fromkeys(("trace", "retrace", "schedule", "compile"), 0)

    def count(data: dict[str, Any]) -> None:
        counts[data["event"]] += 1

    for event in counts:
        events.listeners.setdefault(event, []).append(count)
    try:
        yield counts
    finally:
        for event in counts:
            events.listeners[event].remove(count)


# ---- what changes between calls ------------------------------------------------------------------
def test_a_second_call_traces_schedules_and_compiles_nothing() -> None:
    f = jit(lambda x: (x * 3).exp().sum())
    f(numbers(1, 2))
    with counted() as counts:
        for n in range(5):
            assert f(numbers(n, n)).item() == pytest.approx(2 * np.exp(3.0 * n), rel=1e-5)
    assert counts == {"trace": 0, "retrace": 0, "schedule": 0, "compile": 0}


def test_a_global_number_is_guarded() -> None:
    space: dict[str, Any] = {"scale": 2.0}
    exec("def f(x):\n    return x * scale", space)
    f = jit(space["f"])
    assert f(numbers(1)).tolist() == [2]
    space["scale"] = 3.0
    with counted() as counts:
        assert f(numbers(1)).tolist() == [3]
        assert f(numbers(2)).tolist() == [6]
    assert counts["retrace"] == 1


def test_a_flag_of_an_object_is_guarded_and_the_reason_is_told() -> None:
    drop = nn.Dropout(0.5)
    f = jit(lambda x: drop(x))
    f(numbers(1, 2))
    reasons: list[str] = []
    with events.listen("retrace", lambda data: reasons.append(data["reason"])):
        drop.eval()
        assert f(numbers(1, 2)).tolist() == [1, 2]
    assert len(reasons) == 1
    assert "training" in reasons[0]


def test_a_closure_number_and_a_list_are_guarded() -> None:
    factor = 2
    layers = [1.0, 2.0]

    @jit
    def f(x: Tensor) -> Tensor:
        for layer in layers:
            x = x * layer
        return x * factor

    assert f(numbers(1)).tolist() == [4]
    factor = 3
    assert f(numbers(1)).tolist() == [6]
    layers.append(10.0)
    assert f(numbers(1)).tolist() == [60]
    layers[0] = 2.0
    assert f(numbers(1)).tolist() == [120]


def test_a_class_attribute_and_a_method_are_guarded() -> None:
    class Scale:
        by = 2.0

        def apply(self, x: Tensor) -> Tensor:
            return x * self.by

    scale = Scale()
    f = jit(lambda x: scale.apply(x))
    assert f(numbers(1)).tolist() == [2]
    Scale.by = 5.0
    assert f(numbers(1)).tolist() == [5]
    Scale.apply = lambda self, x: x + 100  # type: ignore[method-assign]
    assert f(numbers(1)).tolist() == [101]


def test_a_float_that_changes_becomes_a_run_time_number() -> None:
    holder = types.SimpleNamespace(scale=1.0, shift=2.0, text="a")
    f = jit(lambda x: x * (holder.scale * 2) + holder.shift)
    with counted() as counts:
        for n in range(6):
            holder.scale = n + 0.5
            expected = (numbers(3, 4) * (holder.scale * 2) + holder.shift).numpy()
            np.testing.assert_array_equal(f(numbers(3, 4)).numpy(), expected)
            assert holder.scale == n + 0.5
    assert counts["trace"] == 2
    holder.shift = 10.0
    assert f(numbers(0, 0)).tolist() == [10, 10]
    holder.scale = 3
    assert f(numbers(1, 0)).tolist() == [16, 10]


def test_a_float_that_is_looked_at_is_traced_for_each_value() -> None:
    drop = nn.Dropout(0.0)
    holder = types.SimpleNamespace(rate=0.0)
    f = jit(lambda x: drop(x) if holder.rate < 0.5 else x * holder.rate)
    for rate in (0.25, 0.75, 1.5, 0.25):
        holder.rate = rate
        assert f(numbers(1)).tolist() == [1 if rate < 0.5 else rate]
    drop.p = 1.0
    holder.rate = 0.25
    assert f(numbers(1)).tolist() == [0]


def test_an_equal_number_that_is_another_object_does_not_retrace() -> None:
    holder = types.SimpleNamespace(size=1000, scale=2.5)
    f = jit(lambda x: x * holder.scale + holder.size)
    f(numbers(1))
    with counted() as counts:
        holder.size = int("1000")
        holder.scale = float("2.5")
        assert f(numbers(2)).tolist() == [1005]
    assert counts["trace"] == 0


def test_a_replaced_attribute_is_seen_without_a_retrace() -> None:
    layer = types.SimpleNamespace(weight=numbers(1, 2))
    f = jit(lambda x: x * layer.weight)
    assert f(numbers(1, 1)).tolist() == [1, 2]
    layer.weight = numbers(5, 6)
    with counted() as counts:
        assert f(numbers(1, 1)).tolist() == [5, 6]
    assert counts["trace"] == 0
    layer.weight = numbers(7)
    assert f(numbers(1, 1)).tolist() == [7, 7]


def test_an_assigned_closed_over_tensor_is_seen() -> None:
    weight = numbers(1, 2)
    f = jit(lambda x: x * weight)
    assert f(numbers(1, 1)).tolist() == [1, 2]
    with counted() as counts:
        weight.assign(numbers(3, 4))
        assert f(numbers(1, 1)).tolist() == [3, 4]
        weight += 1
        assert f(numbers(1, 1)).tolist() == [4, 5]
    assert counts["trace"] == 0


def test_no_grad_is_part_of_the_signature() -> None:
    weight = Tensor([2.0], requires_grad=True)
    f = jit(lambda x: (x * weight).sum())
    with no_grad():
        assert not f(numbers(3)).requires_grad
    y = f(numbers(3))
    y.backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [3]


def test_freezing_a_parameter_is_seen() -> None:
    first, second = (Tensor([2.0], requires_grad=True) for _ in range(2))

    @jit
    def f(x: Tensor) -> None:
        first.grad = second.grad = None
        (x * first * second).sum().backward()

    f(numbers(1))
    assert second.grad is not None
    second.requires_grad = False
    second.grad = None
    f(numbers(3))
    assert first.grad is not None
    assert first.grad.tolist() == [6]
    assert second.grad is None


# ---- arguments -----------------------------------------------------------------------------------
def test_floats_are_run_time_numbers_with_weak_promotion() -> None:
    f = jit(lambda x, rate: x * (1 - rate * 2) + rate)
    half = Tensor(np.ones(2, np.float16))
    with counted() as counts:
        for rate in (0.1, 0.25, -3.5):
            expected = (numbers(1, 2) * (1 - rate * 2) + rate).numpy()
            np.testing.assert_array_equal(f(numbers(1, 2), rate).numpy(), expected)
            result = f(half, rate)
            assert result.dtype.name == "float16"
            np.testing.assert_array_equal(result.numpy(), (half * (1 - rate * 2) + rate).numpy())
    assert counts["trace"] == 2
    whole = jit(lambda x, rate: x * rate)(Tensor([1, 2]), 0.5)
    assert whole.dtype.name == "float32"


def test_a_float_in_control_flow_is_an_error_that_names_it() -> None:
    def f(x: Tensor, rate: float) -> Tensor:
        return x if rate > 0.5 else -x

    with pytest.raises(JitError, match="argument rate") as caught:
        jit(f)(numbers(1), 0.7)
    assert "static" in str(caught.value)
    assert "test_traps.py" in str(caught.value)
    fixed = jit(f, static="rate")
    assert fixed(numbers(1), 0.7).tolist() == [1]
    assert fixed(numbers(1), 0.2).tolist() == [-1]


def test_ints_bools_and_text_are_part_of_the_signature() -> None:
    f = jit(lambda x, n, flag, mode="a": (x * n if flag else x) + (1 if mode == "b" else 0))
    assert f(numbers(1), 2, True).tolist() == [2]
    assert f(numbers(1), 3, True).tolist() == [3]
    assert f(numbers(1), 3, False).tolist() == [1]
    assert f(numbers(1), 3, 1, mode="b").tolist() == [4]
    assert f(numbers(1), 1, True).tolist() == [1]
    assert f(numbers(1), True, True).tolist() == [1]


@dataclass
class Batch:
    x: Tensor
    extra: list[Tensor]
    name: str


def test_lists_dicts_and_dataclasses() -> None:
    @jit
    def f(batch: Batch, more: dict[str, Any]) -> dict[str, Any]:
        total = batch.x + batch.extra[0] * more["scale"] + more["pair"][1]
        return {"total": total, "same": Batch(batch.x * 2, [total], batch.name), "n": 3}

    for n in range(3):
        batch = Batch(numbers(n), [numbers(10)], "b")
        result = f(batch, {"scale": 2.0 + n, "pair": (numbers(0), numbers(1))})
        assert result["total"].tolist() == [n + 10 * (2 + n) + 1]
        assert isinstance(result["same"], Batch)
        assert result["same"].x.tolist() == [2 * n]
        assert result["same"].name == "b"
        assert result["n"] == 3
    with counted() as counts:
        f(
            Batch(numbers(1), [numbers(1), numbers(2)], "b"),
            {"scale": 1.0, "pair": (numbers(0),) * 2},
        )
    assert counts["retrace"] == 1


def test_shorter_and_longer_inputs() -> None:
    f = jit(lambda x: x.cumsum(0))
    for length in (4, 2, 7, 4, 0, 2):
        x = np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(f(Tensor(x)).numpy(), np.cumsum(x))


def test_non_contiguous_and_lazy_inputs() -> None:
    f = jit(lambda x: x * 2)
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = Tensor(array)
    np.testing.assert_array_equal(f(Tensor(array[:, ::2])).numpy(), array[:, ::2] * 2)
    np.testing.assert_array_equal(f(x.T).numpy(), array.T * 2)
    np.testing.assert_array_equal(f(x[1:, 1:3]).numpy(), array[1:, 1:3] * 2)
    np.testing.assert_array_equal(f((x + 1).reshape(4, 3)).numpy(), (array + 1).reshape(4, 3) * 2)


def test_the_same_tensor_twice() -> None:
    f = jit(lambda x, y: x * 2 + y)
    a, b = numbers(1), numbers(10)
    assert f(a, a).tolist() == [3]
    assert f(a, b).tolist() == [12]
    assert f(b, b).tolist() == [30]
    with counted() as counts:
        f(a, a)
        f(b, a)
    assert counts["trace"] == 0


def test_an_input_that_is_also_closed_over() -> None:
    weight = numbers(2)
    f = jit(lambda x: x * 10 + weight)
    assert f(weight).tolist() == [22]
    assert f(numbers(1)).tolist() == [12]
    weight.assign(numbers(3))
    assert f(weight).tolist() == [33]


def test_an_input_that_is_changed_as_a_closed_over_tensor_is_an_error() -> None:
    weight = numbers(2)

    @jit
    def f(x: Tensor) -> Tensor:
        weight.assign(weight + 1)
        return x + weight

    assert f(numbers(1)).tolist() == [4]
    with pytest.raises(JitError, match="clone"):
        f(weight)
    assert f(weight.clone()).tolist() == [7]


def test_an_input_that_is_changed_inside() -> None:
    @jit
    def f(x: Tensor, y: Tensor) -> Tensor:
        x += y
        y[0] = 100.0
        return x * 2

    x, y = numbers(1, 2), numbers(10, 20)
    view = x[1:] * 1
    for n in range(1, 4):
        assert f(x, y).tolist()[1] == 2 * (2 + 20 * n)
        assert x.tolist()[1] == 2 + 20 * n
        assert y.tolist() == [100, 20]
    assert view.tolist() == [2]


def test_an_output_fed_back_partly_overlapping() -> None:
    size = 1_000_000
    f = jit(lambda x, y: (x[1:] + y[:-1], x[:-1] - y[1:]))
    x = np.arange(size, dtype=np.float32)
    y = np.ones(size, np.float32)
    a, b = Tensor(x), Tensor(y)
    for _ in range(3):
        a, b = f(a, b)
        x, y = x[1:] + y[:-1], x[:-1] - y[1:]
    np.testing.assert_array_equal(a.numpy(), x)
    np.testing.assert_array_equal(b.numpy(), y)


def test_a_numpy_array_as_argument_is_an_error() -> None:
    with pytest.raises(JitError, match="argument x is a NumPy array"):
        jit(lambda x: Tensor(x) * 2)(np.zeros(3))


def test_default_and_named_arguments() -> None:
    three = numbers(3)
    f = jit(lambda x, *, by=three, shift=0.0: x * by + shift)
    assert f(numbers(2)).tolist() == [6]
    assert f(x=numbers(2), by=numbers(5)).tolist() == [10]
    assert f(numbers(2), shift=1.5).tolist() == [7.5]
    assert f(numbers(2), shift=2.5).tolist() == [8.5]


# ---- results -------------------------------------------------------------------------------------
def test_an_earlier_result_survives_later_calls() -> None:
    f = jit(lambda x: x + 1)
    results = [f(numbers(n)) for n in range(10)]
    assert [r.item() for r in results] == list(range(1, 11))
    results[0] += 100
    assert results[1].tolist() == [2]


def test_an_output_that_is_an_input() -> None:
    weight = numbers(5)
    f = jit(lambda x: (x, x, weight, x * 1))
    x = numbers(1)
    same, again, kept, product = f(x)
    assert same is again
    same += 10
    product += 20
    kept += 30
    assert x.tolist() == [1]
    assert weight.tolist() == [5]
    assert f(x)[0].tolist() == [1]
    assert f(x)[3].tolist() == [1]


def test_equal_outputs_do_not_share_memory() -> None:
    f = jit(lambda x: (x + 1, x + 1))
    for _ in range(2):
        a, b = f(numbers(1))
        a += 5
        assert b.tolist() == [2]


def test_no_output_and_nothing_to_do() -> None:
    assert jit(lambda x: None)(numbers(1)) is None
    assert jit(lambda: 3)() == 3
    f = jit(lambda: Tensor.ones(2) * 3)
    assert f().tolist() == [3, 3]
    assert f().tolist() == [3, 3]


def test_what_is_no_tensor_and_no_value_cannot_be_returned() -> None:
    with pytest.raises(JitError, match="returns a SimpleNamespace"):
        jit(lambda x: types.SimpleNamespace(x=x))(numbers(1))


def test_a_symbolic_length_in_the_result() -> None:
    length = Variable("n", 1, 8)
    f = jit(lambda x: (x * 2, x.sum()))
    data = numbers(1, 2, 3, 4, 5, 6, 7, 8)
    with counted() as counts:
        for n in (3, 5, 8, 1):
            doubled, total = f(data[: length.bind(n)])
            assert tuple(map(int, doubled.shape)) == (n,)
            assert doubled.tolist() == [2 * k for k in range(1, n + 1)]
            assert total.item() == n * (n + 1) / 2
    assert counts["trace"] == 1


def test_a_symbolic_length_that_is_read_is_guarded() -> None:
    length = Variable("m", 1, 8)
    f = jit(lambda x: x.sum() / int(x.shape[0]))
    data = numbers(1, 2, 3, 4, 5, 6, 7, 8)
    for n in (3, 5, 3):
        assert f(data[: length.bind(n)]).item() == pytest.approx((n + 1) / 2)


# ---- state ---------------------------------------------------------------------------------------
def test_state_is_updated_inside() -> None:
    count, history = numbers(0), numbers(0, 0, 0)

    @jit
    def f(x: Tensor) -> Tensor:
        count.assign(count + 1)
        history[1] = x[0]
        count.assign(count * 2)
        return history + count

    expected = 0.0
    for n in range(4):
        expected = (expected + 1) * 2
        assert f(numbers(n)).tolist() == [expected, n + expected, expected]
        assert count.tolist() == [expected]
        assert history.tolist() == [0, n, 0]


def test_a_reader_of_state_keeps_the_old_value() -> None:
    state = numbers(1, 2)

    @jit
    def f() -> None:
        state.assign(state * 10)

    f()
    lazy = state + 1
    alias = Tensor(state)
    f()
    assert lazy.tolist() == [11, 21]
    assert alias.tolist() == [10, 20]
    assert state.tolist() == [100, 200]
    f()
    assert state.tolist() == [1000, 2000]


def test_an_attribute_that_is_rebound_inside() -> None:
    class Cell:
        def __init__(self) -> None:
            self.hidden = numbers(0)

        @jit
        def step(self, x: Tensor) -> Tensor:
            self.hidden = self.hidden * 2 + x
            return self.hidden + 0

    cell = Cell()
    total = 0.0
    for n in range(5):
        total = total * 2 + n
        assert cell.step(numbers(n)).tolist() == [total]
        assert cell.hidden.tolist() == [total]


def test_a_cache_that_grows() -> None:
    class Cache:
        def __init__(self) -> None:
            self.kept = Tensor.zeros(0, 2)

        @jit
        def push(self, x: Tensor) -> Tensor:
            self.kept = self.kept.cat(x)
            return self.kept.sum()

    cache = Cache()
    assert [cache.push(Tensor.ones(1, 2)).item() for _ in range(4)] == [2, 4, 6, 8]
    assert cache.kept.shape == (4, 2)


def test_a_tensor_of_which_only_the_shape_is_read() -> None:
    holder = types.SimpleNamespace(like=Tensor.zeros(2, 3))
    f = jit(lambda: Tensor.ones(*holder.like.shape))
    assert f().shape == (2, 3)
    holder.like = Tensor.zeros(4)
    assert f().shape == (4,)
    linear = nn.Linear(2, 2)
    g = jit(lambda x: x.cast(linear.weight.dtype))
    assert g(numbers(1)).dtype.name == "float32"
    linear.half()
    assert g(numbers(1)).dtype.name == "float16"


def test_variables_and_globals_that_are_rebound_inside() -> None:
    total = numbers(1)

    @jit
    def f(x: Tensor) -> Tensor:
        nonlocal total
        total = total + x
        return total * 2

    assert [f(numbers(1)).item() for _ in range(4)] == [4, 6, 8, 10]
    assert total.item() == 5


def test_an_optimizer_step_alone_and_clipped_gradients() -> None:
    def run(captured: bool) -> Any:
        weight = Tensor([1.0, 2.0], requires_grad=True)
        opt = nn.optim.Adam([weight], lr=0.1)

        def step() -> None:
            assert weight.grad is not None
            weight.grad = weight.grad.clip(-1.0, 1.0)
            opt.step()

        call = jit(step) if captured else step
        for _ in range(4):
            opt.zero_grad()
            (weight * weight).sum().backward()
            call()
        assert weight.grad is not None
        return weight.tolist(), weight.grad.tolist()

    assert run(True) == run(False)


def test_loops_with_numbers_and_draws_inside() -> None:
    def f(xs: Tensor, decay: float) -> Tensor:
        return scan(lambda c, x: (c * decay + x * Tensor.rand(()), c), Tensor(0.0), xs)[0]

    found = []
    for function in (f, jit(f)):
        manual_seed(5)
        found.append([function(numbers(1, 2, 3), decay).item() for decay in (0.5, 2.0, 0.25)])
    assert found[0] == found[1]


def test_a_counter_in_python_counts() -> None:
    holder = types.SimpleNamespace(calls=0)

    @jit
    def f(x: Tensor) -> Tensor:
        holder.calls += 1
        return x * holder.calls

    assert [f(numbers(1)).item() for _ in range(4)] == [1, 2, 3, 4]
    assert holder.calls == 4


def test_two_tensors_that_share_a_value_part_ways() -> None:
    first = numbers(1)
    second = Tensor(first)
    f = jit(lambda x: x + first * 10 + second)
    assert f(numbers(0)).tolist() == [11]
    second.assign(numbers(5))
    assert f(numbers(0)).tolist() == [15]
    first.assign(numbers(2))
    assert f(numbers(0)).tolist() == [25]


def test_pending_values_are_computed_before() -> None:
    pending = numbers(1, 2) * 3
    f = jit(lambda x: x + pending)
    assert f(numbers(0, 0)).tolist() == [3, 6]
    pending.assign(pending + 1)
    assert f(numbers(0, 0)).tolist() == [4, 7]


# ---- gradients -----------------------------------------------------------------------------------
def test_two_backward_passes_in_one_captured_step() -> None:
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @jit
    def step(x: Tensor) -> None:
        weight.grad = None
        (weight * x).sum().backward()
        (weight * weight).sum().backward()

    for n in range(4):
        step(numbers(n, 1))
        assert weight.grad is not None
        assert weight.grad.tolist() == [n + 2, 5]


def test_gradients_accumulate_over_calls() -> None:
    weight = Tensor([1.0], requires_grad=True)

    @jit
    def accumulate(x: Tensor) -> Tensor:
        loss = (weight * x).sum()
        loss.backward()
        return loss

    total = 0.0
    kept = []
    for n in range(1, 6):
        accumulate(numbers(n))
        total += n
        assert weight.grad is not None
        assert weight.grad.tolist() == [total]
        kept.append(weight.grad)
    assert [g.item() for g in kept] == [1, 3, 6, 10, 15]
    weight.grad = None
    accumulate(numbers(1))
    assert weight.grad.tolist() == [1]


def test_a_gradient_that_somebody_holds_is_not_overwritten() -> None:
    weight = Tensor([1.0], requires_grad=True)

    @jit
    def f(x: Tensor) -> None:
        weight.grad = None
        (weight * x).sum().backward()

    kept = []
    for n in range(5):
        f(numbers(n))
        kept.append(weight.grad)
        lazy = weight.grad * 1  # type: ignore[operator]
        f(numbers(50))
        assert lazy.tolist() == [n]
    assert [g.item() for g in kept] == [0, 1, 2, 3, 4]  # type: ignore[union-attr]


def test_backward_outside_of_a_captured_forward() -> None:
    weight = Tensor([1.0, 2.0], requires_grad=True)
    f = jit(lambda x: (x * weight * weight).sum())
    for n in range(1, 4):
        weight.grad = None
        (f(numbers(n, n)) * 2).backward()
        assert weight.grad is not None
        assert weight.grad.tolist() == [4 * n, 8 * n]


def test_backward_through_a_captured_function_in_the_middle() -> None:
    weight = Tensor([2.0], requires_grad=True)
    inner = jit(lambda h, scale: h * h * scale)
    for _ in range(3):
        weight.grad = None
        out = inner(weight * 3, 0.5)
        (out * 2).sum().backward()
        assert weight.grad is not None
        assert weight.grad.tolist() == [2 * 0.5 * 9 * 2 * 2]


def test_backward_inside_that_would_reach_outside_is_an_error() -> None:
    weight = Tensor([2.0], requires_grad=True)

    @jit
    def f(h: Tensor) -> None:
        h.sum().backward()

    with pytest.raises(JitError, match="detach"):
        f(weight * 3)


def test_an_argument_that_requires_a_gradient() -> None:
    @jit
    def f(x: Tensor) -> Tensor:
        loss = (x * x).sum()
        loss.backward()
        return loss

    x = Tensor([3.0], requires_grad=True)
    f(x)
    f(x)
    assert x.grad is not None
    assert x.grad.tolist() == [12]
    y = Tensor([4.0], requires_grad=True)
    f(y)
    assert y.grad is not None
    assert y.grad.tolist() == [8]


def test_backward_through_a_call_that_changed_its_argument() -> None:
    w = Tensor([1.0, 2.0, 3.0], requires_grad=True)

    @jit
    def f(x: Tensor) -> Tensor:
        x[0] = x[1] * 2
        return (x * x).sum()

    for _ in range(3):
        w.grad = None
        x = (w * 1.0).realize()
        loss = f(x)
        (loss + x.sum()).backward()
        assert w.grad is not None
        assert w.grad.tolist() == [0.0, 23.0, 7.0]
        assert x.tolist() == [4.0, 2.0, 3.0]


def test_gradients_of_functions_inside() -> None:
    f = jit(lambda x: grad(lambda y: (y**3).sum())(x))
    for n in range(3):
        assert f(numbers(n)).tolist() == [3 * n * n]


def test_backward_after_the_step_that_changed_the_weights_is_an_error() -> None:
    weight = Tensor([1.0], requires_grad=True)
    opt = nn.optim.SGD([weight], lr=0.1)

    @jit
    def step(x: Tensor) -> Tensor:
        opt.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        opt.step()
        return loss

    loss = step(numbers(1))
    with pytest.raises(RuntimeError, match="overwritten"):
        loss.backward()


def test_a_rate_that_changes_traces_nothing() -> None:
    weight = Tensor([1.0], requires_grad=True)
    opt = nn.optim.SGD([weight], lr=0.5)

    @jit
    def step() -> None:
        opt.zero_grad()
        weight.sum().backward()
        opt.step()

    step()
    step()
    with counted() as counts:
        for rate in (0.25, 1.0, 2.0):
            before = weight.item()
            opt.lr = rate
            step()
            assert weight.item() == before - rate
        opt.param_groups[0]["lr"] = 4.0
        before = weight.item()
        step()
        assert weight.item() == before - 4.0
    assert counts["trace"] == 0
    opt.lr = numbers(3).reshape(())
    before = weight.item()
    step()
    assert weight.item() == before - 3.0


def test_a_training_step_compiles_once_and_traces_twice() -> None:
    """(The optimizer makes its state in the first step; then nothing is new.)"""
    manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    opt = nn.optim.Adam(model.parameters())

    @jit
    def step(x: Tensor) -> Tensor:
        opt.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        opt.step()
        return loss

    with counted() as counts:
        for n in range(5):
            step(Tensor(np.full((2, 3), n, np.float32)))
    assert counts["trace"] == 2
    assert counts["schedule"] <= 2


# ---- randomness ----------------------------------------------------------------------------------
def test_draws_advance_as_they_do_uncaptured() -> None:
    def draws(function: Any) -> list[Any]:
        manual_seed(11)
        found = [function(numbers(0, 0)).tolist()]
        Tensor.rand(1)
        return found + [function(numbers(0, 0)).tolist() for _ in range(3)]

    def f(x: Tensor) -> Tensor:
        return x + Tensor.rand(2) + Tensor.randn(2)

    captured = jit(f)
    first = draws(captured)
    assert first == draws(captured) == draws(f)
    assert len({tuple(draw) for draw in first}) == 4


def test_a_draw_made_before_and_used_inside() -> None:
    noise = Tensor.rand(3)
    f = jit(lambda x: x + noise)
    first = f(Tensor.zeros(3)).tolist()
    assert f(Tensor.zeros(3)).tolist() == first == noise.tolist()


def test_seeding_inside_is_an_error() -> None:
    @jit
    def f() -> Tensor:
        manual_seed(1)
        return Tensor.rand(1)

    with pytest.raises(JitError, match="manual_seed"):
        f()


# ---- reading values ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: x.item(),
        lambda x: x.tolist(),
        lambda x: repr(x),
        lambda x: print(x),
        lambda x: float(x),
        lambda x: int(x),
        lambda x: [0, 1][x.cast("int64")],
        lambda x: 1 if x else 2,
        lambda x: x > 0 and x,
        lambda x: np.asarray(x),
        lambda x: max(x, x * 2),
    ],
)
def test_reading_a_value_is_an_error_with_the_line(read: Any) -> None:
    weight = numbers(1)

    @jit
    def f(x: Tensor) -> Tensor:
        weight.assign(weight + 1)
        read(x)
        return x

    with pytest.raises(JitError, match=r"test_traps\.py:\d+"):
        f(numbers(1))
    assert weight.tolist() == [1]


def test_the_message_says_what_the_value_depends_on() -> None:
    with pytest.raises(JitError, match="depends on argument mask"):
        jit(lambda x, mask: x if mask.sum() > 0 else -x)(numbers(1), numbers(1))


# ---- functions -----------------------------------------------------------------------------------
class Model(nn.Module):
    def __init__(self, scale: float) -> None:
        self.weight = Tensor([scale], requires_grad=True)
        self.scale = scale

    @jit
    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.scale


def test_one_decorated_method_on_two_objects() -> None:
    first, second = Model(1.0), Model(2.0)
    for _ in range(3):
        assert first(numbers(10)).tolist() == [11]
        assert second(numbers(10)).tolist() == [22]
    with counted() as counts:
        first(numbers(1))
        second(numbers(1))
    assert counts["trace"] == 0
    with no_grad():
        first.weight.assign(numbers(5))
    assert first(numbers(10)).tolist() == [51]
    assert second(numbers(10)).tolist() == [22]


def test_the_memory_of_a_method_is_asked_of_its_class() -> None:
    model, x = Model(2.0), Tensor([1.0, 2.0])
    assert Model.forward.memory(model, x).results == 8
    with pytest.raises(TypeError, match=r"forward.* missing 1 required positional argument: 'x'"):
        model.forward.memory(x)


def test_what_was_captured_for_an_object_goes_with_it() -> None:
    model = Model(1.0)
    model(numbers(1))
    weight = weakref.ref(model.weight)
    assert Model.forward.objects  # type: ignore[attr-defined]
    del model
    gc.collect()
    assert weight() is None


def test_nested_functions_are_one_program() -> None:
    inner = jit(lambda x, by: x * by)
    scale = 2.0

    @jit
    def outer(x: Tensor) -> Tensor:
        return inner(x, scale) + inner(x, 3.0)

    with counted() as counts:
        assert outer(numbers(1)).tolist() == [5]
        assert outer(numbers(2)).tolist() == [10]
    assert counts["trace"] == 1
    scale = 4.0
    assert outer(numbers(1)).tolist() == [7]


def test_recursion_is_unrolled() -> None:
    @jit
    def power(x: Tensor, n: int) -> Tensor:
        return x if n == 0 else power(x * 2, n - 1)

    assert power(numbers(1), 5).tolist() == [32]
    assert power(numbers(1), 3).tolist() == [8]

    @jit
    def endless(x: Tensor) -> Tensor:
        return endless(x + 1)

    with pytest.raises(RecursionError):
        endless(numbers(1))
    assert power(numbers(2), 3).tolist() == [16]


def test_generators_and_coroutines_are_refused() -> None:
    def pieces(x: Tensor) -> Iterator[Tensor]:
        yield x

    async def later(x: Tensor) -> Tensor:
        return x

    for function in (pieces, later):
        with pytest.raises(JitError, match="generator or a coroutine"):
            jit(function)
    with pytest.raises(JitError, match="returns a generator"):
        jit(lambda x: (x for _ in range(3)))(numbers(1))


def test_an_exception_during_the_trace_and_then_a_good_call() -> None:
    weight = Tensor([1.0], requires_grad=True)
    opt = nn.optim.Adam([weight], lr=0.1)
    state = numbers(7)
    holder = types.SimpleNamespace(broken=True)

    @jit
    def step(x: Tensor) -> Tensor:
        state.assign(state + 1)
        opt.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        opt.step()
        if holder.broken:
            raise KeyError("broken")
        return loss

    for _ in range(2):
        with pytest.raises(KeyError, match="broken"):
            step(numbers(1))
        assert weight.tolist() == [1]
        assert weight.requires_grad
        assert weight.grad is None
        assert state.tolist() == [7]
    holder.broken = False
    assert step(numbers(1)).item() == 1
    assert state.tolist() == [8]
    assert weight.item() == pytest.approx(0.9)


def test_an_index_out_of_range_changes_nothing() -> None:
    table = Tensor(np.arange(6, dtype=np.float32).reshape(3, 2), requires_grad=True)
    opt = nn.optim.SGD([table], lr=1.0)

    @jit
    def step(index: Tensor) -> Tensor:
        opt.zero_grad()
        loss = table[index].sum()
        loss.backward()
        opt.step()
        return loss

    for _ in range(2):
        step(Tensor([0, 2]))
    before = table.tolist()
    with pytest.raises(IndexError, match=r"index 3 is out of range .*test_traps\.py"):
        step(Tensor([1, 3]))
    assert table.tolist() == before
    step(Tensor([0, 2]))
    assert table.tolist()[0] == [before[0][0] - 1, before[0][1] - 1]


def test_four_threads_call_one_function() -> None:
    weight = numbers(*range(100))
    f = jit(lambda x, k: (x * weight).sum() + k)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for n in range(40):
            x = random.standard_normal(100).astype(np.float32)
            found = f(Tensor(x), float(seed)).item()
            if abs(found - (x @ np.arange(100) + seed)) > 1e-2:
                wrong.append((seed, n, found))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_with_garbage_collection_off_nothing_piles_up() -> None:
    weight = Tensor([1.0] * 50, requires_grad=True)
    opt = nn.optim.Adam([weight], lr=0.01)

    @jit
    def step(x: Tensor) -> Tensor:
        opt.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        opt.step()
        return loss

    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            step(Tensor(np.ones(50, np.float32)))
        before = sizes()
        for _ in range(50):
            step(Tensor(np.ones(50, np.float32)))
        assert sizes() == before
    finally:
        gc.enable()


def sizes() -> tuple[int, ...]:
    from treadle.engine import cell, storage
    from treadle.ir import node

    return (
        len(cell.cells), len(storage.memory.alive), len(storage.memory.buffers),
        len(node._table), storage.allocator.in_use,
    )  # fmt: skip


# ---- donation ------------------------------------------------------------------------------------
def test_a_donated_argument_is_used_up() -> None:
    f = jit(lambda x, y: x * 2 + y, donate=0)
    x, y = numbers(1, 2), numbers(10, 20)
    lazy = x + 1
    for _ in range(3):
        given = x
        x = f(x, y)
        with pytest.raises(RuntimeError, match="donated"):
            given.numpy()
    assert x.tolist() == [8 + 70, 16 + 140]
    assert lazy.tolist() == [2, 3]
    assert y.tolist() == [10, 20]


# ---- devices and knobs ---------------------------------------------------------------------------
def test_another_device_is_another_signature() -> None:
    f = jit(lambda x: x * 2)
    assert f(numbers(1)).device == "CPU"
    result = f(numbers(1).to("INTERP"))
    assert result.device == "INTERP"
    assert result.tolist() == [2]
    with pytest.raises(JitError, match="one"):
        jit(lambda x: x.to("INTERP") + 1)(numbers(1))


def test_a_kernel_with_two_parts_of_a_value_joins_another() -> None:
    """A running maximum is a pair, made by one kernel that reads what the running sum reads."""
    numbers = np.array([3, -1, 4, -1, 5, -9, 2, 6] * 16, np.float32)
    x = Tensor(numbers).realize()
    top, total = jit(lambda x: (x.cummax(0)[0].relu(), x.cumsum(0) * 2))(x)
    assert top.tolist() == np.maximum.accumulate(numbers).tolist()
    assert total.tolist() == (np.cumsum(numbers) * 2).tolist()
