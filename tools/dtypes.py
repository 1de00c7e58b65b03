"""Every public function in every dtype: what it gives, and whether the numbers are right.

    python tools/dtypes.py                   all functions; writes docs/dtypes.md
    python tools/dtypes.py softmax sort      these functions, with what is wrong
    python tools/dtypes.py --device CPU      compiled; else on the interpreter

The call of each function is in `tools/calls.py`. Its result must be what the same call gives in
float64 (in int64 for functions of integers), rounded, wrapped or asked for truth as
docs/numerics.md says; PyTorch judges float64 (tools/parity.py, tests/parity). A dtype that a
function does not take is refused with a TypeError that names the function, the dtype and what to
do.
`make test` tries a part; the numbers at the edges of each dtype are in tests/face/test_edges.py.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import calls
import numpy as np

from treadle import Tensor, config
from treadle.ir import dtype as dt
from treadle.ir.dtype import FLOAT8, TENSOR_DTYPES, DType, float64, int64

PAGE = Path(__file__).resolve().parent.parent / "docs" / "dtypes.md"
DTYPES = (*TENSOR_DTYPES, *FLOAT8)  # complex numbers have tests of their own
FLOATS = tuple(dtype for dtype in DTYPES if dtype.is_float)
INTEGERS = tuple(dtype for dtype in DTYPES if dtype.is_int)
UNITS = 4  # in the last place, of the greatest element, by which a result may be off
# what says what to do instead
REMEDIES = (
    "cast", "must be", "write ", "use ", "integers, not", "numbers, not", "is for float32 and ",
    "is for complex",
)  # fmt: skip
# functions that more than rounding separates from float64, and why
LOOSE = {
    "linalg.eigh": (16, "rotations add up"),
    "linalg.eigvalsh": (16, "rotations add up"),
    "grid_sample": (16, "places are rounded, too"),
    "interpolate": (math.inf, "bytes stay bytes, rounded"),
    "is_floating_point": (math.inf, "asks for the dtype itself"),
    "is_signed": (math.inf, "asks for the dtype itself"),
    "bitwise_not": (math.inf, "another width has other bits: tests/face/test_edges.py"),
}
# that need what there is not (yet)
ABSENT = frozenset(("linalg.eig", "linalg.eigvals"))


# ---- numbers -------------------------------------------------------------------------------------
def nearest(value: int | float, dtype: DType) -> float:
    """The number of a floating dtype that is nearest to a value, ties to even: by exact fractions,
    so that it can judge."""
    if isinstance(value, float) and not math.isfinite(value):
        return value if math.isnan(value) else math.copysign(dtype.max, value)
    if value == 0:
        return float(value)
    size = abs(Fraction(value))
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    least = round(math.log2(dtype.smallest_normal))
    unit = Fraction(2) ** max(exponent, least) * Fraction(dtype.eps)
    rounded = round(size / unit) * unit  # of a Fraction: ties to even
    result = float(rounded) if rounded <= Fraction(dtype.largest) else float(dtype.max)
    return math.copysign(result, value)


def edges(dtype: DType) -> list[Any]:
    """Numbers of a dtype at which something changes: the ends of the ranges of all dtypes, the
    middles between neighbours, denormals, infinities, NaN, both zeros."""
    if dtype.kind == "b":
        return [False, True]
    if dtype.is_int:
        found = {0, 1, 2, 3, 7, dtype.bits, *_around_powers(dtype.bits)}
        found |= {-number for number in found} | {dtype.min, dtype.min + 1, dtype.max}
        return sorted(number for number in found if dtype.min <= number <= dtype.max)
    found = [0.0, 0.5, 1.5, 2.5, 0.1, 3.0, 100.0, math.inf, *map(float, _around_powers(64))]
    for other in FLOATS:
        half = other.eps / 2
        for start in (1.0, other.smallest_normal, other.smallest_normal * other.eps, other.largest):
            found += [start, start / 2, start * (1 + half), start * (1 + 3 * half)]
            found += [start * (1 + half + half / 2**24), start * (1 + half - half / 2**24)]
    return [nearest(sign * x, dtype) for x in dict.fromkeys(found) for sign in (1, -1)] + [math.nan]


def _around_powers(bits: int) -> list[int]:
    """Powers of 2 and their neighbours, and what is near the middle of two floats there."""
    found = []
    for power in sorted({1, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 61, 62, 63, 64} | {bits - 2}):
        starts = [1 << power] + [
            (1 << power) + tail * (1 << (power - digits - 1))
            for digits in (2, 3, 7, 10, 23, 52)
            for tail in (1, 3)
            if digits < power
        ]
        found += [start + step for start in starts for step in (-1, 0, 1)]
    return found


def tensor(values: Sequence[Any], dtype: DType) -> Tensor:
    """A tensor of numbers that the dtype has, bit by bit: no cast is asked."""
    if not dtype.is_float:
        return Tensor(np.array(values, dtype=dtype.storage))
    bits = np.array([dtype.to_bits(value) for value in values], np.uint64)
    return Tensor(bits.astype(f"uint{dtype.bits}")).bitcast(dtype)


def rounded(dtype: DType, values: np.ndarray) -> np.ndarray:
    """float64 numbers as a floating dtype has them, in float64 (`tests/face/test_edges.py` holds
    this to `nearest`)."""
    values = np.asarray(values, np.float64)
    if dtype.storage.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype.storage).astype(np.float64)
    return dt.to_compute(dtype, dt.from_compute(dtype, values)).astype(np.float64)


# ---- one function --------------------------------------------------------------------------------
@dataclass
class Row:
    """What a function does: by dtype the dtypes of its results, or the error; and the faults."""

    gives: dict[str, str] = field(default_factory=dict)
    refuses: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def try_function(name: str, dtypes: Iterable[DType] = DTYPES) -> Row:
    """A function in some dtypes, on the default device."""
    row = Row()
    made: dict[DType, list[Any]] = {}
    for dtype in dtypes:
        try:
            made[dtype] = calls.call(name, dtype)
        except Exception as error:
            row.refuses[dtype.name] = f"{type(error).__name__}: {error}"
            row.faults += _bad_refusal(name, dtype, error)
    expected = {} if name in calls.DRAWN else {dtype: _wide(name, dtype) for dtype in made}
    _realize([*made.values(), *expected.values()])
    for dtype, results in made.items():
        row.gives[dtype.name] = " ".join(_kind(result, dtype) for result in results)
        for number, (result, wide) in enumerate(zip(results, expected.get(dtype, ()))):
            fault = _differs(result, wide, LOOSE.get(name, (UNITS, ""))[0])
            if fault:
                row.faults.append(f"{dtype} [{number}]: {fault}")
    return row


def _bad_refusal(name: str, dtype: DType, error: Exception) -> list[str]:
    """What is wrong with an error that refuses a dtype."""
    text = str(error)
    says = name.rpartition(".")[2] in text and any(remedy in text for remedy in REMEDIES)
    kind = isinstance(error, TypeError) or (isinstance(error, OverflowError) and "fit" in text)
    if name in ABSENT or (kind and says and dtype.name in text):
        return []
    return [f"{dtype}: {type(error).__name__}: {text}"]


def _wide(name: str, dtype: DType) -> list[Any]:
    """The results of the same numbers in float64, or in int64 where integers are asked for."""
    call = calls.CALLS[name]
    given = calls.operands(name, dtype)
    swept = [each not in calls.FIXED for each in call.operands.split()]
    for wide in (float64, int64):
        try:
            xs = [x.cast(wide) if cast else x for x, cast in zip(given, swept)]
            return calls.flat(call.how(calls.ours(name), *xs))
        except TypeError:
            continue
    return []


def _realize(results: Iterable[list[Any]]) -> None:
    """Compute all of it in one program."""
    tensors = [x for each in results for x in each if isinstance(x, Tensor)]
    if tensors:
        tensors[0].realize(*tensors[1:])


def _kind(result: Any, dtype: DType) -> str:
    if not isinstance(result, Tensor):
        return f"Python {type(result).__name__}"
    return "own" if result.dtype is dtype else result.dtype.name


def _differs(result: Any, wide: Any, units: float) -> str:
    """How a result differs from what the wide one says that it must be, or ""."""
    got, want = (np.asarray(x.numpy() if isinstance(x, Tensor) else x) for x in (result, wide))
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    kind = result.dtype.kind if isinstance(result, Tensor) else "b"
    with np.errstate(all="ignore"):
        if kind == "b":
            right = got == (want != 0)
        elif kind in "iu":
            right = got == want.astype(np.int64).astype(got.dtype)
        else:
            got, want = (np.asarray(x, np.promote_types(x.dtype, "f8")) for x in (got, want))
            scale = np.max(np.abs(want), initial=0.0, where=np.isfinite(want))
            allowed = units * result.dtype.real.eps * np.maximum(np.abs(want), scale)
            near = np.abs(got - want) <= allowed
            right = (got == want) | near | (np.isnan(got) & np.isnan(want))
    if bool(np.all(right)) or units == math.inf:
        return ""
    return f"{got[~right][0]}, not {want[~right][0]}"


# ---- the page ------------------------------------------------------------------------------------
INTRODUCTION = """# Functions and dtypes

Written by `python tools/dtypes.py`: one call of every public function in every dtype. In each the
numbers are what the same call gives in float64 (or int64), rounded, wrapped, or asked for truth as
[numbers](numerics.md) says. *own* is the dtype of the tensor; of several results each is named.
A dtype that is not listed is refused with a TypeError that says what to do. Integers are int8 to
int64 and uint8 to uint64, floats are float16, bfloat16, float32, float64 and both float8.
"""
GROUPS = {
    "integers": {d.name for d in INTEGERS},
    "signed": {d.name for d in INTEGERS if d.kind == "i"},
    "unsigned": {d.name for d in INTEGERS if d.kind == "u"},
    "floats": {d.name for d in FLOATS},
    "float8": {d.name for d in FLOAT8},
}


def _named(dtypes: Iterable[str]) -> str:
    """A set of dtypes in few words."""
    left = list(dtypes)
    if len(left) == len(DTYPES):
        return "all"
    words = []
    for word, group in GROUPS.items():
        if group <= set(left):
            words.append(word)
            left = [name for name in left if name not in group]
    return ", ".join(([*left[:1]] if left[:1] == ["bool"] else []) + words + [
        name for name in left if name != "bool"
    ])  # fmt: skip


def _said_plainly(gives: dict[str, str]) -> dict[str, str]:
    """With the dtype of a result by name, and not as "own", where other dtypes give it, too."""
    parts = {dtype: words.split() for dtype, words in gives.items()}
    for number in range(max(map(len, parts.values()), default=0)):
        said = [words[number] for words in parts.values()]
        own = {dtype for dtype, words in parts.items() if words[number] == "own"}
        for dtype in own & set(said):
            several = said.count(dtype) > 1 and not dt.BY_NAME[dtype].is_float
            if several or len(own) == 1:
                parts[dtype][number] = dtype
    return {dtype: " ".join(words) for dtype, words in parts.items()}


def page(rows: dict[str, Row]) -> str:
    """The text of docs/dtypes.md: functions that do the same stand together."""
    together: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, row in rows.items():
        groups: dict[str, list[str]] = {}
        for dtype, gives in _said_plainly(row.gives).items():
            groups.setdefault(gives, []).append(dtype)
        key = tuple((_named(dtypes), gives) for gives, dtypes in groups.items())
        together.setdefault(key, []).append(name)
    tried = sum(len(row.gives) + len(row.refuses) for row in rows.values())
    refused = sum(len(row.refuses) for row in rows.values())
    wrong = sum(len(row.faults) for row in rows.values())
    lines = [
        INTRODUCTION,
        f"{len(rows)} functions, {tried} pairs of a function and a dtype: {tried - refused} give "
        f"numbers, {refused} are refused, {wrong} are wrong.",
        "",
        "| dtypes and what they give | functions |",
        "|---|---|",
    ]
    for key, names in sorted(together.items(), key=lambda item: -len(item[1])):
        what = "; ".join(f"{dtypes}: {gives}" for dtypes, gives in key) or "none of these"
        lines.append(f"| {what} | {', '.join(f'`{name}`' for name in names)} |")
    for name, (_, why) in LOOSE.items():
        lines += ["", f"`{name}`: {why}."]
    faults = [f"- `{name}` {fault}" for name, row in rows.items() for fault in row.faults]
    if faults:
        lines += ["", "## Wrong", "", *faults]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="names of tools/calls.py; all of them")
    parser.add_argument("--device", default="INTERP")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in calls.CALLS]
    if unknown:
        parser.error(f"no such functions: {', '.join(unknown)}")
    rows = {}
    with config.DEVICE.set(arguments.device):
        for name in arguments.names or calls.CALLS:
            rows[name] = try_function(name)
            for fault in rows[name].faults:
                print(f"{name} {fault}", flush=True)
    if not arguments.names:
        PAGE.write_text(page(rows))
    return 1 if any(row.faults for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
