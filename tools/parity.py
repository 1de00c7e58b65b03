"""Every shared name against PyTorch, on PyTorch's own sample inputs.

    python tools/parity.py                 all names; writes tools/parity.txt and docs/parity.md
    python tools/parity.py softmax sort    these names, with every miss
    python tools/parity.py --write sort    and write what became of them, beside the other names
    python tools/parity.py --check         fail if a name passes fewer samples than parity.txt says

A *sample* is one call of `torch.testing._internal.common_methods_invocations.op_db`, in one dtype:
its value, and for floating dtypes the gradient of every input for a random cotangent. Values are
judged in dtype, shape, and number (within the rounding of the dtype). It runs on the interpreter,
which gives the meaning of every operation; `--device CPU` runs it compiled. `make test-full` tries
a part of the samples (tests/parity/test_samples.py).
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

import numpy as np

import treadle
from treadle import Tensor, config, nn

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ROOT / "tools" / "parity.txt"
PAGE = ROOT / "docs" / "parity.md"
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool")
# relative and absolute tolerance of a value, and of a gradient (whose cotangents add up)
TOLERANCES = {"float64": (1e-7, 1e-7), "float32": (2e-4, 2e-5), "float16": (5e-3, 5e-3),
              "bfloat16": (4e-2, 4e-2)}  # fmt: skip
# names for which PyTorch rounds on the way (ours round once, at the result), or whose small
# elements are what remains of large ones (matrix_exp): how much looser
LOOSE = {
    "addbmm": 20,
    "logcumsumexp": 20,  # its derivative takes logarithms of differences; ours is nearer float64
    "matrix_exp": 10,
    "nn.functional.conv_transpose2d": 10,
    "nn.functional.conv_transpose3d": 10,
    "nn.functional.soft_margin_loss": 20,
}
SECONDS = 10  # for one sample
PATIENCE = 6  # samples of one name that may be too slow; then the rest counts as missed
SAMPLES = 24  # of one name and dtype; of more, every n-th

# ---- which names ---------------------------------------------------------------------------------
# op_db's names that treadle has for something else, or with another meaning by decision
SKIPPED = {
    "gradient": "x.gradient(*targets) is the derivative (API), torch.gradient a finite difference",
    "normal": "Tensor.normal(*shape, mean, std) is tinygrad's",
    "uniform": "Tensor.uniform(*shape, low, high) is tinygrad's",
    "empty_strided": "tensors have no strides",
    "to_sparse": "there are no sparse tensors",
    "resize_": "a tensor keeps its shape",
    "linalg.eig": "there are no complex numbers",
    "linalg.eigvals": "there are no complex numbers",
}
# how a call is brought into treadle's form, where docs/differences.md says that they differ
CALLED: dict[str, Callable[..., Any]] = {
    "nn.functional.embedding": lambda w, i, **k: nn.functional.embedding(i, w, **k),
    "nn.functional.embedding_bag": lambda w, i, **k: nn.functional.embedding_bag(i, w, **k),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "H": lambda x: x.H,
    "mH": lambda x: x.mH,
    "where": lambda x, c, y: treadle.where(c, x, y),
    "einsum": lambda tensors, equation: Tensor.einsum(equation, *tensors),
    # PyTorch's samples of rank k are given as two factors
    "linalg.pinv": lambda x, *b, **k: treadle.linalg.pinv(x @ b[0].mT if b else x, **k),
    "zero_": lambda x: _detached(x).zero_(),
    "fill": lambda x, value: _detached(x).fill_(value),
}


def _detached(x: Tensor) -> Tensor:
    """A copy to be changed in place."""
    return x.detach().clone()


# what is drawn at random cannot agree: shape and dtype are compared
RANDOM = frozenset(
    (
        "bernoulli",
        "multinomial",
        "rand_like",
        "randn_like",
        "randint_like",
        "randint",
        "randn",
        "empty",
        "empty_like",
        "new_empty",
        "nn.functional.dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
        "nn.functional.alpha_dropout",
        "nn.functional.feature_alpha_dropout",
        "nn.functional.rrelu",
        "nn.functional.multi_head_attention_forward",  # every sample has dropout
    )
)
# dtypes in which PyTorch's differences wrap; ours are taken in floating point
WRAPPING = {
    "cumulative_trapezoid": "uint8",
    "nn.functional.margin_ranking_loss": "uint8",
    "nn.functional.pairwise_distance": "uint8",
    "nn.functional.triplet_margin_loss": "uint8",
    "nn.functional.triplet_margin_with_distance_loss": "uint8",
    "trapezoid": "uint8",
    "trapz": "uint8",
}
# tried in place on a detached copy
IN_PLACE = frozenset(("zero_", "fill"))
# whose gradients are not compared: nextafter is a step of one unit in the last place; PyTorch's
# ctc_loss gives the derivative by the scores that log_softmax is taken of (tests/graph/test_ctc.py)
# and its derivative by a Cholesky factor is not zero in the triangle that is not read
WITHOUT_GRADIENT = frozenset(
    ("nextafter", "nn.functional.ctc_loss", "cholesky_solve", "cholesky_inverse")
)
# loops of many steps, which the interpreter does one by one
COMPILED = frozenset(
    (
        "argsort",
        "median",
        "mode",
        "msort",
        "nanmedian",
        "nn.functional.conv_transpose3d",
        "sort",
        "topk",
        "unique",
        "unique_consecutive",
        "nn.functional.ctc_loss",
        "linalg.cond",
        "linalg.eigh",
        "linalg.eigvalsh",
        "linalg.lstsq",
        "linalg.matrix_norm",
        "linalg.norm",
        "linalg.svd",
        "linalg.svdvals",
        "linalg.pinv",
        "linalg.matrix_rank",
        "pinverse",
        "svd",
    )
)
# PyTorch's result as docs/differences.md says that ours is
THEIRS: dict[str, Callable[[Any], Any]] = {
    "max": lambda r: r[0] if isinstance(r, tuple) else r,  # values only
    "min": lambda r: r[0] if isinstance(r, tuple) else r,
    "all": lambda r: r.bool(),  # bool for uint8 too
    "any": lambda r: r.bool(),
}
# results that are unique only up to a choice (signs, bases): what is compared instead
UNIQUE: dict[str, Callable[[Any], Any]] = {
    "kthvalue": lambda r: r[:1],  # which of equals is chosen
    "topk": lambda r: r[:1],
    "linalg.eigh": lambda r: [r[0], r[1].abs()],
    "svd": lambda r: [r[0][..., : r[1].shape[-1]].abs(), r[1], r[2][..., : r[1].shape[-1]].abs()],
    "linalg.lstsq": lambda r: r[:2],  # of one variant PyTorch's samples keep these
    "linalg.svd": lambda r: [
        r[0][..., : r[1].shape[-1]].abs(),
        r[1],
        r[2][..., : r[1].shape[-1], :].abs(),
    ],
}


@dataclass
class Tally:
    """What became of the samples of one name."""

    total: int = 0
    passed: int = 0
    gradients: int = 0
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
        if info.name not in SKIPPED and resolve(info.name) is not None:
            names.setdefault(info.name, []).append(info)
    return dict(sorted(names.items()))


def resolve(name: str) -> Callable[..., Any] | None:
    """What a user calls for this name of PyTorch's: a method of Tensor, or a function of the
    module that has PyTorch's name for it. None: treadle has no such name."""
    if name in CALLED:
        return CALLED[name]
    if name.startswith("nn.functional."):
        return getattr(nn.functional, name.removeprefix("nn.functional."), None)
    if name.startswith(("linalg.", "fft.")):
        module, _, short = name.partition(".")
        return getattr(getattr(treadle, module, None), short, None)
    if "." in name:
        return None
    return getattr(Tensor, name, None) or getattr(treadle, name, None)


# ---- values both ways ----------------------------------------------------------------------------
class Inputs:
    """Copies of a sample's arguments for treadle; `pairs`: (theirs, ours) of every tensor."""

    def __init__(self, device: str, gradients: bool) -> None:
        self.device = device
        self.gradients = gradients
        self.pairs: list[tuple[Any, Tensor]] = []

    def convert(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            wants = self.gradients and value.requires_grad
            ours = tensor(value, self.device, wants)
            self.pairs.append((value, ours))
            return ours
        if isinstance(value, torch.dtype):
            return str(value).removeprefix("torch.")
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, torch.nn.PairwiseDistance):
            return nn.functional.pairwise_distance
        if isinstance(value, list | tuple):
            return type(value)([self.convert(each) for each in value])
        if isinstance(value, dict):
            return {key: self.convert(each) for key, each in value.items()}
        return value


def tensor(value: Any, device: str, requires_grad: bool) -> Tensor:
    """PyTorch's tensor as treadle's."""
    import torch

    value = value.detach().resolve_conj()
    if value.dtype is torch.bfloat16:
        made = Tensor(value.float().numpy(), device=device).bfloat16()
    else:
        made = Tensor(value.numpy(), device=device)
    return made.detach().realize().requires_grad_() if requires_grad else made


def flat(result: Any) -> list[Any]:
    """The parts of a result that may be nested."""
    if isinstance(result, tuple | list):
        return [part for each in result for part in flat(each)]
    return [result]


def array(value: Any) -> np.ndarray:
    """A tensor of either library as an array; halves exactly, as float32."""
    if isinstance(value, Tensor):
        return np.asarray((value.float() if value.dtype.name == "bfloat16" else value).numpy())
    value = value.detach().resolve_conj().resolve_neg()
    return np.asarray((value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy())


def dtype_name(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.").removeprefix("dtypes.")


def differs(ours: Any, theirs: Any, loose: int = 1, values: bool = True) -> str:
    """How a result differs from PyTorch's, or ""."""
    import torch

    if not isinstance(theirs, torch.Tensor):
        if isinstance(ours, Tensor):
            return "a tensor where PyTorch gives a Python value"
        return "" if ours == theirs else "another Python value"
    if not isinstance(ours, Tensor):
        return f"a {type(ours).__name__} where PyTorch gives a tensor"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {tuple(ours.shape)}, PyTorch {tuple(theirs.shape)}"
    if dtype_name(ours) != dtype_name(theirs):
        return f"dtype {dtype_name(ours)}, PyTorch {dtype_name(theirs)}"
    if not values:
        return ""
    relative, absolute = TOLERANCES.get(dtype_name(theirs), (0, 0))
    a, b = array(ours), array(theirs)
    same = (
        np.isclose(
            a.astype(np.float64) if a.dtype.kind == "f" else a,
            b.astype(np.float64) if b.dtype.kind == "f" else b,
            rtol=relative * loose,
            atol=absolute * loose,
            equal_nan=True,
        )
        if relative
        else a == b
    )
    return "" if bool(np.all(same)) else "other numbers"


# ---- one sample ----------------------------------------------------------------------------------
class Slow(Exception):
    """A sample took too long."""


def judge(info: Any, sample: Any, device: str) -> tuple[str, bool]:
    """(how the sample misses, or ""; whether gradients were compared)."""
    import torch

    ours = resolve(info.name)
    assert ours is not None
    wants = torch.is_grad_enabled() and any(
        isinstance(each, torch.Tensor) and each.requires_grad
        for each in flat([sample.input, *sample.args, *sample.kwargs.values()])
    )
    inputs = Inputs(device, wants)
    named = {
        k: v
        for k, v in sample.kwargs.items()
        if k not in ("device", "layout", "memory_format", "pin_memory", "generator", "out")
    }
    given = inputs.convert((sample.input, *sample.args))
    ours_named = inputs.convert(named)
    try:
        theirs = info.op(sample.input, *sample.args, **sample.kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        try:
            for part in flat(ours(*given, **ours_named)):
                array(part)
        except Slow:
            raise
        except Exception:
            return "", False
        return f"PyTorch raises: {str(error).splitlines()[0][:60]}", False
    result = ours(*given, **ours_named)
    a, b = flat(result), flat(THEIRS.get(info.name, lambda r: r)(theirs))
    if info.name in UNIQUE:
        a, b = flat(UNIQUE[info.name](a)), flat(UNIQUE[info.name](b))
    if len(a) != len(b):
        return f"{len(a)} results, PyTorch {len(b)}", False
    values = info.name not in RANDOM and not sample.kwargs.get("dropout_p")
    for mine, its in zip(a, b, strict=True):
        miss = differs(mine, its, LOOSE.get(info.name, 1), values)
        if miss:
            return miss, False
    if not wants or not values or info.name in IN_PLACE | WITHOUT_GRADIENT:
        return "", False
    flowing = [
        (m, t)
        for m, t in zip(a, b, strict=True)
        if isinstance(t, torch.Tensor) and t.requires_grad and t.dtype.is_floating_point
    ]
    if not flowing:
        return "", False
    drawn = np.random.default_rng(7)
    cotangents = [drawn.standard_normal(tuple(t.shape)) for _, t in flowing]
    leaves = [(t, o) for t, o in inputs.pairs if t.requires_grad and t.is_leaf]
    expected = torch.autograd.grad(
        [t for _, t in flowing],
        [t for t, _ in leaves],
        [torch.tensor(c, dtype=t.dtype) for c, (_, t) in zip(cotangents, flowing, strict=True)],
        allow_unused=True,
    )
    loss = None
    for cotangent, (mine, _) in zip(cotangents, flowing, strict=True):
        part = (mine * Tensor(cotangent, device=device).cast(mine.dtype)).sum()
        loss = part if loss is None else loss + part
    if loss is None or not loss.requires_grad:
        is_zero = all(its is None or not its.any() for its in expected)
        return "" if is_zero else "no gradient flows", False
    loss.backward()
    for (_, mine), its in zip(leaves, expected, strict=True):
        if its is None or (mine.grad is None and not its.any()):
            continue
        if mine.grad is None:
            return "an input gets no gradient", False
        miss = differs(mine.grad, its, 5 * LOOSE.get(info.name, 1))
        if miss:
            return f"gradient: {miss}", False
    return "", True


def samples_of(info: Any, dtype: str) -> Iterator[Any]:
    """PyTorch's samples for one dtype, thinned evenly if there are very many."""
    import torch

    kind = getattr(torch, dtype)
    gradients = kind.is_floating_point and info.supports_autograd
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
            if getattr(torch, dtype) not in info.dtypes or WRAPPING.get(name) == dtype:
                continue
            for sample in samples_of(info, dtype):
                found.total += 1
                if found.slow == PATIENCE:
                    found.misses[f"{dtype}: not tried, after {PATIENCE} that were too slow"] += 1
                    continue
                signal.setitimer(signal.ITIMER_REAL, SECONDS, SECONDS)
                try:
                    miss, compared = judge(info, sample, device)
                except Slow:
                    miss, compared = f"longer than {SECONDS} s", False
                    found.slow += 1
                except Exception as error:
                    first = (str(error).splitlines() or [""])[0]
                    miss, compared = f"{type(error).__name__}: {first[:110]}", False
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                if miss:
                    found.misses[f"{dtype}: {miss}"] += 1
                else:
                    found.passed += 1
                    found.gradients += compared
    return found


def _too_slow(*_: Any) -> None:
    raise Slow


def _work(job: tuple[str, str, tuple[str, ...]]) -> tuple[str, Tally]:
    name, device, dtypes = job
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.signal(signal.SIGALRM, _too_slow)
    import torch

    torch.set_num_threads(1)
    if name in COMPILED:
        device = "CPU"
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


# ---- what is written -----------------------------------------------------------------------------
def read_counts() -> dict[str, Tally]:
    """What tools/parity.txt says of each name."""
    found: dict[str, Tally] = {}
    if not COUNTS.exists():
        return found
    for line in COUNTS.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, passed, total, gradients, *misses = line.split("\t")
        counts = [miss.partition("x ") for miss in misses]
        found[name] = Tally(
            int(total), int(passed), int(gradients), Counter({m: int(n) for n, _, m in counts})
        )
    return found


def write(found: dict[str, Tally]) -> None:
    """The counts, which may only rise, and the page for readers; other names keep theirs."""
    found = dict(sorted((read_counts() | found).items()))
    rows = ["# name, samples passed, samples, with gradients, misses; counts may only rise"]
    for name, t in found.items():
        misses = [f"{n}x {' '.join(miss.split())}" for miss, n in t.misses.most_common(3)]
        rows.append("\t".join([name, str(t.passed), str(t.total), str(t.gradients), *misses]))
    COUNTS.write_text("\n".join(rows) + "\n")
    good = sum(t.rate >= 0.95 for t in found.values())
    lines = [
        "# Parity with PyTorch, name by name",
        "",
        "Written by `python tools/parity.py`: PyTorch's own sample inputs for every name that both",
        f"have, forward and gradient, in {', '.join(DTYPES[:-1])} and {DTYPES[-1]} where PyTorch",
        f"takes them (of more than {SAMPLES} samples of a name and dtype, every n-th). A sample",
        "passes if dtype, shape, numbers and the inputs' gradients agree, or if both refuse",
        "it. Where treadle means something else, [differences](differences.md) says so.",
        "",
        f"{len(found)} names, {good} of them with at least 95 % of their samples; "
        f"{sum(t.passed for t in found.values())} of "
        f"{sum(t.total for t in found.values())} samples, "
        f"{sum(t.gradients for t in found.values())} of them with gradients.",
        "",
        "| name | passed | samples | gradients | what misses |",
        "|---|---|---|---|---|",
    ]
    for name, t in found.items():
        shown = "; ".join(f"{n}x {miss}" for miss, n in t.misses.most_common(3))
        cells = [f"`{name}`", str(t.passed), str(t.total), str(t.gradients), shown]
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
    arguments = parser.parse_args()
    known = known_names()
    names = arguments.names or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"not names that treadle and op_db share: {', '.join(unknown)}")
    dtypes = tuple(arguments.dtypes.split(","))
    writes = (arguments.write or not arguments.names) and not arguments.check
    if writes and dtypes != DTYPES:
        parser.error("the counts are of all dtypes: leave out --dtypes, or name what to try")
    each = write if writes else lambda found: None
    found = run(names, arguments.device, dtypes, arguments.jobs, each)
    for name, t in found.items():
        if t.rate < 0.95 or arguments.names:
            print(f"{name}: {t.passed} of {t.total}, {t.gradients} with gradients")
            for miss, count in t.misses.most_common(12):
                print(f"    {count:4d}  {miss}")
    good = sum(t.rate >= 0.95 for t in found.values())
    print(f"{good} of {len(found)} names with at least 95 % of their samples")
    if arguments.check:
        before = read_counts()
        fallen = [n for n, t in found.items() if n in before and t.passed < before[n].passed]
        print("\n".join(f"{n}: {found[n].passed}, was {before[n].passed}" for n in fallen))
        return 1 if fallen else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
