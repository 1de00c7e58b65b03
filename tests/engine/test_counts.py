"""How much runs: kernels, compilations, schedules, work, memory. Counted, never timed."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from treadle import Tensor, Variable, config, nn, scan
from treadle.backend.interp import program as interpreter
from treadle.engine import device, programs, storage
from treadle.engine.cell import cells
from treadle.events import listen
from treadle.ir import node as nodes
from treadle.ir import ops
from treadle.nn.optimizer import zeros
from treadle.schedule.plan import Schedule

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "examples"))
RNG = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


class Counts:
    """What happened inside `counting()`."""

    def __init__(self) -> None:
        self.schedules: list[Schedule] = []
        self.compiled = 0
        self.lines = 0
        self.found = 0

    @property
    def kernels(self) -> int:
        """Launches that were scheduled."""
        return sum(len(list(schedule.calls())) for schedule in self.schedules)

    @property
    def distinct(self) -> int:
        return len({call.kernel for schedule in self.schedules for call in schedule.calls()})

    @property
    def phases(self) -> int:
        return sum(len({call.phase for call in schedule.calls()}) for schedule in self.schedules)

    @property
    def nothing_new(self) -> bool:
        """Nothing was scheduled, compiled, or looked for on disk."""
        return not (self.schedules or self.compiled or self.found)

    def on_schedule(self, data):
        self.schedules.append(data["schedule"])

    def on_compile(self, data):
        self.compiled += data["kernels"]
        self.lines += data["lines"]

    def on_hit(self, data):
        self.found += 1


@contextmanager
def counting() -> Iterator[Counts]:
    """Counts what is scheduled and compiled in the block."""
    counts = Counts()
    with (
        listen("schedule", counts.on_schedule),
        listen("compile", counts.on_compile),
        listen("cache.hit", counts.on_hit),
    ):
        yield counts


@pytest.fixture
def nothing_cached(monkeypatch):
    """As in a fresh process with an empty disk cache."""
    monkeypatch.setattr(programs, "kept", type(programs.kept)())
    monkeypatch.setattr(programs, "compilers", {})
    with config.CACHE.set(0):
        yield


# ---- one kernel ----------------------------------------------------------------------------------
ONE_KERNEL = {
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1),
    "layer_norm": lambda x: x.layer_norm((40,), Tensor(normal(40)), Tensor(normal(40))),
    "rms_norm": lambda x: x.rms_norm((40,)),
    "cross_entropy": lambda x: x.cross_entropy(Tensor(np.arange(24) % 40)),
    "cross_entropy each": lambda x: x.cross_entropy(Tensor(np.arange(24) % 40), reduction="none"),
    "matmul bias gelu": lambda x: (x @ Tensor(normal(40, 16)) + Tensor(normal(16))).gelu(),
    "linear gelu": lambda x: x.linear(Tensor(normal(16, 40)), Tensor(normal(16))).gelu("tanh"),
    "variance": lambda x: x.var(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "conv relu": lambda x: (
        x.reshape(2, 3, 8, 20).conv2d(Tensor(normal(4, 3, 3, 3)), Tensor(normal(4))).relu()
    ),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_is_one_kernel(name, nothing_cached):
    x = Tensor(normal(24, 40))
    with counting() as counts:
        ONE_KERNEL[name](x).realize()
    assert counts.kernels == 1


UNARY = (
    lambda x: x * 0.5, lambda x: x.tanh(), lambda x: x.relu(), lambda x: (x * 0.1).exp(),
    lambda x: x.abs() + 1, lambda x: -x, lambda x: x * x,
)  # fmt: skip
BINARY = (
    lambda x, y: x - y, lambda x, y: x + y, lambda x, y: x * y * 0.1,
    lambda x, y: x / (y.abs() + 1), lambda x, y: x.maximum(y),
    lambda x, y: (x > y).where(x, y * 0.5),
)  # fmt: skip
REDUCTIONS = ("sum", "max", "min", "mean")


def row_expression(rng: random.Random, x: Tensor) -> Tensor:
    """Three reductions over the last axis, each of what the ones before it made."""
    value = x
    for _ in range(3):
        value = rng.choice(UNARY)(value)
        row = getattr(value, rng.choice(REDUCTIONS))(-1, keepdim=True)
        value = rng.choice(BINARY)(value, row)
        if rng.random() < 0.4:
            value = rng.choice(BINARY)(value, x)
    return value if rng.random() < 0.8 else value.sum(-1)


@pytest.mark.parametrize("seed", range(25))
def test_a_row_expression_of_three_reductions_is_one_kernel(seed):
    array = normal(12, 33)
    with counting() as counts:
        result = row_expression(random.Random(seed), Tensor(array)).numpy()
    if counts.schedules:  # another seed may have made the same
        assert counts.kernels == 1
    judge = row_expression(random.Random(seed), Tensor(array.astype(np.float64))).numpy()
    np.testing.assert_allclose(result, judge, rtol=1e-3, atol=1e-4)


# ---- optimizers ----------------------------------------------------------------------------------
SHAPES = [
    (3, 4), (5,), (7, 2, 3), (1,), (33,), (64, 64), (10,), (2, 2, 2, 2), (9, 9), (128,), (17, 3),
    (6,), (8,), (12, 12), (100,), (4, 5, 6), (3, 3), (50,), (11,), (13, 2),
]  # fmt: skip


class Wobble(nn.optim.Optimizer):
    """An optimizer that nobody has heard of."""

    def __init__(self, params, lr=0.1, pull=0.3):
        super().__init__(params, {"lr": lr, "pull": pull})

    def start(self, parameter, group):
        return {"trace": zeros(parameter)}

    def numbers(self, step, group):
        return {"warm": 1 - 0.5**step}

    def update(self, parameter, gradient, state, group, rate, numbers):
        trace = (state["trace"] * group["pull"] + gradient).tanh()
        step = trace * numbers["warm"] / (gradient.abs() + 1).sqrt()
        return parameter - rate * step, {"trace": trace}


def parameters() -> list[Tensor]:
    """Twenty of different shapes, with their gradients in memory."""
    found = [Tensor(normal(*shape), requires_grad=True) for shape in SHAPES]
    for parameter in found:
        parameter.grad = Tensor(normal(*parameter.shape)).realize()
    Tensor.realize(*found)
    return found


@pytest.mark.parametrize("kind", [nn.optim.Adam, nn.optim.AdamW, nn.optim.SGD, Wobble])
def test_an_optimizer_step_is_few_bodies_and_one_phase(kind, nothing_cached):
    opt = kind(parameters(), lr=0.1)
    with counting() as first:
        opt.step()
    assert first.distinct <= 3
    assert first.compiled <= 3
    assert first.phases == 1
    assert first.kernels <= len(SHAPES) + 1
    for rate in (0.05, 0.025):
        opt.lr = rate
        with counting() as later:
            opt.step()
        assert later.nothing_new


def test_a_made_up_optimizer_computes_what_it_says():
    (parameter, *_) = found = parameters()
    weight, gradient = (t.numpy().astype(np.float64) for t in (parameter, parameter.grad))
    opt = Wobble(found, lr=0.1)
    trace = np.zeros_like(weight)
    for step in (1, 2, 3):
        opt.lr = 0.1 / step
        opt.step()
        trace = np.tanh(trace * 0.3 + gradient)
        weight -= 0.1 / step * trace * (1 - 0.5**step) / np.sqrt(np.abs(gradient) + 1)
    np.testing.assert_allclose(parameter.numpy(), weight, rtol=1e-5, atol=1e-6)


# ---- training steps ------------------------------------------------------------------------------
BATCH = 16


class Training:
    """The demo's network and a batch."""

    def __init__(self) -> None:
        digits = pytest.importorskip("digits", reason="examples/digits.py needs pillow and tqdm")
        self.model = digits.Convnet()
        self.model.train()
        self.opt = nn.optim.Adam(self.model.parameters(), lr=0.001)

    def step(self, read: bool) -> None:
        images, labels = Tensor(normal(BATCH, 1, 28, 28)), Tensor(RNG.integers(0, 10, BATCH))
        self.opt.zero_grad()
        loss = self.model(images).cross_entropy(labels)
        loss.backward()
        self.opt.step()
        if read:
            loss.item()


def test_the_training_step_of_the_convnet():
    training = Training()
    largest_activation = BATCH * 32 * 24 * 24
    with counting() as first:
        training.step(read=True)
    step = max(first.schedules, key=lambda schedule: len(schedule.items))
    assert 20 <= len(list(step.calls())) <= 34
    for schedule in first.schedules:
        for info in schedule.buffers:
            assert ops.numel(info.shape) <= largest_activation
    # results before a relu are not kept: its gradient asks the results after it
    kept = [ops.numel(b.shape) for b in step.buffers if b.role == "temporary"]
    assert kept.count(largest_activation) == 2  # of the first layer, and their gradient
    with counting() as second:
        training.step(read=True)
        training.step(read=True)
    assert second.nothing_new


def test_a_loop_that_never_reads_its_loss_keeps_constant_memory():
    training = Training()

    def held() -> tuple[int, ...]:
        gc.collect()
        memory = storage.memory
        return (
            len(nodes._table), len(cells), len(memory.buffers), len(memory.history),
            len(memory.deferred), len(memory.versions), storage.allocator.in_use,
            len(programs.kept),
        )  # fmt: skip

    for _ in range(3):
        training.step(read=False)
    before, peak = held(), storage.allocator.peak
    with counting() as counts:
        for _ in range(5):
            training.step(read=False)
    assert counts.nothing_new
    assert held() == before
    assert storage.allocator.peak == peak


def test_a_batch_of_another_size_is_scheduled_once():
    weight = Tensor(normal(8, 4), requires_grad=True)

    def step(rows):
        weight.grad = None
        (Tensor(normal(rows, 8)) @ weight).relu().sum().backward()
        return weight.grad.numpy()

    step(5)
    with counting() as counts:
        step(6)
    assert len(counts.schedules) == 1
    with counting() as counts:
        step(5)
        step(6)
    assert counts.nothing_new


# ---- symbolic shapes -----------------------------------------------------------------------------
def of_length(x: Tensor) -> tuple[Tensor, ...]:
    """A few things computed along a first axis of any length."""
    weight = Tensor(np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4))
    return (
        (x @ weight).gelu().softmax(1), x.sum(0), x.softmax(0), (x @ x.T).sum(), x.cumsum(0),
        x.layer_norm((8,)).max(0),
    )  # fmt: skip


def test_two_bindings_of_a_variable():
    """Neither scheduled nor compiled again, with the results of static shapes."""
    rows = Variable("T", 1, 64)
    array = normal(64, 8)
    x = Tensor(array)
    with counting() as first:
        Tensor.realize(*of_length(x[: rows.bind(17)]))
    assert len(first.schedules) == 1
    for length in (64, 1, 33):
        with counting() as later:
            found = of_length(x[: rows.bind(length)])
            Tensor.realize(*found)
        assert later.nothing_new
        for one, other in zip(found, of_length(Tensor(array[:length]))):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


def test_two_bindings_with_gradients():
    rows = Variable("S", 1, 50)
    array, weights = normal(50, 6), normal(6, 3)

    def gradient(x):
        weight = Tensor(weights, requires_grad=True)
        (x @ weight).tanh().sum().backward()
        return weight.grad

    gradient(Tensor(array)[: rows.bind(3)]).realize()
    for length in (50, 20):
        with counting() as counts:
            found = gradient(Tensor(array)[: rows.bind(length)]).numpy()
        assert counts.nothing_new
        want = gradient(Tensor(array[:length])).numpy()
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def elements_read(length: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many elements the interpreter reads for a softmax and a sum over `length` rows."""
    read = interpreter._STEPS[ops.READ]
    count = 0

    def counted(thread, node):
        nonlocal count
        count += node.dtype.lanes
        return read(thread, node)

    x = Tensor(np.ones((4096, 8), np.float32), device="INTERP")
    rows = Variable("R", 1, 4096)
    with monkeypatch.context() as patch:
        patch.setitem(interpreter._STEPS, ops.READ, counted)
        x[: rows.bind(length)].softmax(1).sum(0).realize()
    return count


def test_work_is_proportional_to_the_bound_value(monkeypatch):
    ten, twenty, eighty = (elements_read(n, monkeypatch) for n in (10, 20, 80))
    each = (twenty - ten) / 10
    assert each > 0
    assert abs(eighty - twenty - 60 * each) <= 0.2 * eighty
    assert eighty < 10 * ten


# ---- scan ----------------------------------------------------------------------------------------
def scan_and_gradient(steps: int) -> tuple[Counts, np.ndarray, np.ndarray]:
    xs = np.sin(np.arange(steps * 8, dtype=np.float32)).reshape(steps, 2, 4)
    weight = Tensor(np.eye(4, dtype=np.float32) * 0.5 + 0.1, requires_grad=True)

    def step(carry, x):
        carry = (carry @ weight + x).tanh()
        return carry, carry.sum()

    with counting() as counts:
        last, _ = scan(step, Tensor(np.zeros((2, 4), np.float32)), Tensor(xs))
        last.sum().backward()
        Tensor.realize(last, weight.grad)
    return counts, last.numpy(), xs


def test_a_scan_of_2_and_of_1000_steps_have_equal_numbers_of_lines(monkeypatch):
    found = {}
    for steps in (2, 1000):
        monkeypatch.setattr(programs, "kept", type(programs.kept)())
        monkeypatch.setattr(programs, "compilers", {})
        with config.CACHE.set(0):
            counts, last, xs = scan_and_gradient(steps)
        carry = np.zeros((2, 4))
        for x in xs:
            carry = np.tanh(carry @ (np.eye(4) * 0.5 + 0.1) + x)
        np.testing.assert_allclose(last, carry, rtol=1e-4, atol=1e-5)
        found[steps] = counts
    assert found[2].lines == found[1000].lines > 0
    assert found[2].kernels == found[1000].kernels
    assert found[2].compiled == found[1000].compiled


# ---- equal kernels -------------------------------------------------------------------------------
def test_equal_kernels_are_compiled_once(nothing_cached):
    x = Tensor(normal(16, 16))
    weights = [Tensor(normal(16, 16)) for _ in range(6)]
    for weight in weights:
        x = (x @ weight).softmax(1)
    with counting() as counts:
        x.realize()
    assert counts.kernels >= len(weights)
    assert counts.distinct <= 2
    assert counts.compiled == counts.distinct


def test_a_device_has_a_backend_once():
    assert device.backend("CPU") is device.backend("CPU")


# ---- sorting -------------------------------------------------------------------------------------
def test_what_sorting_and_running_sums_cost(nothing_cached):
    size = 1 << 16
    x = Tensor(normal(size)).realize()
    with counting() as sums:
        x.cumsum(0).realize()
    assert sums.kernels <= 10
    assert max(schedule.arena for schedule in sums.schedules) <= 4 * size // 8
    with counting() as sort:
        x.sort()[0].realize()
    assert sort.kernels <= 30
    assert max(schedule.arena for schedule in sort.schedules) <= 9 * 4 * size
    with counting() as longer:
        Tensor(normal(4 * size)).sort()[0].realize()
    assert longer.kernels <= sort.kernels + 4  # a level more of the running sum


# ---- what is computed a second time --------------------------------------------------------------
def newton(x: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    x = x - (x * x - wanted) / (2 * x)
    return x, (x * x - wanted).abs().max()


def in_place(x: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    x -= (x * x - wanted) / (2 * x)
    return x, (x * x - wanted).abs().max()


def read_of_the_step_before(x: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    return x - (x * x - wanted) / (2 * x), (x * x - wanted).abs().max()


@pytest.mark.parametrize("step", [newton, in_place, read_of_the_step_before])
def test_a_loop_that_reads_a_value_has_few_programs(step):
    """What its steps hold is kept when it is computed again, although nobody reads it: the graphs
    do not grow."""
    wanted = Tensor([2.0, 3.0, 5.0], dtype="float64").realize()
    x = Tensor([1.0, 1.5, 2.0], dtype="float64").realize() * 1
    errors = []
    with counting() as c:
        for _ in range(12):
            x, error = step(x, wanted)
            errors.append(error.item())
    assert len(c.schedules) <= 4
    assert errors[-1] < 1e-15
    np.testing.assert_allclose(x.numpy(), np.sqrt([2.0, 3.0, 5.0]), rtol=1e-15)


def test_what_is_computed_once_on_the_way_is_not_stored():
    x = Tensor(normal(8, 8)).realize()
    y = (x @ x).exp()
    total = y.sum()
    total.item()
    assert not y.is_realized
    y.mean().item()
    assert y.is_realized
    assert not y.T.is_realized


def test_what_is_kept_has_its_gradient():
    w = Tensor([1.0, 2.0], requires_grad=True)
    y = w * w
    assert y.sum().item() == 5
    z = y.exp()
    assert abs(z.sum().item() - np.exp([1, 4]).sum()) < 1e-3
    assert y.is_realized
    (z * y).sum().backward()
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(w.grad.numpy(), 2 * x * np.exp(x * x) * (1 + x * x), rtol=1e-5)
