"""Arrays of others, wherever one may stand: each is taken for its values, or refused with what to
give instead. None loses what it knows in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import Tensor

X = Tensor([[1.0, 2.0], [3.0, 4.0]])


def put(value: Any) -> Tensor:
    """What is written to a tensor."""
    x = X.clone()
    x[:] = value
    return x


WAYS: dict[str, Callable[[Any], Any]] = {
    "Tensor": Tensor,
    "in a list": lambda a: Tensor([a, a]),
    "asarray": treadle.asarray,
    "operand": lambda a: X + a,
    "argument": lambda a: X.maximum(a),
    "named": lambda a: X.clamp(min=a),
    "written": put,
    "assigned": lambda a: X.clone().copy_(a),
    "index": lambda a: X[a],
}
MASKED = np.ma.array([1, 0], mask=[True, False])
REFUSED: dict[str, tuple[Any, str]] = {
    "masked": (MASKED, r"a masked array: a tensor has no mask.* give array.filled\(value\)"),
    "masked nowhere": (np.ma.array([1, 0]), "a masked array"),
    "objects": (np.array([1, None]), r"dtype object .* give array.astype\(float\)"),
    "words": (np.array(["a", "b"]), "dtype <U1 has no treadle dtype.* give numbers"),
    "new words": (np.array(["a", "b"], dtype=np.dtypes.StringDType()), "dtype StringDType"),
    "bytes": (np.array([b"a", b"b"]), r"dtype \|S1 has no treadle dtype"),
    "fields": (np.zeros(2, dtype=[("a", "f4")]), r"give one field, as in array\['a'\]"),
    "times": (np.array(["2020-01-01"], dtype="M8[D]"), r"give array.astype\('int64'\), the time s"),
    "spans": (np.array([1, 2], dtype="m8[s]"), r"give array.astype\('int64'\), the time in its"),
    "long": (np.ones(2, dtype=np.longdouble), r"give array.astype\('float64'\)"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused(kind: str, way: str) -> None:
    array, message = REFUSED[kind]
    if kind == "long" and array.dtype == np.float64:
        pytest.skip("a long double is a double here")
    with pytest.raises(TypeError, match=message):
        WAYS[way](array)


def test_the_memory_of_a_masked_array_is_not_lent() -> None:
    for take in (treadle.from_dlpack, lambda a: treadle.asarray(a, copy=False)):
        with pytest.raises(TypeError, match="a masked array"):
            take(MASKED)
    with pytest.raises(TypeError, match="a masked array"):
        Tensor.from_numpy(MASKED)


def test_a_masked_array_keeps_its_mask_beside_a_tensor() -> None:
    found = np.ma.array([1.0, 2.0], mask=[True, False]) + Tensor([1.0, 2.0])
    assert isinstance(found, np.ma.MaskedArray)
    assert found.filled(-1).tolist() == [-1.0, 4.0]


def test_a_matrix_is_an_array_of_two_dimensions() -> None:
    matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    for found in (X * matrix, matrix * X):
        assert isinstance(found, Tensor) and found.tolist() == [[1.0, 4.0], [9.0, 16.0]]
    assert X.matmul(matrix).tolist() == [[7.0, 10.0], [15.0, 22.0]]


class Given:
    """An array of another library, of which NumPy gets an array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


def test_the_array_that_another_library_gives() -> None:
    given = Given(np.array([1.0, 2.0]))
    assert Tensor(given).dtype is treadle.float64
    assert Tensor([given, given]).dtype is treadle.float64
    assert (X + given).tolist() == [[2.0, 4.0], [4.0, 6.0]]
    with pytest.raises(TypeError, match="dtype object"):
        Tensor([Given(np.array([1, None]))])


def test_a_sparse_matrix_says_how_it_becomes_dense() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    for make in (sparse.csr_matrix, sparse.coo_array):
        with pytest.raises(TypeError, match=r"not cs|not coo_array: write Tensor\(x.toarray\(\)\)"):
            Tensor(make(np.eye(2)))
    assert Tensor(sparse.csr_matrix(np.eye(2)).toarray()).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    column, x = pandas.Series([1.0, 2.0]), Tensor([1.0, 2.0])
    assert Tensor(column).dtype is Tensor([column]).dtype is treadle.float64
    assert (x + column).tolist() == (column + x).tolist() == [2.0, 4.0]
    assert isinstance(column + x, pandas.Series)
    assert Tensor(pandas.Series([1, None], dtype="Int64")).isnan().tolist() == [False, True]
    assert Tensor(pandas.DataFrame({"a": [1, 2], "b": [3, 4]})).tolist() == [[1, 3], [2, 4]]
    for wrong in (pandas.Series([1, "a"]), pandas.DataFrame({"a": [1], "b": ["x"]})):
        for way in ("Tensor", "in a list", "operand", "argument", "written"):
            with pytest.raises(TypeError, match="dtype object"):
                WAYS[way](wrong)


def test_a_range_is_a_list_of_integers() -> None:
    assert Tensor(range(3)).tolist() == Tensor([0, 1, 2]).tolist()
    assert Tensor([range(2), range(2)]).tolist() == [[0, 1], [0, 1]]
    assert Tensor(range(2), dtype="float32").dtype is treadle.float32


def test_numpy_takes_our_dtypes() -> None:
    for dtype in (treadle.bool_, treadle.int8, treadle.uint64, treadle.float16, treadle.complex64):
        assert np.zeros(2, dtype=dtype).dtype == np.dtype(dtype) == np.dtype(dtype.name)
    with pytest.raises(TypeError, match="'bfloat16'"):
        np.dtype(treadle.bfloat16)
