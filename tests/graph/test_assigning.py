"""Writing at indices against loops in NumPy, for every way to combine, and what is refused."""

import numpy as np
import pytest
from arrays import run, same, tensor

from treadle.graph import assigning as a

X = np.array([[3, -1, 2, 5], [0, 4, -6, 1], [2, 2, 7, -3]], np.int64)
PICK = np.array([[0, 2, 1], [2, 0, 1]])
SOURCE = np.array([[5, -2, 3, 9], [1, 4, -8, 9]], np.int64)
COMBINE = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("reduce", [*COMBINE, "mean"])
def test_scatter_reduce(reduce, own):
    wanted = X.copy()
    for row in range(3):
        for column in range(3):
            values = list(SOURCE[:, :3][PICK[:, column] == row, column])
            if values:
                values += [X[row, column]] if own else []
                total = np.floor(np.mean(values)) if reduce == "mean" else COMBINE[reduce](values)
                wanted[row, column] = total
    found = a.scatter_reduce(tensor(X), 0, tensor(PICK), tensor(SOURCE), reduce, include_self=own)
    same(found, wanted)


def test_slices():
    rows, source = np.array([2, 0, 2]), X * 10
    wanted = X.copy()
    np.add.at(wanted, rows, -source)
    same(a.index_add(tensor(X), 0, tensor(rows), tensor(source), alpha=-1), wanted)
    wanted = X.copy()
    wanted[rows] = source
    same(a.index_copy(tensor(X), 0, tensor(rows), tensor(source)), wanted)
    wanted[rows] = 9
    same(a.index_fill(tensor(X), 0, tensor(rows), 9), wanted)
    wanted = X.copy()
    np.maximum.at(wanted, rows, source)
    same(a.index_reduce(tensor(X), 0, tensor(rows), tensor(source), "amax"), wanted)


def test_numbers_of_no_dimension():
    x, zero = np.int64(5), np.int64(0)
    same(a.index_add(tensor(x), 0, tensor(zero), tensor(np.int64(3))), np.int64(8))
    same(a.take(tensor(x), tensor(zero)), x)


def test_bytes_wrap():
    x = np.array([1, 2], np.uint8)
    same(a.index_add(tensor(x), 0, tensor([0]), tensor(x[1:]), alpha=-1), x - np.uint8([2, 0]))


def test_flat_places():
    places = np.array([[0, -1], [5, 0]])
    same(a.take(tensor(X), tensor(places)), np.take(X, places))
    wanted = X.copy()
    np.put(wanted, places, [1, 2, 3, 4])
    source = tensor(np.array([1, 2, 3, 4]))
    same(a.put(tensor(X), tensor(places), source), wanted)
    wanted = X.copy()
    np.add.at(wanted.reshape(-1), places.ravel(), [1, 2, 3, 4])
    same(a.put(tensor(X), tensor(places), source, accumulate=True), wanted)
    with pytest.raises(IndexError):
        run(a.take(tensor(X), tensor([12])))


def test_puts_that_add_up():
    rows, columns = np.array([0, 0, 2]), np.array([1, 1, -1])
    wanted = X.copy()
    np.add.at(wanted, (rows, columns), 10)
    found = a.index_put(
        tensor(X), (tensor(rows), tensor(columns)), tensor(np.int64(10)), True, read=None
    )
    same(found, wanted)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: a.index_add(x, 0, tensor([0, 1]), x), r"2 slices along .* have \(2, 4\)"),
        (lambda x: a.index_add(x, 0, tensor([0]), tensor([[1.0]])), "source has shape"),
        (lambda x: a.scatter_reduce(x, 0, x, x, "max"), "reduce is one of .*'amax'.* not 'max'"),
        (lambda x: a.index_fill(x, 0, tensor([0]), tensor([1, 2])), "the value is one number"),
        (lambda x: a.take(x, tensor([0.5])), "the indices are float64; they must be integers"),
    ],
)
def test_what_cannot_be(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(tensor(X))
