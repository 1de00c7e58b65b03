"""Every shared name against PyTorch, on PyTorch's own sample inputs.

    python tools/parity.py                 all names; writes tools/parity.txt and docs/parity.md
    python tools/parity.py softmax sort    these names, with every miss
    python tools/parity.py --write sort    and write what became of them, beside the other names
    python tools/parity.py --check         fail if a name passes fewer samples than parity.txt says
                                           (any run prints what fell; this one writes nothing)
    python tools/parity.py --record        some samples of every name, for `make test`

A *sample* is one call of `torch.testing._internal.common_methods_invocations.op_db`, in one dtype:
its value, and for floating dtypes the gradient of every input for a random cotangent (complex ones
by `--dtypes complex64,complex128`). Values are judged in dtype, shape, and number (within the
rounding of the dtype). Where PyTorch rounds on the
way (halves mostly), its own answer in float64 for the same numbers, rounded once, counts as well;
how often only that agreed is written beside. It runs on the interpreter, which gives the meaning
of every operation; `--device CPU` runs it compiled. `make test` tries what was recorded
(tests/face/test_recorded.py), `make test-full` a part of all (tests/parity/test_samples.py).

`parity_rules.py` has the tables of what is called and compared, `parity_calls.py` the judgement.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import parity_rules as rules
from parity_calls import Array, Call, Expected, Slow, Writer, flat, judge

from treadle import config, nn

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ROOT / "tools" / "parity.txt"
PAGE = ROOT / "docs" / "parity.md"
RECORDED = ROOT / "tests" / "face" / "recorded.npz"
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool")
SECONDS = 20  # of processor time for one sample: that others run beside it counts for nothing
PATIENCE = 6  # samples of one name that may be too slow; then the rest counts as missed
SAMPLES = 48  # of one name and dtype; of more, every n-th
DRAWS = 60  # how often PyTorch is asked whether what it draws is always the same
ELEMENTS = 2000  # of a sample that is recorded


@dataclass
class Tally:
    """What became of the samples of one name. once: how many agree only with what PyTorch gives
    in float64."""

    total: int = 0
    passed: int = 0
    gradients: int = 0
    once: int = 0
    misses: Counter[str] = field(default_factory=Counter)
    slow: int = 0

    @property
    def rate(self) -> float:
        return self.passed / self.total if self.total else 0.0


def known_names() -> dict[str, list[Any]]:
    """The names of op_db that treadle has, with their variants."""
    from torch.testing._internal.common_methods_invocations import op_db

    names: dict[str, list[Any]] = {}
    for info in op_db:
        if info.name not in rules.SKIPPED and rules.resolve(info.name) is not None:
            names.setdefault(info.name, []).append(info)
    return dict(sorted(names.items()))


# ---- PyTorch's side ------------------------------------------------------------------------------
def _stable(x: Any, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    import torch

    return torch.sort(x, dim=dim, descending=descending, stable=True)


def _ctc_loss(x: Any, *arguments: Any, **named: Any) -> Any:
    import torch

    return torch.nn.functional.ctc_loss(x.log_softmax(-1), *arguments, **named)


# how PyTorch is called, if not by the name: sorting is stable here, which PyTorch's is if asked
PYTORCH: dict[str, Callable[..., Any]] = {
    "sort": _stable,
    "argsort": lambda *a, **k: _stable(*a, **k)[1],
    "msort": lambda x: _stable(x, 0)[0],
    "nn.functional.ctc_loss": _ctc_loss,
}


def array_of(value: Any) -> Array:
    """A tensor of PyTorch's as an Array."""
    import torch

    name = str(value.dtype).removeprefix("torch.")
    wants = value.requires_grad
    value = value.detach().resolve_conj().resolve_neg()
    value = value.to(torch.complex64) if name == "complex32" else value
    numbers = (value.float() if name == "bfloat16" else value).numpy(force=True)
    return Array(np.array(numbers), name, wants)


def neutral(value: Any, wants: bool, leaves: list[Any]) -> Any:
    """An argument of PyTorch's without PyTorch in it; `leaves` gets what asks for a gradient."""
    import torch

    if isinstance(value, torch.Tensor):
        made = array_of(value)
        made.requires_grad = wants and value.requires_grad
        if made.requires_grad:
            leaves.append(value)
        return made
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, torch.nn.PairwiseDistance):
        return nn.functional.pairwise_distance
    if isinstance(value, list | tuple):
        return type(value)([neutral(each, wants, leaves) for each in value])
    if isinstance(value, dict):
        return {key: neutral(each, wants, leaves) for key, each in value.items()}
    return value


NOT_GIVEN = ("device", "layout", "memory_format", "pin_memory", "generator", "out")


def call_of(info: Any, sample: Any) -> tuple[Call, list[Any]]:
    """A sample as a call, and PyTorch's tensors that ask for a gradient in it."""
    leaves: list[Any] = []
    named = {key: each for key, each in sample.kwargs.items() if key not in NOT_GIVEN}
    arguments = neutral((sample.input, *sample.args), True, leaves)
    named = neutral(named, True, leaves)
    if info.name in rules.IN_PLACE:
        leaves.clear()
    return Call(info.name, arguments, named), leaves


def run_theirs(info: Any, sample: Any) -> Any:
    function = PYTORCH.get(info.name, info.op)
    return function(sample.input, *sample.args, **sample.kwargs)


def _is_drawn(info: Any, sample: Any) -> bool:
    """Whether PyTorch's result differs from draw to draw."""
    import torch

    first: list[Any] = []
    reseed = torch.manual_seed
    # op_db's functions call manual_seed(42) themselves, which is left out here
    with patch.object(torch, "manual_seed", lambda seed: None):
        for seed in range(DRAWS):
            reseed(seed)
            every = flat(run_theirs(info, sample))
            found = [each for each in every if isinstance(each, torch.Tensor)]
            first = first or found
            if not all(map(torch.equal, first, found)):
                return True
    return False


def expect(info: Any, sample: Any, leaves: list[Any], narrow: Expected | None = None) -> Expected:
    """What PyTorch gives for a sample. narrow: what it gave in a narrower dtype, in which its
    results are to be, for the same cotangents."""
    import torch

    try:
        result = run_theirs(info, sample)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return Expected(error=str(error).splitlines()[0][:60])
    results = flat(rules.THEIRS.get(info.name, lambda r: r)(result))
    if info.name in rules.UNIQUE:
        results = flat(rules.UNIQUE[info.name](results))
    values = info.name not in rules.UNDEFINED
    values = values and not (info.name in rules.RANDOM and _is_drawn(info, sample))
    expected = Expected(
        [
            _in_dtype(each, narrow.results[n] if narrow else None)
            if isinstance(each, torch.Tensor)
            else neutral(each, False, [])
            for n, each in enumerate(results)
        ],
        values=values,
    )
    flowing = [isinstance(each, torch.Tensor) and each.requires_grad for each in results]
    if not values or not leaves or not any(flowing):
        expected.cotangents = [None] * len(results)
        return expected
    expected.cotangents = narrow.cotangents if narrow else _cotangents(results, flowing)
    try:
        found = torch.autograd.grad(
            [each for each, flows in zip(results, flowing, strict=True) if flows],
            leaves,
            [
                torch.tensor(c.values, dtype=each.dtype)
                for c, each in zip(expected.cotangents, results, strict=True)
                if c is not None
            ],
            allow_unused=True,
        )
    except NotImplementedError:  # some have no derivative in halves
        expected.cotangents = [None] * len(results)
        return expected
    expected.gradients = [
        None if each is None else _in_dtype(each, narrow.gradients[n] if narrow else None)
        for n, each in enumerate(found)
    ]
    if info.name in rules.FACTORS:
        _leave_triangle(info.name, sample, leaves, expected)
    return expected


def _in_dtype(value: Any, narrow: Any) -> Array:
    """A result of PyTorch's, rounded to the dtype that it has in the narrower call."""
    import torch

    if isinstance(narrow, Array):
        value = value.detach().to(getattr(torch, narrow.dtype))
    return array_of(value.detach())


def _cotangents(results: list[Any], flowing: list[bool]) -> list[Array | None]:
    import torch

    drawn = np.random.default_rng(7)
    found: list[Array | None] = []
    for each, flows in zip(results, flowing, strict=True):
        if not flows:
            found.append(None)
            continue
        numbers = drawn.standard_normal(tuple(each.shape))
        if each.dtype.is_complex:
            numbers = numbers + 1j * drawn.standard_normal(numbers.shape)
        found.append(array_of(torch.tensor(numbers).to(each.dtype)))
    return found


def _leave_triangle(name: str, sample: Any, leaves: list[Any], expected: Expected) -> None:
    """Zeros for the derivative by the triangle of a factor that is not read."""
    import torch

    factor, position = rules.FACTORS[name]
    every = (sample.input, *sample.args)
    default = every[position] if len(every) > position else False
    upper = sample.kwargs.get("upper", default)
    for n, leaf in enumerate(leaves):
        gradient = expected.gradients[n]
        if leaf is every[factor] and gradient is not None:
            part = (torch.triu if upper else torch.tril)(torch.tensor(gradient.values))
            gradient.values = part.numpy()


def _wider(info: Any, sample: Any, dtype: str) -> Any:
    """The sample with float64 for the dtype, or None where that is no standard to judge by."""
    import torch

    kind = getattr(torch, dtype)
    if dtype == "float64" or not (kind.is_floating_point or info.name in rules.AS_FLOATS):
        return None
    wide = torch.float64 if kind.is_floating_point else torch.float32

    def widened(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != kind:
            return value
        return value.detach().to(wide).requires_grad_(value.requires_grad)

    return sample.transform(widened)


def try_sample(info: Any, sample: Any, dtype: str, device: str) -> tuple[str, bool, bool]:
    """(how a sample misses, or ""; whether gradients were compared; whether it agrees only with
    PyTorch's float64)."""
    call, leaves = call_of(info, sample)
    expected = expect(info, sample, leaves)
    miss, compared = judge(call, expected, device)
    if not miss.endswith("other numbers"):
        return miss, compared, False
    wider = _wider(info, sample, dtype)
    if wider is None:
        return miss, compared, False
    found = expect(info, wider, call_of(info, wider)[1], expected)
    again, compared = judge(call, found, device)
    return (miss, compared, False) if again else ("", compared, True)


def samples_of(info: Any, dtype: str) -> Iterator[Any]:
    """PyTorch's samples for one dtype, thinned evenly if there are very many."""
    import torch

    kind = getattr(torch, dtype)
    gradients = (kind.is_floating_point or kind.is_complex) and info.supports_autograd
    with torch.random.fork_rng():
        torch.manual_seed(0)
        random.seed(0)  # some variants draw their sizes from these
        np.random.seed(0)
        try:
            every = list(info.sample_inputs("cpu", kind, requires_grad=gradients))
        except Exception:  # some variants make no samples for a dtype
            return
    stride = -(-len(every) // SAMPLES)
    yield from every[::stride]


def tally(name: str, infos: Iterable[Any], device: str, dtypes: Iterable[str]) -> Tally:
    """Every sample of a name."""
    import torch

    found = Tally()
    for info in infos:
        for dtype in dtypes:
            if getattr(torch, dtype) not in info.dtypes:
                continue
            for sample in samples_of(info, dtype):
                found.total += 1
                if found.slow == PATIENCE:
                    found.misses[f"{dtype}: not tried, after {PATIENCE} that were too slow"] += 1
                    continue
                signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)
                try:
                    miss, compared, once = try_sample(info, sample, dtype, device)
                except Slow:
                    miss, compared, once = f"longer than {SECONDS} s", False, False
                    found.slow += 1
                except Exception as error:
                    first = (str(error).splitlines() or [""])[0]
                    miss, compared, once = f"{type(error).__name__}: {first[:110]}", False, False
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                if miss:
                    found.misses[f"{dtype}: {miss}"] += 1
                else:
                    found.passed += 1
                    found.gradients += compared
                    found.once += once
    return found


def _too_slow(*_: Any) -> None:
    raise Slow


def _prepare(name: str, device: str) -> str:
    """Makes this process ready to try a name; the device on which it is to run."""
    import torch

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.signal(signal.SIGPROF, _too_slow)
    torch.set_num_threads(1)
    return "CPU" if name in rules.COMPILED else device


def _work(job: tuple[str, str, tuple[str, ...]]) -> tuple[str, Tally]:
    name, device, dtypes = job
    device = _prepare(name, device)
    with config.DEVICE.set(device):
        return name, tally(name, known_names()[name], device, dtypes)


def run(
    names: Iterable[str],
    device: str,
    dtypes: tuple[str, ...],
    jobs: int,
    each: Callable[[dict[str, Tally]], None] = lambda found: None,
) -> dict[str, Tally]:
    """The tallies of these names, from several processes; `each` is called as they come in."""
    work = [(name, device, dtypes) for name in names]
    found: dict[str, Tally] = {}
    start = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=40) as pool:
        for name, result in pool.imap_unordered(_work, work):
            found[name] = result
            spent = time.monotonic() - start
            line = f"{spent:6.0f} s {result.passed:5d} of {result.total:5d}  {name}"
            print(line, file=sys.stderr, flush=True)
            each(found)
    return dict(sorted(found.items()))


# ---- what is recorded ----------------------------------------------------------------------------
def record(names: Iterable[str], device: str) -> None:
    """For every name a few samples of different dtypes that pass and are not large, in a file that
    tests read without PyTorch."""
    writer = Writer()
    known = known_names()
    for name in names:
        device_ = _prepare(name, device)
        with config.DEVICE.set(device_):
            for dtypes in (("float32", "float64"), ("float16", "bfloat16"), DTYPES[4:]):
                _record_one(known[name], dtypes, device_, writer)
    writer.save(RECORDED)
    print(f"{len(writer.calls)} samples of {len(known)} names, {RECORDED.stat().st_size} bytes")


def _record_one(infos: list[Any], dtypes: Iterable[str], device: str, writer: Writer) -> None:
    """One sample in one of these dtypes: the first in an order drawn for the name."""
    import torch

    drawn = random.Random(infos[0].name)
    pairs = [
        (info, dtype) for info in infos for dtype in dtypes if getattr(torch, dtype) in info.dtypes
    ]
    for info, dtype in drawn.sample(pairs, len(pairs)):
        samples = list(samples_of(info, dtype))
        for sample in drawn.sample(samples, len(samples))[:8]:
            try:
                call, leaves = call_of(info, sample)
                expected = expect(info, sample, leaves)
                if _size(call, expected) > ELEMENTS:
                    continue
                if not judge(call, expected, device)[0]:
                    writer.add(call, expected)
                    return
            except Exception as error:  # it misses, or an argument is a function
                print(f"{info.name}, {dtype}: {error}", file=sys.stderr)
                break


def _size(call: Call, expected: Expected) -> int:
    """How many numbers a sample has."""
    every = flat([call.arguments, *call.named.values(), expected.results, expected.gradients])
    return sum(each.values.size for each in every if isinstance(each, Array))


# ---- what is written -----------------------------------------------------------------------------
def read_counts() -> dict[str, Tally]:
    """What tools/parity.txt says of each name."""
    found: dict[str, Tally] = {}
    if not COUNTS.exists():
        return found
    for line in COUNTS.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, passed, total, gradients, once, *misses = line.split("\t")
        counts = [miss.partition("x ") for miss in misses]
        found[name] = Tally(
            int(total),
            int(passed),
            int(gradients),
            int(once),
            Counter({m: int(n) for n, _, m in counts}),
        )
    return found


def write(found: dict[str, Tally]) -> None:
    """The counts, which may only rise, and the page for readers; other names keep theirs."""
    kept = {name: t for name, t in read_counts().items() if rules.resolve(name) is not None}
    every = sorted((kept | found).items())
    found = {name: t for name, t in every if t.total}  # some are for complex numbers alone
    rows = ["# name, passed, samples, with gradients, by float64, misses; passed may only rise"]
    for name, t in found.items():
        misses = [f"{n}x {' '.join(miss.split())}" for miss, n in t.misses.most_common()]
        counts = [str(n) for n in (t.passed, t.total, t.gradients, t.once)]
        rows.append("\t".join([name, *counts, *misses]))
    COUNTS.write_text("\n".join(rows) + "\n")
    good = sum(t.rate >= 0.95 for t in found.values())
    sums = {
        what: sum(getattr(t, what) for t in found.values())
        for what in ("passed", "total", "gradients", "once")
    }
    lines = [
        "# Parity with PyTorch, name by name",
        "",
        "Written by `python tools/parity.py`: PyTorch's own sample inputs for every name that both",
        f"have, forward and gradient, in {', '.join(DTYPES[:-1])} and {DTYPES[-1]}",
        f"where PyTorch takes them (of more than {SAMPLES} samples of a variant and dtype, every",
        "n-th). A sample passes if dtype, shape, numbers and the inputs' gradients agree, or if",
        "both refuse it. The column *float64* counts, among those that pass, the samples for which",
        "PyTorch rounds on the way (halves mostly) and that agree with its own float64 answer for",
        "the same numbers, rounded once. The last column names the entry of",
        "[differences](differences.md) that says why a sample misses; what has none is a defect.",
        "`tools/parity_rules.py` says what else is compared otherwise than number by number.",
        "",
        f"{len(found)} names, {good} of them with at least 95 % of their samples; "
        f"{sums['passed']} of {sums['total']} samples, {sums['gradients']} of them with gradients, "
        f"{sums['once']} by float64.",
        "",
        "| name | passed | samples | gradients | float64 | what misses | why |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, t in found.items():
        shown = "; ".join(f"{n}x {miss}" for miss, n in t.misses.most_common(3))
        why = "; ".join(dict.fromkeys(rules.reason(name, miss) for miss in t.misses))
        counts = [str(n) for n in (t.passed, t.total, t.gradients, t.once)]
        cells = [f"`{name}`", *counts, shown, why]
        lines.append("| " + " | ".join(each.replace("|", "/") for each in cells) + " |")
    PAGE.write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="names of op_db; all that treadle has")
    parser.add_argument("--device", default="INTERP")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the counts of these names")
    parser.add_argument("--check", action="store_true", help="compare with tools/parity.txt")
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name}")
    arguments = parser.parse_args()
    known = known_names()
    names = arguments.names or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"not names that treadle and op_db share: {', '.join(unknown)}")
    if arguments.record:
        record(known, arguments.device)
        return 0
    dtypes = tuple(arguments.dtypes.split(","))
    writes = (arguments.write or not arguments.names) and not arguments.check
    if writes and dtypes != DTYPES:
        parser.error("the counts are of all dtypes: leave out --dtypes, or name what to try")
    each = write if writes else lambda found: None
    before = read_counts()
    found = run(names, arguments.device, dtypes, arguments.jobs, each)
    for name, t in found.items():
        if t.rate < 0.95 or arguments.names:
            print(f"{name}: {t.passed} of {t.total}, {t.gradients} with gradients, {t.once} once")
            for miss, count in t.misses.most_common(12):
                print(f"    {count:4d}  {miss} ({rules.reason(name, miss)})")
    good = sum(t.rate >= 0.95 for t in found.values())
    print(f"{good} of {len(found)} names with at least 95 % of their samples")
    fallen = [n for n, t in found.items() if n in before and t.passed < before[n].passed]
    gone = [name for name in before if name not in known]
    for name in fallen:
        print(f"{name}: {found[name].passed}, was {before[name].passed}")
    for name in gone:
        print(f"{name}: {before[name].passed} samples passed; treadle has the name no more")
    return 1 if arguments.check and (fallen or gone) else 0


if __name__ == "__main__":
    sys.exit(main())
