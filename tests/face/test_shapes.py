"""Every shape and every view: 0-d, empty, size 1, five dimensions; permuted, flipped, strided, cut
out of something larger, expanded. Judged by NumPy; for functions that NumPy has not, by the same
call on tensors that are no views."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import calls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle import Tensor, config
from treadle.ir.dtype import float64, int64

Array = np.ndarray

# ---- views ---------------------------------------------------------------------------------------
# how a tensor with these numbers arises from another one in memory
VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "permuted": lambda x: held(x.permute(*range(x.ndim)[::-1])).permute(*range(x.ndim)[::-1]),
    "flipped": lambda x: held(x.flip(*range(x.ndim))).flip(*range(x.ndim)) if x.ndim else x,
    "strided": lambda x: held(x.repeat_interleave(2, 0))[::2] if x.ndim else x,
    "cut out": lambda x: (
        held(Tensor.cat([x, x, x], 0))[x.shape[0] : 2 * x.shape[0]] if x.ndim else x
    ),
    "expanded": lambda x: held(x).unsqueeze(0).expand(3, *x.shape)[1],
    "split": lambda x: held(x.flatten()).reshape(x.shape),
}


def held(x: Tensor) -> Tensor:
    """A tensor with memory of its own."""
    return x.contiguous().realize()


def numbers(result: Any) -> Any:
    return result.numpy() if isinstance(result, Tensor) else result


OF_COMPLEX = {"linalg.eig", "linalg.eigvals", "treadle.view_as_real"}
NAMES = sorted(set(calls.CALLS) - calls.DRAWN - OF_COMPLEX)
OF_INTEGERS = ("bitwise", "one_hot", "bincount", "gcd", "lcm", "unravel_index")
AT_ONCE = 12


@pytest.mark.parametrize("first", range(0, len(NAMES), AT_ONCE))
def test_views_are_worth_what_they_show(first: int) -> None:
    """Every public function, each tensor of its call through a view that is drawn from its name."""
    plain, through = {}, {}
    with config.DEVICE.set("INTERP"):
        for name in NAMES[first : first + AT_ONCE]:
            draw, call = random.Random(name), calls.CALLS[name]
            xs = calls.operands(name, int64 if name.startswith(OF_INTEGERS) else float64)
            views = [VIEWS[draw.choice(list(VIEWS))](x) for x in xs]
            plain[name] = calls.flat(call.how(calls.ours(name), *xs))
            through[name] = calls.flat(call.how(calls.ours(name), *views))
        every = [x for each in (*plain.values(), *through.values()) for x in each]
        tensors = [x for x in every if isinstance(x, Tensor)]
        if tensors:
            tensors[0].realize(*tensors[1:])
    for name, results in plain.items():
        for one, other in zip(results, through[name], strict=True):
            np.testing.assert_allclose(numbers(other), numbers(one), 1e-9, 1e-12, err_msg=name)


# ---- shapes --------------------------------------------------------------------------------------
SHAPES = st.lists(st.integers(0, 3), max_size=5).map(tuple)
DTYPES = st.sampled_from(["float32", "float64", "int32", "uint8", "bool"])
ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "exp": np.exp, "sin": np.sin, "sign": np.sign, "floor": np.floor,
    "isnan": np.isnan, "logical_not": np.logical_not, "signbit": np.signbit, "tanh": np.tanh,
}  # fmt: skip
BINARY: dict[str, Callable[..., Array]] = {
    "add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "lt": np.less, "eq": np.equal, "logical_and": np.logical_and, "atan2": np.arctan2,
    "copysign": np.copysign, "hypot": np.hypot,
}  # fmt: skip
REDUCTIONS: dict[str, Callable[..., Array]] = {
    "sum": np.sum, "prod": np.prod, "any": np.any, "all": np.all, "mean": np.mean,
    "max": np.max, "min": np.min, "count_nonzero": np.count_nonzero,
}  # fmt: skip
# of a tensor and a dimension
ALONG: dict[str, tuple[Callable[..., Any], Callable[..., Array]]] = {
    "cumsum": (lambda x, d: x.cumsum(d), np.cumsum),
    "cumprod": (lambda x, d: x.cumprod(d), np.cumprod),
    "sort": (lambda x, d: x.sort(d)[0], np.sort),
    "argsort": (lambda x, d: x.argsort(d), lambda x, d: np.argsort(x, d, stable=True)),
    "argmax": (lambda x, d: x.argmax(d), np.argmax),
    "argmin": (lambda x, d: x.argmin(d), np.argmin),
    "flip": (lambda x, d: x.flip(d), np.flip),
    "roll": (lambda x, d: x.roll(2, d), lambda x, d: np.roll(x, 2, d)),
    "unsqueeze": (lambda x, d: x.unsqueeze(d), np.expand_dims),
    "cat": (lambda x, d: Tensor.cat([x, x], d), lambda x, d: np.concatenate([x, x], d)),
    "stack": (lambda x, d: Tensor.stack([x, x], d), lambda x, d: np.stack([x, x], d)),
    "repeat_interleave": (lambda x, d: x.repeat_interleave(2, d), lambda x, d: np.repeat(x, 2, d)),
    "movedim": (lambda x, d: x.movedim(d, 0), lambda x, d: np.moveaxis(x, d, 0)),
    "transpose": (lambda x, d: x.transpose(d, -1), lambda x, d: np.swapaxes(x, d, -1)),
    "narrow": (lambda x, d: x.narrow(d, 0, x.shape[d] // 2), lambda x, d: np.split(
        x, [x.shape[d] // 2], d)[0]),
    "softmax": (lambda x, d: x.softmax(d), lambda x, d: _softmax(x.astype(_real(x)), d)),
}  # fmt: skip


def _real(x: Array) -> np.dtype:
    return x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)


def _softmax(x: Array, dim: int) -> Array:
    powers = np.exp(x - x.max(dim, keepdims=True)) if x.size else x
    return powers / powers.sum(dim, keepdims=True)


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    steps = np.random.default_rng(seed).integers(-4, 5, shape)
    if dtype == "bool":
        return steps > 0
    if dtype.startswith("float"):
        return np.where(steps == 4, np.nan, steps / 4).astype(dtype)
    return (np.abs(steps) if dtype == "uint8" else steps).astype(dtype)


def assert_like(found: Tensor, expected: Any, what: str) -> None:
    """The same shape and numbers; NumPy makes float64 of integers, and uint64 of sums of bytes."""
    expected = np.asarray(expected)
    assert found.shape == expected.shape, what
    assert (found.dtype.kind == "f") == (expected.dtype.kind == "f"), what
    np.testing.assert_allclose(found.numpy(), expected, 1e-5, 1e-6, err_msg=what)


def refused(
    call: Callable[[], Tensor], array: Array, dims: tuple[int, ...] | None, name: str
) -> None:
    """The greatest of nothing is an error, unless none of them is asked for."""
    if array.sum(axis=dims).size:
        with pytest.raises((ValueError, IndexError), match=name):
            call().numpy()
    else:
        assert call().numpy().size == 0


@st.composite
def pictures(draw: Any) -> tuple[Array, Tensor, str]:
    """An array, a tensor with its numbers, which is a view, and what they are."""
    shape, dtype, view = draw(SHAPES), draw(DTYPES), draw(st.sampled_from(list(VIEWS)))
    array = drawn(shape, dtype, draw(st.integers(0, 9)))
    return array, VIEWS[view](Tensor(array)), f"{dtype} {shape} {view}"


@pytest.fixture(autouse=True)
def _interpreted() -> Any:
    with config.DEVICE.set("INTERP"), np.errstate(all="ignore"):
        yield


def of_float(name: str, x: Array) -> Array:
    """Functions for floats turn what is none into float32."""
    keep = name in ("abs", "sign", "floor", "isnan", "logical_not", "signbit")
    return x if keep and x.dtype.kind != "b" else x.astype(_real(x))


@given(pictures(), st.sampled_from(list(ELEMENTWISE)))
@settings(deadline=None, max_examples=60)
def test_elementwise(picture: tuple[Array, Tensor, str], name: str) -> None:
    array, x, what = picture
    found = getattr(x, name)()
    if array.dtype.kind == "b":
        expected = ELEMENTWISE[name](array.astype(np.float32))
        expected = expected.astype(bool) if found.dtype.kind == "b" else expected
    else:
        expected = ELEMENTWISE[name](of_float(name, array))
    assert_like(found, expected, f"{name} {what}")


@given(pictures(), st.sampled_from(list(BINARY)), st.data())
@settings(deadline=None, max_examples=80)
def test_two_that_broadcast(picture: tuple[Array, Tensor, str], name: str, data: Any) -> None:
    array, x, what = picture
    keep = data.draw(st.lists(st.booleans(), min_size=array.ndim, max_size=array.ndim))
    shape = tuple(size if kept else 1 for size, kept in zip(array.shape, keep))
    shape = shape[data.draw(st.integers(0, len(shape))) :]
    other = drawn(shape, str(array.dtype), 3)
    of_floats = name in ("atan2", "copysign", "hypot")
    a, b = (side.astype(_real(side)) if of_floats else side for side in (array, other))
    assert_like(getattr(x, name)(Tensor(other)), BINARY[name](a, b), f"{name} {what} {shape}")


@given(pictures(), st.sampled_from(list(REDUCTIONS)), st.data())
@settings(deadline=None, max_examples=80)
def test_reductions(picture: tuple[Array, Tensor, str], name: str, data: Any) -> None:
    array, x, what = picture
    axes = data.draw(st.lists(st.integers(0, max(0, array.ndim - 1)), unique=True, max_size=3))
    dims = tuple(axes) if axes and array.ndim else None
    count = np.prod([array.shape[d] for d in dims]) if dims else array.size
    if name in ("max", "min") and not count:
        refused(lambda: getattr(x, name)(dims), array, dims, name)
        return
    if name == "mean" and not count:  # NumPy warns of it
        assert np.isnan(x.mean(dims).numpy()).all()
        return
    given_ = array.astype(_real(array)) if name == "mean" else array
    expected = REDUCTIONS[name](given_, axis=dims)
    assert_like(getattr(x, name)(dims), expected, f"{name} {what} {dims}")


@given(pictures(), st.sampled_from(list(ALONG)), st.data())
@settings(deadline=None, max_examples=120)
def test_along_a_dimension(picture: tuple[Array, Tensor, str], name: str, data: Any) -> None:
    array, x, what = picture
    if not array.ndim:
        return
    dim = data.draw(st.integers(-array.ndim, array.ndim - 1))
    ours, theirs = ALONG[name]
    if name in ("argmax", "argmin") and not array.shape[dim]:
        refused(lambda: ours(x, dim), array, (dim,), name)
        return
    assert_like(ours(x, dim), theirs(array, dim), f"{name} {what} {dim}")
