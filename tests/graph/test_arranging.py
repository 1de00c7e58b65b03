"""Joining, splitting, diagonals and blocks against NumPy, and what they refuse."""

import numpy as np
import pytest
from arrays import run, same, tensor

from treadle.graph import arranging as a
from treadle.graph import diagonals as d
from treadle.graph.public import METHODS

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = np.arange(12, dtype=np.int64).reshape(3, 4)
V = np.array([1, 2, 3], np.int64)
ZERO = np.float32(7.0)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@pytest.mark.parametrize("arrays", [(V, V), (M, M), (M,)], ids=["vectors", "matrices", "one"])
def test_joins(name, arrays):
    same(getattr(a, name)([tensor(x) for x in arrays]), getattr(np, name)(arrays))


def test_joins_of_numbers():
    same(a.hstack(tensor(ZERO), tensor(ZERO)), np.hstack([ZERO, ZERO]))
    same(a.vstack(tensor(ZERO), tensor(ZERO)), np.vstack([ZERO, ZERO]))
    same(a.column_stack(tensor(ZERO), tensor(ZERO)), np.column_stack([ZERO, ZERO]))


@pytest.mark.parametrize("parts", [1, 3, 5, [1, 3], [3, 1], [-1], [0, 9]])
def test_split_in_parts(parts):
    found = a.tensor_split(tensor(M), parts, 1, read=None)
    for one, other in zip(found, np.array_split(M, parts, 1), strict=True):
        same(one, other)


@pytest.mark.parametrize("turns", range(-1, 5))
@pytest.mark.parametrize("dims", [(0, 1), (1, 0), (2, 0)])
def test_turns(turns, dims):
    same(a.rot90(tensor(X), turns, dims), np.rot90(X, turns, dims))


@pytest.mark.parametrize(("size", "step"), [(1, 1), (2, 1), (3, 2), (4, 1), (2, 3)])
def test_windows(size, step):
    wanted = np.lib.stride_tricks.sliding_window_view(M, size, 1)[:, ::step]
    same(a.unfold(tensor(M), 1, size, step), wanted)


@pytest.mark.parametrize("offset", [-3, -1, 0, 1, 4])
def test_diagonals(offset):
    same(d.diag(tensor(V), offset), np.diag(V, offset))
    same(d.diag(tensor(M), offset), np.diag(M, offset))
    length = np.diag(M, offset).size
    wanted = M.copy()
    rows = np.arange(length) + max(0, -offset)
    wanted[rows, rows + offset] = -1
    same(d.diagonal_scatter(tensor(M), tensor(np.full(length, -1)), offset), wanted)


@pytest.mark.parametrize(("row", "col"), [(3, 4), (4, 2), (0, 3), (1, 1)])
@pytest.mark.parametrize("offset", [-2, 0, 1, 5])
def test_indices_of_triangles(row, col, offset):
    same(METHODS["tril_indices"].function(row, col, offset), np.tril_indices(row, offset, col))
    same(METHODS["triu_indices"].function(row, col, offset), np.triu_indices(row, offset, col))


def test_grids():
    for indexing in ("ij", "xy"):
        wanted = np.meshgrid(V, V[:2], indexing=indexing)
        found = a.meshgrid(tensor(V), tensor(V[:2]), indexing=indexing)
        for one, other in zip(found, wanted, strict=True):
            same(one, other)


def test_sizes():
    same(a.pad_to(tensor(M), None, 6), np.pad(M, [(0, 0), (0, 2)]))
    same(a.shrink_to(tensor(M), (2, None)), M[:2])
    same(a.sum_to_size(tensor(M), 1, 4), M.sum(0, keepdims=True))
    same(d.tri(2, 3), np.tri(2, 3, dtype=np.float32))


def test_a_part_that_a_tensor_decides():
    same(a.narrow_method(tensor(M), 1, tensor(np.int64(-3)), 2), M[:, 1:3])
    with pytest.raises(IndexError):
        run(a.narrow_method(tensor(M), 1, tensor(np.int64(3)), 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: a.narrow_method(x, 1, 3, 2), r"2 elements from 3 on .* dimension 1 of \(3, 4\)"),
        (lambda x: a.select(x, 0, 3), "index 3 is out of range for size 3"),
        (lambda x: a.unfold(x, 0, 5, 1), "windows of 5 do not fit a dimension of 3"),
        (lambda x: a.rot90(x, 1, (0, 0)), "names dimension 0 twice"),
        (lambda x: a.meshgrid(x), r"1-d tensors, not one of shape \(3, 4\)"),
        (lambda x: a.pad_to(x, 2), "1 sizes for a tensor of 2 dimensions"),
        (lambda x: a.sum_to_size(x, 2), "does not|do not"),
        (lambda x: d.select_scatter(x, x, 0, 0), r"src has shape \(3, 4\), the part \(4,\)"),
        (lambda x: d.diag_embed(x, 0, 1, 1), "dim1 and dim2 are both dimension 1"),
        (lambda x: a.tensor_split(x, 0, read=None), "sections must be 1 or more, not 0"),
    ],
)
def test_what_cannot_be(call, message):
    with pytest.raises((ValueError, IndexError), match=message):
        call(tensor(M))
