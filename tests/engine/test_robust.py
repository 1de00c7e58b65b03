"""What happens when something goes wrong: bad indices, Ctrl-C, exceptions, forks, threads, disks.

The rule in every case: a clear error, nothing half-updated, and everything works afterwards.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from treadle import Tensor, config, nn, no_grad
from treadle.engine import compile as engine_compile
from treadle.engine import device, disk, programs
from treadle.engine import program as engine_program
from treadle.events import listen

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def line_of_call(frame_offset: int = 1) -> str:
    """This file and the line of the caller."""
    frame = sys._getframe(frame_offset)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def run_python(source: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh process; its output as text."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), *args],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# ---- indices out of range ------------------------------------------------------------------------
BAD_INDICES = {
    "x[..]": lambda x: x[Tensor([0, 5])],
    "gather": lambda x: x.gather(0, Tensor([[0, 5, 1, 1]])),
    "index_select": lambda x: x.index_select(0, Tensor([5])),
    "take_along_dim": lambda x: x.take_along_dim(Tensor([[5, 0, 0, 0]]), 0),
    "embedding": lambda x: Tensor([5]).embedding(x),
    "scatter": lambda x: x.scatter(0, Tensor([[5, 0, 0, 0]]), Tensor(X[:1])),
    "scatter_add": lambda x: x.scatter_add(0, Tensor([[5, 0, 0, 0]]), Tensor(X[:1])),
    "cross_entropy": lambda x: x.cross_entropy(Tensor([0, 5, 1])),
    "nll_loss": lambda x: x.nll_loss(Tensor([0, 5, 1])),
}


@pytest.mark.parametrize("device_name", ["CPU", "INTERP"])
@pytest.mark.parametrize("name", BAD_INDICES)
def test_an_index_out_of_range_names_operation_index_and_line(name, device_name):
    with config.DEVICE.set(device_name):
        result = BAD_INDICES[name](Tensor(X))
        with pytest.raises(IndexError) as caught:
            result.numpy()
    line = BAD_INDICES[name].__code__.co_firstlineno
    size = 4 if name in ("cross_entropy", "nll_loss") else 3
    expected = f"{name}: index 5 is out of range for an axis of size {size}, at {__file__}:{line}"
    assert str(caught.value) == expected


def test_an_index_below_the_first_element():
    result = Tensor(X)[Tensor([-4])]
    words = r"x\[..\]: index -4 is out of range for an axis of size 3, at "
    with pytest.raises(IndexError, match=words):
        result.numpy()
    np.testing.assert_array_equal(Tensor(X)[Tensor([-3])].numpy(), X[[-3]])


def test_one_of_several_index_tensors_is_out_of_range():
    result = Tensor(X)[Tensor([0]), Tensor([7])]  # 7 is an element of the flat array
    with pytest.raises(IndexError, match="out of range"):
        result.numpy()


def test_the_gradient_of_an_indexing_names_the_line_of_the_indexing():
    w = Tensor(X, requires_grad=True)
    picked, line = w[Tensor([0, 9])], line_of_call()
    picked.sum().backward()
    with pytest.raises(IndexError) as caught:
        w.grad.numpy()
    assert line_of_call(2) and f"at {line}" in str(caught.value)


def test_without_the_knob_indices_are_clamped():
    with config.CHECK_INDEX.set(0):
        np.testing.assert_array_equal(Tensor(X)[Tensor([0, 5])].numpy(), X[[0, 2]])
    with pytest.raises(IndexError):
        Tensor(X)[Tensor([0, 5])].numpy()


def test_an_assignment_that_fails_leaves_the_old_value():
    x = Tensor(X).realize()
    x[Tensor([1, 7])] = 5.0
    with pytest.raises(IndexError, match=r"x\[..\] = value: index 7"):
        x.numpy()
    np.testing.assert_array_equal(x.numpy(), X)
    x[Tensor([1])] = 5.0
    np.testing.assert_array_equal(x.numpy()[1], [5, 5, 5, 5])


def test_what_does_not_need_the_failed_value_is_computed():
    x = Tensor(X).realize()
    bad, good = x[Tensor([9])], x * 2
    with pytest.raises(IndexError):
        bad.realize(good)
    np.testing.assert_array_equal(good.numpy(), X * 2)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_an_optimizer_step_with_a_bad_index_changes_nothing(kind):
    table = Tensor(X, requires_grad=True)
    other = Tensor(np.ones(4, np.float32), requires_grad=True)
    options = {"momentum": 0.9} if kind == "SGD" else {}
    opt = getattr(nn.optim, kind)([table, other], lr=0.1, **options)

    def step(ids):
        opt.zero_grad()
        (Tensor(ids).embedding(table) * other).sum().backward()
        opt.step()

    step([0, 1])
    before = [table.numpy(), other.numpy()]
    with pytest.raises(IndexError, match="embedding: index 8"):
        step([0, 8])
    for tensor, old in zip((table, other), before):
        np.testing.assert_array_equal(tensor.numpy(), old)
    step([1, 2])
    again = Tensor(before[0], requires_grad=True)
    assert not np.array_equal(table.numpy(), again.numpy())
    assert np.isfinite(table.numpy()).all()


def test_a_step_after_a_failed_one_is_as_if_that_had_not_been():
    def weights(batches):
        table = Tensor(X, requires_grad=True)
        opt = nn.optim.Adam([table], lr=0.1)
        for ids in batches:
            opt.zero_grad()
            Tensor(ids).embedding(table).sum().backward()
            try:
                opt.step()
            except IndexError:
                continue
        return table.numpy()

    np.testing.assert_array_equal(weights([[0], [1]]), weights([[0], [9], [1]]))


# ---- exceptions in the middle --------------------------------------------------------------------
class Trouble(Exception):
    pass


STAGES = {
    "schedule": (programs, "make_schedule"),
    "compile": (engine_compile.Compiler, "_compile"),
    "run": (engine_program.Program, "run"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_an_exception_in_the_middle_of_a_realize(stage, monkeypatch):
    owner, name = STAGES[stage]
    length = 100 + len(stage)  # not in any cache
    x = Tensor(np.ones(length, np.float32)).realize()
    y = x * 3 + x.sum()
    x += 1

    def fail(*args, **named):
        raise Trouble

    with config.CACHE.set(0):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            with pytest.raises(Trouble):
                x.realize()
        np.testing.assert_array_equal(y.numpy(), np.full(length, 3 + length))
        np.testing.assert_array_equal(x.numpy(), np.full(length, 2))


def test_a_listener_that_raises_leaves_everything_usable():
    def fail(data):
        raise Trouble

    x = Tensor(np.ones(77, np.float32)).realize()
    y = (x * 5).sum()
    with listen("schedule", fail), pytest.raises(Trouble):
        y.numpy()
    assert y.item() == 385


# ---- Ctrl-C --------------------------------------------------------------------------------------
LONG = """
import os, sys, time
import numpy as np
from treadle import Tensor
n = 1200
w = Tensor(np.ones((n, n), np.float32)).realize()
total = w
for _ in range(40):
    total = total @ w * (1 / n)
small = Tensor(np.ones(4, np.float32)).realize()
small += total[0, :4]
print("ready", flush=True)
try:
    small.realize()
    print("was not interrupted")
except KeyboardInterrupt:
    began = time.monotonic()
    print("interrupted")
print((small - total[0, :4]).shape)
np.testing.assert_array_equal(w.numpy()[0, :3], [1, 1, 1])
np.testing.assert_array_equal((w[:2] * 2).numpy()[0, :3], [2, 2, 2])
short = w[:8] @ w
print("after", short.numpy()[0, 0])
np.testing.assert_allclose(small.numpy(), np.full(4, 2.0), rtol=1e-4)
print("finished")
"""


@pytest.mark.parametrize("portable", ["0", "1"])
def test_ctrl_c_in_a_long_realize(portable, tmp_path):
    environment = {**os.environ, "PORTABLE_POOL": portable, "CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", LONG], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.splitlines()[0] == "interrupted"
    assert output.splitlines()[-1] == "finished"


# ---- processes and threads -----------------------------------------------------------------------
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_and_its_parent_both_compute():
    source = """
    import os
    import numpy as np
    from treadle import Tensor
    x = Tensor(np.ones((500, 500), np.float32)).realize()
    y = (x @ x).realize()
    read, write = os.pipe()
    child = os.fork()
    value = (y + (x @ x).sum(0)).numpy()[0, 0]
    if child == 0:
        os.write(write, str(value).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(read, 100).decode() == str(value) == "250500.0", value
    print("both")
    """
    done = run_python(source)
    assert done.stdout == "both\n", done.stderr


def test_threads_compute_at_the_same_time():
    results: dict[int, np.ndarray] = {}
    shared = Tensor(X)
    errors: list[BaseException] = []

    def work(number):
        try:
            for step in range(15):
                x = Tensor(np.full((number + 2, 9), step, np.float32))
                results[number] = (x.softmax(1) * number + x.sum() + shared.sum()).numpy()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    for number in range(4):
        expected = np.full((number + 2, 9), number / 9 + 14 * 9 * (number + 2) + X.sum())
        np.testing.assert_allclose(results[number], expected, rtol=1e-5)


SAME_BITS = """
import hashlib
import numpy as np
from treadle import Tensor
rng = np.random.default_rng(0)
def make(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))
a, b, v = make(300, 400), make(400, 200), make(3_000_000)
images, kernel = make(8, 3, 30, 30), make(16, 3, 3, 3)
ids = Tensor(rng.integers(0, 50, (20_000, 1)).repeat(4, 1))
results = {
    "matmul": a @ b, "sum": v.sum(), "sum rows": a.sum(1), "sum columns": a.sum(0),
    "softmax": a.softmax(1), "conv": images.conv2d(kernel, padding=1), "var": v.var(),
    "scatter_add": Tensor.zeros(50, 4).scatter_add(0, ids, make(20_000, 4)),
    "argmax": v.argmax(), "norm": images.layer_norm((30,)), "dot": v[:100_000] @ v[:100_000],
}
for name, value in results.items():
    print(name, hashlib.sha256(value.numpy().tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def bits_of_one_thread(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("cache"))
    done = run_python(SAME_BITS, THREADS="1", CACHE_DIR=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.mark.parametrize(
    "knobs", [{"THREADS": "2"}, {"THREADS": "4"}, {"PORTABLE_POOL": "1"}], ids=str
)
def test_the_number_of_threads_changes_no_bit(bits_of_one_thread, knobs):
    folder, expected = bits_of_one_thread
    done = run_python(SAME_BITS, CACHE_DIR=folder, **knobs)
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected


# ---- the disk cache ------------------------------------------------------------------------------
SOFTMAX = """
import sys
import numpy as np
from treadle import Tensor
from treadle.events import listen
seen = {"compile": 0, "cache.hit": 0, "cache.damaged": 0}
def count(data):
    seen[data["event"]] += data.get("kernels", 1)
x = np.arange(24, dtype=np.float32).reshape(4, 6) / 7
with listen("compile", count), listen("cache.hit", count), listen("cache.damaged", count):
    y = Tensor(x).softmax(1).numpy() + Tensor(x).sum().numpy()
e = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(1, keepdims=True) + x.sum(), rtol=1e-5)
print(seen["compile"], seen["cache.hit"], seen["cache.damaged"])
"""


def softmax(folder, **environment) -> tuple[int, int, int]:
    """(kernels compiled, kernels found on disk, damaged files) of a process."""
    done = run_python(SOFTMAX, CACHE_DIR=str(folder), **environment)
    assert done.returncode == 0, done.stderr
    compiled, found, damaged = map(int, done.stdout.split())
    return compiled, found, damaged


def test_a_second_process_compiles_nothing(tmp_path):
    compiled, found, _ = softmax(tmp_path)
    assert (compiled > 0, found) == (True, 0)
    assert softmax(tmp_path) == (0, compiled, 0)


def test_two_processes_with_an_empty_cache(tmp_path):
    command = [sys.executable, "-c", SOFTMAX]
    environment = {**os.environ, "CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    compiled, found, damaged = softmax(tmp_path)
    assert (compiled, damaged) == (0, 0)
    assert found > 0


@pytest.mark.parametrize("suffix", ["code", "json", "text"])
def test_damaged_entries_are_made_again(tmp_path, suffix):
    compiled, _, _ = softmax(tmp_path)
    files = list(tmp_path.glob(f"*.{suffix}"))
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    again, _, damaged = softmax(tmp_path)
    assert damaged > 0
    assert again == (0 if suffix == "text" else compiled)
    assert softmax(tmp_path) == (0, compiled, 0)


def test_missing_code_is_made_again(tmp_path):
    compiled, _, _ = softmax(tmp_path)
    for path in tmp_path.glob("*.code"):
        path.unlink()
    assert softmax(tmp_path)[0] == compiled


def test_killed_while_it_compiles(tmp_path):
    source = SOFTMAX.replace("seen = {", "print('begin', flush=True)\nseen = {", 1)
    for delay in (0.02, 0.08, 0.2):
        process = subprocess.Popen(
            [sys.executable, "-c", source],
            env={**os.environ, "CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"begin\n"
        time.sleep(delay)
        process.kill()
        process.communicate()
    compiled, found, damaged = softmax(tmp_path)
    assert compiled + found > 0
    assert damaged == 0
    assert softmax(tmp_path)[0] == 0


def test_the_cache_can_be_turned_off(tmp_path):
    compiled, found, _ = softmax(tmp_path, CACHE="0")
    assert (compiled > 0, found) == (True, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert softmax(blocked)[0] > 0


def kernel_keys() -> set[str]:
    """The names under which the kernels of a softmax are looked for."""
    names: set[str] = set()
    original = disk.read

    def read(name):
        names.add(name)
        return original(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "read", read)
        backend = device.backend("CPU")
        patch.setattr(programs, "kept", type(programs.kept)())
        patch.setattr(programs, "compilers", {"CPU": engine_compile.Compiler(backend, "llvm")})
        Tensor(X).softmax(1).numpy()
    return {name for name in names if name.endswith(".json")}


def changed_target(monkeypatch):
    backend = device.backend("CPU")
    target = type(backend.target)(**{**vars(backend.target), "features": "+none"})
    changed = type(backend)(**{**vars(backend), "target": target})
    monkeypatch.setattr(device, "backend", lambda name: changed)


def changed_code_key(monkeypatch):
    backend = device.backend("CPU")
    changed = type(backend)(**{**vars(backend), "code_key": "another version"})
    monkeypatch.setattr(device, "backend", lambda name: changed)


def changed_source(monkeypatch):
    monkeypatch.setattr(engine_compile, "source_digest", lambda plugin: "another source")


def changed_format(monkeypatch):
    monkeypatch.setattr(engine_compile, "FORMAT", "0")


CODE_KNOBS = [name for name, knob in config.KNOBS.items() if knob.changes_code]


@pytest.mark.filterwarnings("ignore:other has no tuned schedules")
@pytest.mark.parametrize("name", CODE_KNOBS)
def test_a_knob_that_changes_code_is_a_miss(name, tmp_path):
    with config.CACHE_DIR.set(str(tmp_path)):
        before = kernel_keys()
        knob = config.KNOBS[name]
        with knob.set(1 - int(knob.value) if isinstance(knob.value, int) else "other"):
            assert kernel_keys().isdisjoint(before)
        assert kernel_keys() == before


def test_some_knob_changes_code():
    assert "CHECK_INDEX" in CODE_KNOBS


@pytest.mark.parametrize(
    "change",
    [changed_target, changed_code_key, changed_source, changed_format],
    ids=lambda f: f.__name__,
)
def test_what_decides_the_code_is_in_the_key(change, tmp_path):
    with config.CACHE_DIR.set(str(tmp_path)):
        before = kernel_keys()
        with pytest.MonkeyPatch.context() as patch:
            change(patch)
            assert kernel_keys().isdisjoint(before)
        assert kernel_keys() == before


def test_nothing_is_left_pending_by_no_grad():
    """no_grad() is undone when its block raises."""
    w = Tensor(X, requires_grad=True)
    with pytest.raises(Trouble), no_grad():
        raise Trouble
    (w * 2).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), np.full_like(X, 2))
