"""The dtypes of results, against the tables of docs/numerics.md, which are read here row by row."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import treadle
from treadle import Tensor
from treadle.ir import dtype as dt
from treadle.ir.dtype import TENSOR_DTYPES, DType, bool_, float32, float64, int64

PAGE = Path(__file__).resolve().parents[2] / "docs" / "numerics.md"
SIGNED = [d for d in TENSOR_DTYPES if d.kind == "i"]
UNSIGNED = [d for d in TENSOR_DTYPES if d.kind == "u"]
INTEGERS = [*SIGNED, *UNSIGNED]
FLOATS = [d for d in TENSOR_DTYPES if d.is_float]
HALVES = {dt.float16, dt.bfloat16}


def table_after(heading: str) -> list[tuple[str, ...]]:
    """The rows of the first table after a text, without its head."""
    _, _, rest = PAGE.read_text().partition(heading)
    lines = rest.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("|"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows]


def wider(a: DType, b: DType) -> DType:
    return a if a.bits >= b.bits else b


def mixed(signed: DType, unsigned: DType) -> DType:
    return signed if signed.bits > unsigned.bits else dt.BY_NAME[f"int{2 * unsigned.bits}"]


# row of the table -> the pairs that it is about, and what they give
PAIRS = {
    "bool with X": [(bool_, x, x) for x in TENSOR_DTYPES],
    "two signed, two unsigned": [
        (a, b, wider(a, b)) for kind in (SIGNED, UNSIGNED) for a in kind for b in kind
    ],
    "signed with unsigned": [(a, b, mixed(a, b)) for a in SIGNED for b in UNSIGNED if b.bits < 64],
    "uint64 with a signed integer": [(dt.uint64, b, float32) for b in SIGNED],
    "an integer with a float": [(a, b, b) for a in INTEGERS for b in FLOATS],
    "two floats": [(a, b, wider(a, b)) for a in FLOATS for b in FLOATS if {a, b} != HALVES],
    "float16 with bfloat16": [(dt.float16, dt.bfloat16, float32)],
}


def test_every_row_of_the_page_is_tested_and_every_pair_is_in_a_row():
    rows = table_after("**Promotion** of two tensors")
    assert [row[0] for row in rows] == list(PAIRS)
    pairs = {frozenset((a, b)) for listed in PAIRS.values() for a, b, _ in listed}
    assert pairs == {frozenset(p) for p in itertools.product(TENSOR_DTYPES, TENSOR_DTYPES)}


@pytest.mark.parametrize("row", PAIRS)
def test_two_tensors(row):
    for a, b, expected in PAIRS[row]:
        x, y = Tensor([1], dtype=a), Tensor([1], dtype=b)
        for one, other in ((x, y), (y, x)):
            assert one.maximum(other).dtype is expected, (a, b)
            assert (one * other).dtype is expected, (a, b)
            assert treadle.where(one > 0, one, other).dtype is expected, (a, b)
        np.testing.assert_array_equal(x.maximum(y).numpy().astype(np.float64), [1.0])


def scalar_rule(kind: str, cell: str, dtype: DType) -> DType:
    """What a cell of the table of weak scalars means for a dtype."""
    return dtype if cell.startswith("the tensor's") else dt.BY_NAME[cell]


@pytest.mark.parametrize(("kind", "value"), [("bool", True), ("int", 3), ("float", 0.5)])
def test_python_scalars_are_weak(kind, value):
    rows = {row[0]: row[1:] for row in table_after("**A Python scalar is weak**")}
    assert set(rows) == {"Python bool", "Python int", "Python float"}
    cells = rows[f"Python {kind}"]
    for dtypes, cell in zip(([bool_], INTEGERS, FLOATS), cells):
        for dtype in dtypes:
            x = Tensor([1], dtype=dtype)
            expected = scalar_rule(kind, cell, dtype)
            assert x.maximum(value).dtype is expected
            assert (x * value).dtype is expected
            assert (value * x).dtype is expected


def test_what_becomes_float32():
    for dtype in (bool_, *INTEGERS):
        x = Tensor([1, 1], dtype=dtype)
        assert (x / x).dtype is float32
        assert x.exp().dtype is float32
        assert x.mean().dtype is float32
    for dtype in FLOATS:
        x = Tensor([1, 1], dtype=dtype)
        assert (x / 3).dtype is dtype
        assert (x / Tensor([3])).dtype is dtype


def test_the_defaults():
    assert Tensor(1).dtype is int64
    assert Tensor([1.5]).dtype is float32
    assert Tensor([True]).dtype is bool_
    assert Tensor(np.float64(1.5)).dtype is float64
    assert Tensor([1, 2.5]).dtype is float32


def test_an_int_that_does_not_fit_and_a_float_that_does_not():
    for dtype in INTEGERS:
        with pytest.raises(OverflowError, match=f"does not fit {dtype}"):
            Tensor([1], dtype=dtype) + (dtype.max + 1)
        assert (Tensor([0], dtype=dtype) + dtype.max).tolist() == [dtype.max]
    for dtype in FLOATS:
        assert (Tensor([0], dtype=dtype) + 1e300).item() == (1e300 if dtype is float64 else np.inf)


@pytest.mark.full
def test_where_pytorch_promotes_otherwise():
    """PyTorch has the same table but for integers of different signs and uint64."""
    torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
    different = set()
    for a, b in itertools.combinations_with_replacement(TENSOR_DTYPES, 2):
        try:
            theirs = str(torch.promote_types(getattr(torch, a.name), getattr(torch, b.name)))
        except RuntimeError:  # it promotes few unsigned types
            continue
        if theirs.removeprefix("torch.") != dt.promote(a, b).name:
            different.add((a.name, b.name))
    assert different <= {(s.name, u.name) for s in SIGNED for u in UNSIGNED}
