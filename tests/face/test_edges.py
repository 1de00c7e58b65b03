"""Arithmetic and casts at the edges of every dtype: the ends of the ranges, the middles between two
floats, denormals, infinities, NaN, zeros. Judged by Python's integers and fractions, or by NumPy in
float64 rounded once; docs/numerics.md decides what these leave open."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dtypes import DTYPES, FLOATS, INTEGERS, edges, nearest, rounded, tensor

import treadle
from treadle import Tensor, config
from treadle.ir.dtype import DType, bool_, float64, int64, uint64

DEVICES = ("INTERP", "CPU")


def realized(results: dict[Any, Tensor]) -> dict[Any, np.ndarray]:
    """The numbers of many tensors, from one program."""
    first, *rest = results.values()
    first.realize(*rest)
    return {name: result.numpy() for name, result in results.items()}


def assert_same(found: np.ndarray, expected: Any, given: list[Any], what: str) -> None:
    """Equal bit for bit, but for what NaN carries; `given` names the arguments of a fault."""
    expected = np.array(expected, dtype=found.dtype)
    same = found == expected
    if found.dtype.kind == "f":
        same &= np.signbit(found) == np.signbit(expected)
        same |= np.isnan(found) & np.isnan(expected)
    wrong = [(given[i], found[i], expected[i]) for i in np.flatnonzero(~same)[:4]]
    assert not wrong, f"{what}: (arguments, found, expected) {wrong}"


# ---- casts ---------------------------------------------------------------------------------------
def cast_of(value: Any, target: DType) -> Any:
    """The table of casts of docs/numerics.md."""
    if target is bool_:
        return value != 0
    if target.is_float:
        return nearest(float(value) if isinstance(value, bool) else value, target)
    if isinstance(value, float):
        limited = 0 if math.isnan(value) else min(max(value, target.min), target.max)
        return int(limited)
    return target.from_bits(target.to_bits(int(value)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", DTYPES, ids=repr)
def test_casts(source: DType, device: str) -> None:
    values = edges(source)
    values = values[:: max(1, len(values) // 400)]
    with config.DEVICE.set(device):
        x = tensor(values, source)
        for target, found in realized({target: x.cast(target) for target in DTYPES}).items():
            assert_same(found, [cast_of(v, target) for v in values], values, f"to {target}")


@pytest.mark.parametrize("target", [*FLOATS], ids=repr)
def test_constants_are_rounded_once(target: DType) -> None:
    for value in [*edges(int64)[::9], *edges(uint64)[::9], *edges(float64)[::5]]:
        found = target.from_bits(target.to_bits(value))
        expected = nearest(value, target)
        assert found == expected or math.isnan(expected), (value, found, expected)


def test_rounding_of_arrays_is_that_of_fractions() -> None:
    values = edges(float64)
    for dtype in FLOATS:
        expected = [nearest(value, dtype) for value in values]
        assert_same(rounded(dtype, np.array(values)), expected, values, str(dtype))


# ---- integers ------------------------------------------------------------------------------------
def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def power(a: int, b: int, dtype: DType) -> int:
    if b >= 0:
        return pow(a, b, 1 << dtype.bits)
    return {1: 1, -1: 1 if b % 2 == 0 else -1}.get(a, 0)


def shifted_right(a: int, b: int, dtype: DType) -> int:
    return a >> b if 0 <= b < dtype.bits else -(a < 0)


COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
# function -> its value for Python's ints, before it wraps
OF_TWO: dict[str, Callable[[int, int, DType], Any]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "floor_divide": lambda a, b, _: a // b if b else 0,
    "remainder": lambda a, b, _: a % b if b else 0,
    "fmod": lambda a, b, _: a - truncated(a, b) * b if b else 0,
    "pow": power,
    "bitwise_and": lambda a, b, _: a & b,
    "bitwise_or": lambda a, b, _: a | b,
    "bitwise_xor": lambda a, b, _: a ^ b,
    "bitwise_left_shift": lambda a, b, dtype: a << b if 0 <= b < dtype.bits else 0,
    "bitwise_right_shift": shifted_right,
    "heaviside": lambda a, b, _: b if a == 0 else a > 0,
    "logical_and": lambda a, b, _: bool(a and b),
    "logical_or": lambda a, b, _: bool(a or b),
    "logical_xor": lambda a, b, _: bool(a) != bool(b),
    **{name: lambda a, b, _: max(a, b) for name in ("maximum", "fmax")},
    **{name: lambda a, b, _: min(a, b) for name in ("minimum", "fmin")},
    **{
        name: (lambda compare: lambda a, b, _: compare(a, b))(getattr(operator, name))
        for name in COMPARISONS
    },
}
OF_ONE: dict[str, Callable[[int], Any]] = {
    "neg": operator.neg,
    "abs": abs,
    "square": lambda a: a * a,
    "sign": lambda a: (a > 0) - (a < 0),
    "bitwise_not": operator.invert,
    "logical_not": operator.not_,
    "signbit": lambda a: a < 0,
    "relu": lambda a: max(a, 0),
    **dict.fromkeys(("floor", "ceil", "trunc", "round", "positive", "nan_to_num"), int),
    **dict.fromkeys(("isnan", "isinf", "isposinf", "isneginf"), lambda a: False),
    "isfinite": lambda a: True,
}


def chosen(dtype: DType) -> list[int]:
    """Some integers at the edges."""
    own = {0, 1, 2, 3, 7, dtype.bits - 1, dtype.bits, dtype.max, dtype.max - 1, dtype.max // 2 + 1}
    own |= {dtype.min, dtype.min + 1, -1, -2, -7, -dtype.bits, 2**53 + 1, -(2**53) - 1, 2**63 + 1}
    return sorted(n for n in own if dtype.min <= n <= dtype.max)


def wrapped(values: list[Any], dtype: DType) -> list[Any]:
    return values if dtype is bool_ else [dtype.from_bits(dtype.to_bits(v)) for v in values]


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_integers(dtype: DType) -> None:
    numbers = chosen(dtype)
    pairs = list(itertools.product(numbers, numbers))
    with config.DEVICE.set("CPU"):
        x, y = (tensor(list(side), dtype) for side in zip(*pairs))
        one = tensor(numbers, dtype)
        of_two = {name: getattr(x, name)(y) for name in OF_TWO}
        of_one = {name: getattr(one, name)() for name in OF_ONE}
        found = realized(of_two | of_one)
    for name, meaning in OF_TWO.items():
        values = [meaning(a, b, dtype) for a, b in pairs]
        assert_same(found[name], wrapped(values, of_two[name].dtype), pairs, name)
    for name, mean in OF_ONE.items():
        values = [mean(a) for a in numbers]
        assert_same(found[name], wrapped(values, of_one[name].dtype), numbers, name)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_integers_with_python_ints(dtype: DType) -> None:
    """On either side; a number that is known has rules of its own."""
    numbers = chosen(dtype)
    x = tensor(numbers, dtype)
    results: dict[tuple[str, int, bool], Tensor] = {}
    for name in OF_TWO:
        for number in numbers[::3]:
            if name == "pow" and not 0 <= number < 1 << 16:
                continue
            results[name, number, False] = getattr(x, name)(number)
    mirrored = {"rsub": "sub", "rfloordiv": "floor_divide", "rmod": "remainder", "rpow": "pow",
                "rlshift": "bitwise_left_shift", "rrshift": "bitwise_right_shift"}  # fmt: skip
    for sign, name in mirrored.items():
        for number in numbers[1::3]:
            results[name, number, True] = getattr(x, f"__{sign}__")(number)
    with config.DEVICE.set("INTERP"):
        found = realized(results)
    for (name, number, left), array in found.items():
        meaning = OF_TWO[name]
        values = [meaning(*((number, a) if left else (a, number)), dtype) for a in numbers]
        own = results[name, number, left].dtype
        assert_same(array, wrapped(values, own), numbers, f"{name} of {number}, left: {left}")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_integers_of_two_dtypes_are_compared_exactly(dtype: DType, device: str) -> None:
    """Column with row, so broadcast, too."""
    numbers = chosen(dtype)
    with config.DEVICE.set(device):
        x = tensor(numbers, dtype).reshape(-1, 1)
        results = {
            (name, other): getattr(x, name)(tensor(chosen(other), other))
            for name in COMPARISONS
            for other in INTEGERS
        }
        found = realized(results)
    for (name, other), array in found.items():
        pairs = list(itertools.product(numbers, chosen(other)))
        expected = [getattr(operator, name)(a, b) for a, b in pairs]
        assert_same(array.reshape(-1), expected, pairs, f"{name} with {other}")


@pytest.mark.parametrize("dtype", [bool_, *INTEGERS], ids=repr)
def test_integers_are_compared_with_python_ints_of_any_size(dtype: DType) -> None:
    numbers = [False, True] if dtype is bool_ else chosen(dtype)
    x = tensor(numbers, dtype)
    beyond = [-(10**400), -(2**63) - 1, -(2**63), -1, 300, 2**63, 2**64 - 1, 2**64, 10**400]
    results = {
        (name, number, of): compare(x, number)
        for number in beyond
        for name in COMPARISONS
        for of, compare in (
            ("operator", getattr(operator, name)),
            ("method", getattr(Tensor, name)),
            ("function", getattr(treadle, name)),
            ("mirrored", lambda x, number, name=name: getattr(operator, name)(number, x)),
        )
    }
    found = realized(results)
    for (name, number, of), array in found.items():
        compare = getattr(operator, name)
        pairs = [(number, n) if of == "mirrored" else (n, number) for n in numbers]
        assert_same(array, [compare(*pair) for pair in pairs], pairs, f"{of} {name}")


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_floats_are_compared_with_python_ints_of_any_size(dtype: DType) -> None:
    numbers = [-math.inf, -1.0, 0.0, 2.0, math.inf, math.nan]
    x = tensor(numbers, dtype)
    found = realized(
        {
            (name, sign, mirrored): getattr(operator, name)(*pair)
            for name in COMPARISONS
            for sign in (1, -1)
            for mirrored, pair in enumerate([(x, sign * 10**400), (sign * 10**400, x)])
        }
    )
    for (name, sign, mirrored), array in found.items():
        compare = getattr(operator, name)
        pairs = [(sign * math.inf, n) if mirrored else (n, sign * math.inf) for n in numbers]
        assert_same(array, [compare(*pair) for pair in pairs], pairs, name)


def test_exact_comparisons_have_shapes_and_transforms_as_any() -> None:
    big, near = Tensor(2**63, dtype="uint64"), Tensor(2**63 - 1)
    assert not (big == near).item() and (big > near).item() and (near != big).item()
    assert (Tensor.zeros(2, 3, dtype="uint8") < 300).numpy().tolist() == [[True] * 3] * 2
    assert (Tensor.zeros(0, dtype="uint8") < 300).shape == (0,) and (near < 2**64).shape == ()
    assert treadle.equal(Tensor([2**63], dtype="uint64"), Tensor([-(2**63)])).tolist() == [False]
    assert (Tensor([2**64 - 1, 3], dtype="uint64") == np.int8(-1)).tolist() == [False, False]
    assert np.less(Tensor([1], dtype="uint8"), 300).tolist() == [True]
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        _ = Tensor([1, 2], dtype="uint64") < Tensor([1, 2, 3])

    ours, theirs = [0, 2**63, 2**64 - 1], [-1, 2**63 - 1, -1]
    x, y = Tensor(ours, dtype="uint64"), Tensor(theirs)
    expected = [a > b for a, b in zip(ours, theirs)]
    for run in (treadle.jit, treadle.vmap, lambda f: treadle.jit(treadle.vmap(f))):
        greater = run(lambda a, b: a > b)
        assert greater(x, y).tolist() == greater(x, y).tolist() == expected
        beyond = run(lambda a: a > -1)
        assert beyond(x).tolist() == beyond(x).tolist() == [True] * 3
    against_all = treadle.vmap(treadle.vmap(operator.le, in_dims=(None, 0)), in_dims=(0, None))
    assert against_all(x, y).tolist() == [[a <= b for b in theirs] for a in ours]


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_reductions_and_orders_of_integers(dtype: DType) -> None:
    up = chosen(dtype)
    down = up[::-1]
    wide = uint64 if dtype is uint64 else int64
    with config.DEVICE.set("CPU"):
        x, y = tensor(up, dtype), tensor(down, dtype)
        results = {
            "sum": (x.sum(), wrapped([sum(up)], wide)),
            "prod": (x[-3:].prod(), wrapped([math.prod(up[-3:])], wide)),
            "cumsum": (x.cumsum(0), wrapped(list(itertools.accumulate(up)), wide)),
            "max": (y.max(), [up[-1]]),
            "min": (x.min(), [up[0]]),
            "argmax": (Tensor.cat([y, y]).argmax(), [0]),
            "argmin": (Tensor.cat([x, x]).argmin(), [0]),
            "count_nonzero": (x.count_nonzero(), [len(up) - 1]),
            "sort": (y.sort()[0], up),
            "argsort": (y.argsort(), list(range(len(up)))[::-1]),
            "topk": (x.topk(3)[0], down[:3]),
            "kthvalue": (y.kthvalue(2)[0], [up[1]]),
            "median": (y.median(), [up[(len(up) - 1) // 2]]),
            "cummax": (y.cummax(0)[0], [up[-1]] * len(up)),
            "cummin": (y.cummin(0)[0], down),
            "unique": (treadle.unique_values(Tensor.cat([y, x])), up),
            "searchsorted": (x.searchsorted(y), list(range(len(up)))[::-1]),
            "isin": (x.isin(y[:2]), [n in up[-2:] for n in up]),
            "dot": (x.dot(y), wrapped([sum(a * b for a, b in zip(up, down))], dtype)),
            "diff": (x.diff(), wrapped([b - a for a, b in itertools.pairwise(up)], dtype)),
            "clamp": (x.clamp(up[2], up[-3]), [min(max(n, up[2]), up[-3]) for n in up]),
            "gather": (x.gather(0, y.argsort()), down),
        }
        found = realized({name: result for name, (result, _) in results.items()})
    for name, (_, expected) in results.items():
        assert found[name].reshape(-1).tolist() == expected, name


# ---- floats --------------------------------------------------------------------------------------
def greater(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """maximum: NaN wins, 0.0 is above -0.0."""
    return np.where((a == b) & np.signbit(a), b, np.where(a == b, a, np.maximum(a, b)))


def less(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return -greater(-a, -b)


# rounded once from float64, they are exact
EXACT_OF_TWO: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "maximum": greater, "minimum": less, "copysign": np.copysign,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "heaviside": lambda a, b: np.where(a == 0, b, np.where(a > 0, 1.0, 0.0)),  # as PyTorch
}  # fmt: skip
EXACT_OF_ONE: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square,
    "reciprocal": np.reciprocal, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.rint, "sqrt": np.sqrt, "positive": np.positive, "logical_not": np.logical_not,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit,
    "isposinf": np.isposinf, "isneginf": np.isneginf,
}  # fmt: skip
NEAR_OF_ONE = (
    {
        name: getattr(np, name)
        for name in "exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sinh cosh".split()  # noqa: SIM905
    }
    | {
        name: getattr(np, f"arc{name[1:]}")
        for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
    }
)


def some_floats(dtype: DType) -> list[float]:
    """Numbers of a floating dtype at its edges."""
    tiny, eps = dtype.smallest_normal, dtype.eps
    sizes = [0.0, 0.5, 1.0, 1.5, 2.5, 0.1, 7.0, 1 + eps, 1 / eps, 1 / eps + 1, tiny, tiny * eps,
             tiny - tiny * eps, dtype.largest, dtype.largest / 2, math.inf]  # fmt: skip
    return [nearest(sign * size, dtype) for size in sizes for sign in (1, -1)] + [math.nan]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_floats(dtype: DType, device: str) -> None:
    numbers = some_floats(dtype)
    pairs = list(itertools.product(numbers, numbers))
    with config.DEVICE.set(device):
        x, y = (tensor(list(side), dtype) for side in zip(*pairs))
        one = tensor(numbers, dtype)
        names = {name: getattr(x, name)(y) for name in EXACT_OF_TWO}
        names |= {name: getattr(one, name)() for name in (EXACT_OF_ONE | NEAR_OF_ONE)}
        found = realized(names)
    a, b = np.array(pairs).T
    with np.errstate(all="ignore"):
        for name, meaning in EXACT_OF_TWO.items():
            value = meaning(a, b)
            expected = value if names[name].dtype is bool_ else rounded(dtype, value)
            assert_same(found[name], expected, pairs, name)
        for name, meaning in EXACT_OF_ONE.items():
            value = meaning(np.array(numbers))
            expected = value if names[name].dtype is bool_ else rounded(dtype, value)
            assert_same(found[name], expected, numbers, name)
        for name, meaning in NEAR_OF_ONE.items():
            value = rounded(dtype, meaning(np.array(numbers)))
            np.testing.assert_allclose(
                found[name],
                value,
                4 * dtype.eps,
                4 * dtype.smallest_normal * dtype.eps,
                err_msg=name,
            )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_quotients_and_what_they_leave(dtype: DType, device: str) -> None:
    """`//`, `%` and fmod are exact, and their zeros have the signs of the standard (as NumPy's),
    where the quotient is not too long (docs/differences.md)."""
    numbers = some_floats(dtype)
    pairs = [
        (a, b)
        for a, b in itertools.product(numbers, numbers)
        if not (math.isfinite(a) and math.isfinite(b) and b and abs(a) / abs(b) > 1e14)
    ]
    with config.DEVICE.set(device):
        x, y = (tensor(list(side), dtype) for side in zip(*pairs))
        found = realized({"//": x // y, "%": x % y, "fmod": x.fmod(y)})
    a, b = np.array(pairs).T
    with np.errstate(all="ignore"):
        expected = {"//": np.floor_divide(a, b), "%": np.remainder(a, b), "fmod": np.fmod(a, b)}
    for name, value in expected.items():
        assert_same(found[name], rounded(dtype, value), pairs, name)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_orders_of_floats(dtype: DType) -> None:
    numbers = some_floats(dtype)
    x = tensor(numbers[::-1], dtype)  # NaN is the first
    results = {
        "sort": x.sort()[0],
        "argmax": x.argmax(),
        "argmin": x.argmin(),
        "max": x[1:].max(),
        "min": x[1:].min(),
        "nan": x.max(),
    }
    with config.DEVICE.set("INTERP"):
        found = realized(results)
    np.testing.assert_array_equal(found["sort"], np.sort(np.array(numbers)))
    assert found["argmax"] == found["argmin"] == 0
    assert (found["max"], found["min"]) == (dtype.max, dtype.min)
    assert np.isnan(found["nan"])


# ---- results that are wider ----------------------------------------------------------------------
def test_sums_have_room() -> None:
    small = Tensor([200, 200], dtype="uint8")
    assert small.sum().item() == 400 and small.prod().item() == 40000
    assert small.cumsum(0).tolist() == [200, 400]
    assert small.sum(dtype="uint8").item() == 144
    assert Tensor([True, True]).cumsum(0).tolist() == [1, 2]
    assert Tensor([2**63 - 1, 1]).sum().item() == -(2**63)
    assert Tensor([2**53 + 1, 1]).sum().item() == 2**53 + 2
    halves = Tensor([60000.0, 60000.0], dtype="float16")
    assert halves.sum().item() == math.inf and halves.mean().item() == 60000.0
    assert Tensor([1.0] * 600, dtype="bfloat16").sum().item() == 600
    assert (Tensor([1.0] * 600, dtype="bfloat16") @ Tensor([1.0] * 600, dtype="bfloat16")) == 600


def test_ints_beyond_the_range() -> None:
    x, y = Tensor([1], dtype="uint8"), Tensor([2**63], dtype="uint64")
    for call in (
        lambda: x + 256,
        lambda: x.maximum(-1),
        lambda: x.clamp(-5, 300),
        lambda: x.masked_fill(x > 0, 300),
        lambda: x.threshold(0, -1),
        lambda: x << -1,
        lambda: np.add(x, 300),
        lambda: y * -1,
        lambda: Tensor([1]) + 2**63,
        lambda: Tensor([1.0]) + 10**400,
        lambda: Tensor(10**5000),
        lambda: Tensor(1j) * 10**400,
        lambda: treadle.full((2,), 10**5000),
    ):
        with pytest.raises(OverflowError, match=r"does not fit|too large"):
            call()
    assert (y + 2**63).tolist() == [0]
    assert y.logical_and(2**63).tolist() == [True]
    assert (Tensor([1.0]) * 2**128).item() == math.inf
    assert (Tensor([0.0], dtype="bfloat16") + ((1 << 60) + (1 << 52) + 1)).item() == nearest(
        (1 << 60) + (1 << 52) + 1, DTYPES[10]
    )


# ---- numbers of NumPy ----------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_numpy_scalars_count_as_arrays(dtype: DType) -> None:
    """But float64: that is a Python float."""
    x = tensor([nearest(1, dtype) if dtype.is_float else True], dtype)
    for other in DTYPES:
        if other.storage.name != other.name or other is float64:
            continue
        number = other.storage.type(1)
        expected = (x * Tensor(number)).dtype
        for result in (x * number, number * x, np.multiply(number, x), x.maximum(number)):
            assert result.dtype is expected, (dtype, other)
        assert (x == number).dtype is (number == x).dtype is bool_
        assert dtype.is_float or (x * number).tolist() == [1]
    assert (x * np.float64(1)).dtype is (np.float64(1) * x).dtype is (x * 1.0).dtype
