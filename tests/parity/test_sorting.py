"""Sorting, scans, counting and selecting against PyTorch: values, indices, gradients, dtypes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from treadle import Tensor

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full

RNG = np.random.default_rng(7)


def distinct(*shape: int) -> np.ndarray:
    """Floats of which no two are equal."""
    return np.asarray(RNG.permutation(np.prod(shape, dtype=int)).reshape(shape) / 8 - 2.0)


def ties(*shape: int) -> np.ndarray:
    return np.asarray(RNG.integers(-2, 3, shape)).astype(np.float64)


def holes(*shape: int) -> np.ndarray:
    """With NaN, infinities and zeros of both signs."""
    x = ties(*shape)
    x.flat[:: max(1, x.size // 3)] = np.nan
    x.flat[1::5] = np.inf
    x.flat[2::5] = -np.inf
    x.flat[3::4] = -0.0
    return x


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def check(
    name: str,
    arrays: tuple[Any, ...],
    *args: Any,
    gradient: bool = True,
    ours: Any = None,
    **named: Any,
) -> None:
    """Call a method of both libraries; compare every result, and the gradients by the arrays."""
    mine, theirs = [], []
    for array in arrays:
        floating = isinstance(array, np.ndarray) and array.dtype.kind == "f" and gradient
        if isinstance(array, np.ndarray):
            mine.append(Tensor(array, requires_grad=floating))
            theirs.append(torch.tensor(array, requires_grad=floating))
        else:
            mine.append(array)
            theirs.append(array)
    expected = as_list(getattr(theirs[0], name)(*theirs[1:], *args, **named))
    found = as_list(getattr(mine[0], name)(*mine[1:], *args, **named))
    assert len(found) == len(expected)
    total_mine, total_theirs = Tensor(0.0, dtype="float64"), torch.tensor(0.0, dtype=torch.float64)
    flows = False
    for a, b in zip(found, expected):
        wanted = b.detach().numpy()
        assert tuple(a.shape) == wanted.shape, name
        assert a.dtype.name == str(b.dtype).removeprefix("torch."), name
        np.testing.assert_allclose(a.numpy(), wanted, rtol=1e-9, atol=1e-12, err_msg=name)
        if b.requires_grad and b.numel():
            flows = True
            weight = RNG.normal(size=wanted.shape)
            total_mine = total_mine + (a * Tensor(weight)).sum()
            total_theirs = total_theirs + (b * torch.tensor(weight)).sum()
    if flows and gradient:
        total_mine.backward()
        total_theirs.backward()
        for a, b in zip(mine, theirs):
            if isinstance(a, Tensor) and b.requires_grad and b.grad is not None:
                np.testing.assert_allclose(
                    a.grad.numpy(), b.grad.numpy(), rtol=1e-8, atol=1e-10, err_msg=name
                )


SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((7,), 0), ((3, 4), 1), ((3, 4), -2), ((2, 60, 3), 1), ((1, 5), 0), ((), 0), ((), -1),
]  # fmt: skip


# ---- sorting -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("descending", [False, True])
def test_sort(shape, dim, descending):
    for make in (distinct, ties, holes):
        x = make(*shape)
        check("sort", (x,), dim=dim, descending=descending, stable=True, gradient=make is distinct)
        check("argsort", (x,), dim=dim, descending=descending, stable=True)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"],
)
def test_sort_of_every_dtype(dtype):
    x = RNG.integers(0, 2, 70) if dtype == "bool" else RNG.integers(-100, 100, 70)
    x = x.astype(dtype)
    check("sort", (x,), stable=True, gradient=False)
    check("sort", (x,), stable=True, descending=True, gradient=False)
    values, _ = Tensor(x.astype(np.float32)).bfloat16().sort()
    assert values.tolist() == torch.tensor(x.astype(np.float32)).bfloat16().sort()[0].tolist()


def test_sort_of_nothing():
    check("sort", (np.zeros((0, 3)),), 0)
    check("sort", (np.zeros((3, 0)),), 1)
    check("topk", (np.zeros((3, 2)),), 0)
    check("unique", (np.zeros(0),))
    check("unique", (np.zeros(0, np.int64),), return_inverse=True, return_counts=True)


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_topk_and_one_element_of_the_order(shape, dim):
    x = distinct(*shape)
    size = shape[dim] if shape else 1
    for k in {1, (size + 1) // 2, size}:
        check("topk", (x,), k, dim)
        check("topk", (x,), k, dim, False)
        check("kthvalue", (x,), k, dim)
    for name in ("median", "nanmedian"):
        check(name, (x,), dim)
        check(name, (x,), dim, keepdim=True)
        check(name, (x,))
    with_holes = holes(*shape) if shape else np.array(np.nan)
    check("median", (with_holes,), gradient=False)
    check("nanmedian", (with_holes,), gradient=False)
    check("median", (ties(*shape),))
    tied = ties(*shape)  # PyTorch's index is that of any element with the value
    values = Tensor(tied).mode(dim)[0].numpy()
    np.testing.assert_array_equal(values, torch.tensor(tied).mode(dim)[0].numpy())
    for pair in ("median", "nanmedian", "kthvalue"):
        k = (1,) if pair == "kthvalue" else ()
        mine = getattr(Tensor(with_holes), pair)(*k, dim)[0].numpy()
        theirs = getattr(torch.tensor(with_holes), pair)(*k, dim)[0].numpy()
        np.testing.assert_array_equal(mine, theirs, err_msg=pair)


def test_topk_of_many():
    x = RNG.permutation(5000).reshape(2, 2500).astype(np.float32)
    for k in (1, 3, 40):
        check("topk", (x,), k, gradient=False)
    values, indices = Tensor(np.zeros(5000)).topk(4)
    assert indices.tolist() == [0, 1, 2, 3]
    assert values.tolist() == [0] * 4


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantile(interpolation):
    named = {"interpolation": interpolation}
    x, row = distinct(3, 8), np.array([0.0, 0.3, 0.5, 1.0])
    some = np.where(np.isfinite(holes(3, 8)), x, np.nan)  # PyTorch has NaN beside an infinity
    for name, array in itertools.product(("quantile", "nanquantile"), (x, some)):
        smooth = array is x
        check(name, (array,), 0.4, gradient=smooth, **named)
        check(name, (array,), 0.4, 1, True, gradient=smooth, **named)
        mine = getattr(Tensor(array), name)(Tensor(row), -2, **named)
        theirs = getattr(torch.tensor(array), name)(torch.tensor(row), -2, **named)
        np.testing.assert_allclose(mine.numpy(), theirs.numpy())
    both = Tensor(x).quantile(Tensor(row), keepdim=True)
    assert both.shape == tuple(torch.tensor(x).quantile(torch.tensor(row), keepdim=True).shape)
    check("quantile", (np.array(3.0),), 0.4)


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(right):
    edges = np.sort(ties(3, 6), 1)
    values = ties(3, 9)
    theirs = torch.searchsorted(torch.tensor(edges), torch.tensor(values), right=right)
    ours = Tensor(edges).searchsorted(Tensor(values), right=right)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    values = np.array([[np.nan, -np.inf], [np.inf, 0.0]])
    row = np.array([1.0, np.inf, np.nan, np.nan])  # where PyTorch's search goes astray
    found = Tensor(row).searchsorted(Tensor(values), right=right).numpy()
    np.testing.assert_array_equal(found, np.searchsorted(row, values, "right" if right else "left"))
    for row in (np.sort(ties(20)), np.zeros(0)):
        ours = Tensor(row).searchsorted(Tensor(values), right=right)
        theirs = torch.searchsorted(torch.tensor(row), torch.tensor(values), right=right)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        ours = Tensor(values).bucketize(Tensor(row), right=right, out_int32=True)
        theirs = torch.bucketize(torch.tensor(values), torch.tensor(row), right=right)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


# ---- running folds -------------------------------------------------------------------------------
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_running(shape, dim):
    for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
        check(name, (distinct(*shape),), dim)
    for name in ("cummax", "cummin", "cumsum", "cumprod"):
        check(name, (ties(*shape),), dim)
        check(name, (ties(*shape).astype(np.int32),), dim)
    for name in ("cummax", "cummin"):
        check(name, (holes(*shape),), dim, gradient=False)


def test_differences_and_areas():
    x = distinct(3, 5)
    for n, dim in itertools.product((0, 1, 2, 7), (0, 1)):
        check("diff", (x,), n, dim)
    check("diff", (ties(6) > 0,))
    mine = Tensor(x).diff(prepend=Tensor(x[:, :2]), append=Tensor(x[:, :1]))
    theirs = torch.tensor(x).diff(prepend=torch.tensor(x[:, :2]), append=torch.tensor(x[:, :1]))
    np.testing.assert_allclose(mine.numpy(), theirs.numpy())
    points = np.sort(distinct(5))
    for name, named in itertools.product(("trapezoid", "cumulative_trapezoid"), ({}, {"dx": 3})):
        theirs = getattr(torch, name)(torch.tensor(x), **named)
        np.testing.assert_allclose(getattr(Tensor(x), name)(**named).numpy(), theirs.numpy())
    theirs = torch.trapezoid(torch.tensor(x), torch.tensor(points))
    np.testing.assert_allclose(Tensor(x).trapezoid(Tensor(points)).numpy(), theirs.numpy())


# ---- counting ------------------------------------------------------------------------------------
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_unique(dim):
    x = RNG.integers(0, 2, (9, 3))
    for inverse, counts in itertools.product((False, True), repeat=2):
        named = {"return_inverse": inverse, "return_counts": counts, "dim": dim}
        check("unique", (x,), **named)
        check("unique_consecutive", (x,), **named)
        check("unique", (x.astype(np.float32),), gradient=False, **named)
    if dim is None:
        check("unique", (np.array([np.nan, 1.0, np.nan]),), return_counts=True, gradient=False)
        check("unique", (RNG.integers(0, 500, 3000),), return_inverse=True, return_counts=True)


def test_counts():
    ids = RNG.integers(0, 6, 20)
    check("bincount", (ids,))
    check("bincount", (ids,), minlength=9)
    check("bincount", (ids, RNG.normal(size=20)), gradient=False)
    check("bincount", (np.zeros(0, np.int64),), minlength=2)
    x = np.append(RNG.normal(size=30), [np.inf, np.nan, -np.inf])
    check("histc", (x,), 5, -1, 1, gradient=False)
    check("histc", (x[:30],), 7, gradient=False)
    check("histc", (np.ones(4),), 3, gradient=False)
    check("count_nonzero", (ids,))
    check("nonzero", (ties(3, 4),), gradient=False)
    theirs = torch.nn.functional.one_hot(torch.tensor(ids))
    np.testing.assert_array_equal(Tensor(ids).one_hot().numpy(), theirs.numpy())


def test_repeat_interleave():
    x = distinct(2, 3)
    check("repeat_interleave", (x,), 2)
    check("repeat_interleave", (x,), 2, 1)
    check("repeat_interleave", (x,), 0, 0)
    check("repeat_interleave", (x, np.array([0, 2, 3])), 1)
    check("repeat_interleave", (x, np.array([2])), 0)
    check("repeat_interleave", (x, np.array([1, 0, 2])), dim=1, output_size=3)
