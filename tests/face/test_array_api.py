"""The Array API standard 2024.12: every name with its parameters, what NumPy's namespace gives for
the same calls, the tables of promotion and of special values, and what a namespace says of itself.

NumPy 2 follows the same standard: what differs from it is written here.
"""

from __future__ import annotations

import inspect
from itertools import product
from math import inf, nan, pi
from typing import Any

import numpy as np
import pytest

import treadle as xp
from treadle import Tensor
from treadle.graph.public import NAMESPACE, TABLES, other_spellings

# ---- names and parameters ------------------------------------------------------------------------
# name(parameters): those before / by position, those after * by name
SIGNATURES = """
abs(x /) acos(x /) acosh(x /) add(x1 x2 /) asin(x /) asinh(x /) atan(x /) atan2(x1 x2 /)
atanh(x /) bitwise_and(x1 x2 /) bitwise_left_shift(x1 x2 /) bitwise_invert(x /)
bitwise_or(x1 x2 /) bitwise_right_shift(x1 x2 /) bitwise_xor(x1 x2 /) ceil(x /)
clip(x / min max) conj(x /) copysign(x1 x2 /) cos(x /) cosh(x /) divide(x1 x2 /) equal(x1 x2 /)
exp(x /) expm1(x /) floor(x /) floor_divide(x1 x2 /) greater(x1 x2 /) greater_equal(x1 x2 /)
hypot(x1 x2 /) imag(x /) isfinite(x /) isinf(x /) isnan(x /) less(x1 x2 /) less_equal(x1 x2 /)
log(x /) log1p(x /) log2(x /) log10(x /) logaddexp(x1 x2 /) logical_and(x1 x2 /) logical_not(x /)
logical_or(x1 x2 /) logical_xor(x1 x2 /) maximum(x1 x2 /) minimum(x1 x2 /) multiply(x1 x2 /)
negative(x /) nextafter(x1 x2 /) not_equal(x1 x2 /) positive(x /) pow(x1 x2 /) real(x /)
reciprocal(x /) remainder(x1 x2 /) round(x /) sign(x /) signbit(x /) sin(x /) sinh(x /) square(x /)
sqrt(x /) subtract(x1 x2 /) tan(x /) tanh(x /) trunc(x /)
arange(start / stop step * dtype device) asarray(obj / * dtype device copy)
empty(shape * dtype device) empty_like(x / * dtype device)
eye(n_rows n_cols / * k dtype device) from_dlpack(x / * device copy)
full(shape fill_value * dtype device) full_like(x / fill_value * dtype device)
linspace(start stop / num * dtype device endpoint) meshgrid(arrays * indexing)
ones(shape * dtype device) ones_like(x / * dtype device) tril(x / * k) triu(x / * k)
zeros(shape * dtype device) zeros_like(x / * dtype device)
astype(x dtype / * copy device) can_cast(from_ to /) finfo(type /) iinfo(type /)
isdtype(dtype kind) result_type(arrays_and_dtypes)
take(x indices / * axis) take_along_axis(x indices / * axis)
matmul(x1 x2 /) matrix_transpose(x /) tensordot(x1 x2 / * axes) vecdot(x1 x2 / * axis)
broadcast_arrays(arrays) broadcast_to(x / shape) concat(arrays / * axis) expand_dims(x / * axis)
flip(x / * axis) moveaxis(x source destination /) permute_dims(x / axes)
repeat(x repeats / * axis) reshape(x / shape * copy) roll(x / shift * axis) squeeze(x / axis)
stack(arrays / * axis) tile(x repetitions /) unstack(x / * axis)
argmax(x / * axis keepdims) argmin(x / * axis keepdims) count_nonzero(x / * axis keepdims)
nonzero(x /) searchsorted(x1 x2 / * side sorter) where(condition x1 x2 /)
unique_all(x /) unique_counts(x /) unique_inverse(x /) unique_values(x /)
argsort(x / * axis descending stable) sort(x / * axis descending stable)
cumulative_prod(x / * axis dtype include_initial) cumulative_sum(x / * axis dtype include_initial)
max(x / * axis keepdims) mean(x / * axis keepdims) min(x / * axis keepdims)
prod(x / * axis dtype keepdims) std(x / * axis correction keepdims)
sum(x / * axis dtype keepdims) var(x / * axis correction keepdims)
all(x / * axis keepdims) any(x / * axis keepdims) diff(x / * axis n prepend append)
"""
LINALG = """
cholesky(x / * upper) cross(x1 x2 / * axis) det(x /) diagonal(x / * offset) eigh(x /) eigvalsh(x /)
inv(x /) matmul(x1 x2 /) matrix_norm(x / * keepdims ord) matrix_power(x n /)
matrix_rank(x / * rtol) matrix_transpose(x /) outer(x1 x2 /) pinv(x / * rtol) qr(x / * mode)
slogdet(x /) solve(x1 x2 /) svd(x / * full_matrices) svdvals(x /) tensordot(x1 x2 / * axes)
trace(x / * offset dtype) vecdot(x1 x2 / * axis) vector_norm(x / * axis keepdims ord)
"""
FFT = """
fft(x / * n axis norm) ifft(x / * n axis norm) fftn(x / * s axes norm) ifftn(x / * s axes norm)
rfft(x / * n axis norm) irfft(x / * n axis norm) rfftn(x / * s axes norm) irfftn(x / * s axes norm)
hfft(x / * n axis norm) ihfft(x / * n axis norm) fftfreq(n / * d dtype device)
rfftfreq(n / * d dtype device) fftshift(x / * axes) ifftshift(x / * axes)
"""


def table_of(signatures: str) -> dict[str, list[str]]:
    """name -> its parameters, and / and *."""
    entries = signatures.replace("\n", " ").split(")")
    return {e.split("(")[0].strip(): e.split("(")[1].split() for e in entries if e.strip()}


TABLE = table_of(SIGNATURES)
EXTENSIONS = [("linalg", *row) for row in table_of(LINALG).items()]
EXTENSIONS += [("fft", *row) for row in table_of(FFT).items()]
# what the face adds to the function of nodes that `inspect` sees
ADDED = {"creates": {"device"}, "like": {"device"}}
VALUES = {"e": np.e, "inf": inf, "pi": pi, "newaxis": None}


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


def test_the_table_is_whole() -> None:
    assert len(TABLE) == 133


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_function_has_the_parameters_of_the_standard(name: str) -> None:
    function = getattr(xp, name)
    parameters = TABLE[name]
    if isinstance(function, type):  # finfo, iinfo
        return
    own = inspect.signature(function).parameters
    kinds = [each.kind for each in own.values()]
    known = set(own)
    if name in NAMESPACE:
        entry = NAMESPACE[name]
        known |= set(other_spellings(entry.function)) | ADDED.get(entry.kind, set())
    first = parameters.index("/") if "/" in parameters else 0
    many = inspect.Parameter.VAR_POSITIONAL in kinds
    assert many or sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds) >= first
    by_name = {each for each in parameters[first:] if each not in "/*"}
    assert by_name <= known | {"arrays", "arrays_and_dtypes"}


@pytest.mark.parametrize(("module", "name", "parameters"), EXTENSIONS)
def test_the_extensions_have_the_parameters_of_the_standard(
    module: str, name: str, parameters: list[str]
) -> None:
    entry = TABLES[module][name]
    own = inspect.signature(entry.function).parameters
    known = set(own) | set(other_spellings(entry.function)) | ADDED.get(entry.kind, set())
    first = parameters.index("/")
    assert sum(each.kind is not inspect.Parameter.KEYWORD_ONLY for each in own.values()) >= first
    assert {each for each in parameters[first:] if each not in "/*"} <= known


def test_a_length_of_minus_one_keeps_what_there_is() -> None:
    """Also for the last of `irfftn`, of which the standard makes 2 (m - 1) numbers (NumPy: m)."""
    x = np.arange(24.0).reshape(2, 3, 4)
    half = np.fft.rfftn(x, axes=(0, 1, 2))
    got = xp.fft.rfftn(ours(x), s=(-1, 2, -1), axes=(0, 1, 2))
    np.testing.assert_allclose(got.numpy(), np.fft.rfftn(x, s=(-1, 2, -1), axes=(0, 1, 2)))
    back = xp.fft.irfftn(xp.fft.rfftn(ours(x)), s=(-1, -1, -1), axes=(0, 1, 2))
    assert back.shape == (2, 3, 4)
    np.testing.assert_allclose(back.numpy(), x, atol=1e-12)
    got = xp.fft.irfftn(ours(half), s=(-1, 5), axes=(0, 2))
    np.testing.assert_allclose(got.numpy(), np.fft.irfftn(half, s=(2, 5), axes=(0, 2)), atol=1e-12)
    with pytest.raises(ValueError, match="irfftn: s has 3 lengths for 2 dimensions"):
        xp.fft.irfftn(ours(half), s=(-1, -1, -1), axes=(0, 1))
    with pytest.raises(ValueError, match="rfftn: a transform has at least one element, not -2"):
        xp.fft.rfftn(ours(x), s=(-2,), axes=(0,))


def test_constants_and_dtypes() -> None:
    assert {name: getattr(xp, name) for name in VALUES} == VALUES
    assert xp.nan != xp.nan
    assert xp.bool is Tensor([True]).dtype
    for name in [
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
    ]:
        assert repr(getattr(xp, name)) == name


# ---- the same calls as NumPy's -------------------------------------------------------------------
RNG = np.random.default_rng(0)
F = RNG.normal(size=(3, 4)).astype(np.float32)
G = np.abs(F) + np.float32(0.1)
I = RNG.integers(-5, 6, (3, 4))  # noqa: E741  (integers)
J = RNG.integers(1, 5, (3, 4))
B = F > 0
ROW = np.sort(F[0])

CALLS: list[tuple[Any, ...]] = [
    *[
        (name, F)
        for name in [
            "abs",
            "atan",
            "asinh",
            "cos",
            "cosh",
            "exp",
            "expm1",
            "sin",
            "sinh",
            "tan",
            "tanh",
            "sign",
        ]
    ],
    *[(name, F) for name in words("signbit square negative positive ceil floor trunc round")],
    *[(name, F) for name in words("isfinite isinf isnan real conj imag reciprocal")],
    *[(name, B) for name in words("logical_not bitwise_invert")],
    *[(name, G) for name in words("sqrt log log1p log2 log10")],
    *[(name, np.tanh(F)) for name in words("acos asin atanh")],
    ("acosh", G + 1),
    ("pow", G, F),
    *[(name, F, G[0]) for name in words("add subtract multiply divide atan2 copysign hypot")],
    *[(name, F, G[0]) for name in words("logaddexp maximum minimum nextafter equal not_equal")],
    *[(name, F, G[0]) for name in words("less less_equal greater greater_equal floor_divide")],
    *[(name, F, G[0]) for name in words("remainder logical_and logical_or logical_xor")],
    *[(name, I, J) for name in words("add subtract multiply floor_divide remainder pow")],
    *[(name, I, J) for name in words("bitwise_and bitwise_or bitwise_xor maximum less")],
    *[(name, I, J) for name in words("bitwise_left_shift bitwise_right_shift")],
    *[
        (name, I)
        for name in [
            "abs",
            "sign",
            "negative",
            "square",
            "ceil",
            "floor",
            "trunc",
            "round",
            "isnan",
        ]
    ],
    *[(name, F, 2) for name in words("add subtract maximum less")],
    *[(name, 2, F) for name in words("multiply divide minimum greater_equal")],
    ("clip", F, {"min": -0.5, "max": 0.5}),
    ("clip", F, -0.5, F[0]),
    ("clip", I, None, 2),
    ("arange", 5),
    ("arange", 1, {"stop": 8, "step": 3}),
    ("arange", 1.0, 3.0, 0.5),
    ("arange", 3, {"dtype": "float32"}),
    ("eye", 3),
    ("eye", 2, 4, {"k": 1}),
    ("eye", 3, 2, {"k": -1, "dtype": "int32"}),
    ("full", (2,), 7),
    ("full", 3, True),
    ("full", (2,), {"fill_value": 1.5}),
    ("full_like", I, 3),
    ("full_like", F, {"fill_value": 3, "dtype": "int64"}),
    ("linspace", 0, 1, 5),
    ("linspace", 0, 1, {"num": 4, "endpoint": False}),
    ("meshgrid", F[0], I[0]),
    ("meshgrid", F[0], I[0], {"indexing": "ij"}),
    ("ones", 3),
    ("ones", ()),
    ("zeros", {"shape": (2, 3)}),
    ("zeros_like", I),
    ("ones_like", I, {"dtype": "float64"}),
    ("tril", F, {"k": 1}),
    ("triu", F, {"k": -1}),
    *[(name, F) for name in words("max min mean sum prod std var")],
    *[(name, F, {"axis": 0}) for name in words("max min mean sum prod std var")],
    *[(name, F, {"axis": (0, 1), "keepdims": True}) for name in words("max mean sum std")],
    ("std", F, {"correction": 1}),
    ("var", F, {"correction": 1.5, "axis": 1, "keepdims": True}),
    ("sum", F, {"dtype": "float64"}),
    ("sum", I.astype("int8")),
    ("prod", J, {"dtype": "float32"}),
    ("all", F, {"axis": (0, 1), "keepdims": True}),
    ("any", B, {"axis": 0}),
    ("diff", I),
    ("diff", F, {"axis": 0, "n": 2}),
    ("diff", I, {"prepend": I, "append": J, "axis": 1}),
    ("argmax", F),
    ("argmax", F, {"axis": 1, "keepdims": True}),
    ("argmin", F, {"axis": 0}),
    ("count_nonzero", I, {"axis": 1, "keepdims": True}),
    ("nonzero", I),
    ("where", B, F, I.astype("int32")),
    ("where", B, F, 0.0),
    ("where", B, 1.0, F),
    ("searchsorted", ROW, F[1]),
    ("searchsorted", ROW, F, {"side": "right"}),
    ("searchsorted", F[0], F[1], {"sorter": np.argsort(F[0])}),
    ("unique_all", I),
    ("unique_counts", I),
    ("unique_inverse", I),
    ("sort", F),
    ("sort", F, {"axis": 0, "stable": False}),
    ("argsort", I, {"axis": 0, "stable": True}),
    ("cumulative_sum", F, {"axis": 0}),
    ("cumulative_sum", I[0], {"include_initial": True}),
    ("cumulative_sum", I[0], {"dtype": "float64"}),
    ("cumulative_prod", F, {"axis": 1, "include_initial": True}),
    ("matmul", F, G.T),
    ("matrix_transpose", F),
    ("tensordot", F, G.T, {"axes": 1}),
    ("tensordot", F, G, {"axes": ((0, 1), (0, 1))}),
    ("vecdot", F, G),
    ("vecdot", F, G, {"axis": 0}),
    ("broadcast_arrays", F, F[0]),
    ("broadcast_to", F[0], {"shape": (2, 4)}),
    ("concat", [F, G]),
    ("concat", (F, G), {"axis": 1}),
    ("concat", [F, F[0]], {"axis": None}),
    ("expand_dims", F, {"axis": 1}),
    ("expand_dims", F, -1),
    ("flip", F),
    ("flip", F, {"axis": -1}),
    ("moveaxis", F, 0, 1),
    ("permute_dims", F, {"axes": (1, 0)}),
    ("repeat", F, 2),
    ("repeat", F, 2, {"axis": 1}),
    ("repeat", F, np.array([1, 0, 2]), {"axis": 0}),
    ("reshape", F, (4, 3)),
    ("reshape", F, {"shape": (2, -1), "copy": True}),
    ("roll", F, 1),
    ("roll", F, (1, 2), {"axis": (0, 1)}),
    ("roll", F, {"shift": -1, "axis": 0}),
    ("squeeze", F[None], 0),
    ("squeeze", F[None, :, None], {"axis": (0, 2)}),
    ("stack", [F, G], {"axis": -1}),
    ("tile", F, (2, 1)),
    ("tile", F[0], (2, 3, 1)),
    ("unstack", F, {"axis": 1}),
    ("take", F, np.array([2, 0]), {"axis": 0}),
    ("take_along_axis", F, np.argsort(F, -1)),
    ("take_along_axis", F, np.array([[0, 1, 2, 0]]), {"axis": 0}),
]


def ours(value: Any) -> Any:
    """Arguments with tensors for arrays."""
    if isinstance(value, np.ndarray):
        return xp.asarray(value)
    if isinstance(value, list | tuple):
        return type(value)(map(ours, value))
    if isinstance(value, dict):
        return {key: ours(part) for key, part in value.items()}
    return value


def check(got: Any, want: Any) -> None:
    """The same shapes and numbers; dtypes too, but for what the default float and int make."""
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            check(one, other)
        return
    want = np.asarray(want)
    assert isinstance(got, Tensor) and got.shape == want.shape
    kinds = "biuf".index(got.dtype.kind), "biuf".index(want.dtype.kind)
    assert kinds[0] == kinds[1]
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_it_gives_what_numpy_gives(call: tuple[Any, ...]) -> None:
    name, *args = call
    named = args.pop() if args and isinstance(args[-1], dict) else {}
    want = getattr(np, name)(*args, **named)
    check(getattr(xp, name)(*ours(args), **ours(named)), want)


def test_unique_values_in_order() -> None:
    assert xp.unique_values(ours(I)).tolist() == sorted(set(I.ravel().tolist()))


# ---- what functions do not take ------------------------------------------------------------------
def test_what_cannot_be_says_so() -> None:
    with pytest.raises(ValueError, match="size 3, not 1"):
        xp.squeeze(ours(F), 0)
    with pytest.raises(ValueError, match="two dimensions or more"):
        xp.matrix_transpose(ours(F[0]))
    with pytest.raises(ValueError, match="axis"):
        xp.take(ours(F), ours(np.array([0])))


def test_creation_on_a_device() -> None:
    assert xp.zeros((2,), device="INTERP").device == "INTERP"
    assert xp.zeros_like(xp.ones(2, device="INTERP")).device == "INTERP"
    assert xp.astype(xp.ones(2), xp.int8, device="INTERP").device == "INTERP"
    assert Tensor.randn(2, device="INTERP").device == "INTERP"
    with pytest.raises(ValueError, match="device"):
        xp.zeros(2, device="nowhere")


# ---- promotion -----------------------------------------------------------------------------------
SIGNED = [xp.int8, xp.int16, xp.int32, xp.int64]
UNSIGNED = [xp.uint8, xp.uint16, xp.uint32]
# the row of a signed dtype, the column of an unsigned one: what they give
MIXED = [
    [xp.int16, xp.int32, xp.int64],
    [xp.int16, xp.int32, xp.int64],
    [xp.int32, xp.int32, xp.int64],
    [xp.int64, xp.int64, xp.int64],
]


def promotions() -> list[tuple[Any, Any, Any]]:
    """(one dtype, another, what they give), as the standard's tables say."""
    rows = [SIGNED, [*UNSIGNED, xp.uint64], [xp.float32, xp.float64]]
    found = [(a, b, max(a, b, key=row.index)) for row in rows for a, b in product(row, row)]
    for a, row in zip(SIGNED, MIXED):
        for b, both in zip(UNSIGNED, row):
            found += [(a, b, both), (b, a, both)]
    return [*found, (xp.bool, xp.bool, xp.bool)]


@pytest.mark.parametrize(("a", "b", "both"), promotions())
def test_promotion(a: Any, b: Any, both: Any) -> None:
    one, other = xp.ones(1, dtype=a), xp.ones(1, dtype=b)
    assert xp.result_type(a, b) is xp.result_type(one, b) is both
    result = one & other if a is xp.bool else one + other
    assert result.dtype is both
    assert xp.where(one == other, one, other).dtype is both
    assert xp.concat([one, other]).dtype is both
    assert xp.can_cast(a, b) is (both is b)


@pytest.mark.parametrize(
    ("dtype", "number", "both"),
    [(d, n, d) for d in (*SIGNED, *UNSIGNED, xp.uint64) for n in (True, 1)]
    + [(d, n, d) for d in (xp.float16, xp.bfloat16, xp.float32, xp.float64) for n in (1, 1.5)],
)
def test_python_numbers_are_weak(dtype: Any, number: Any, both: Any) -> None:
    assert xp.result_type(dtype, number) is both
    assert (xp.ones(1, dtype=dtype) + number).dtype is both
    assert (number + xp.ones(1, dtype=dtype)).dtype is both


# ---- special values ------------------------------------------------------------------------------
# what functions of one variable give: "argument -> value", in the standard's words
UNARY = """
abs        nan nan, -0 0, -inf inf
acos       nan nan, 2 nan, -2 nan, 1 0
acosh      nan nan, 0.5 nan, 1 0, inf inf
asin       nan nan, 2 nan, -2 nan, 0 0, -0 -0
asinh      nan nan, 0 0, -0 -0, inf inf, -inf -inf
atan       nan nan, 0 0, -0 -0, inf pi/2, -inf -pi/2
atanh      nan nan, -2 nan, 2 nan, -1 -inf, 1 inf, 0 0, -0 -0
ceil       nan nan, inf inf, -inf -inf, 0 0, -0 -0, -0.5 -0, 3 3
cos        nan nan, 0 1, -0 1, inf nan, -inf nan
cosh       nan nan, 0 1, -0 1, inf inf, -inf inf
exp        nan nan, 0 1, -0 1, inf inf, -inf 0
expm1      nan nan, 0 0, -0 -0, inf inf, -inf -1
floor      nan nan, inf inf, -inf -inf, 0 0, -0 -0, 0.5 0, -3 -3
log        nan nan, -1 nan, 0 -inf, -0 -inf, 1 0, inf inf
log1p      nan nan, -2 nan, -1 -inf, 0 0, -0 -0, inf inf
log2       nan nan, -1 nan, 0 -inf, -0 -inf, 1 0, inf inf
log10      nan nan, -1 nan, 0 -inf, -0 -inf, 1 0, inf inf
reciprocal nan nan, inf 0, -inf -0, 0 inf, -0 -inf
round      nan nan, inf inf, -inf -inf, 0 0, -0 -0, 0.5 0, 1.5 2, 2.5 2, -0.5 -0
sign       nan nan, 0 0, -0 0, inf 1, -inf -1
sin        nan nan, 0 0, -0 -0, inf nan, -inf nan
sinh       nan nan, 0 0, -0 -0, inf inf, -inf -inf
sqrt       nan nan, -1 nan, 0 0, -0 -0, inf inf
square     nan nan, inf inf, -inf inf, -0 0
tan        nan nan, 0 0, -0 -0, inf nan, -inf nan
tanh       nan nan, 0 0, -0 -0, inf 1, -inf -1
trunc      nan nan, inf inf, -inf -inf, 0 0, -0 -0, 0.5 0, -0.5 -0, 3 3
isfinite   nan 0, inf 0, -inf 0, 1 1
isinf      nan 0, inf 1, -inf 1, 1 0
isnan      nan 1, inf 0, 1 0
signbit    0 0, -0 1, inf 0, -inf 1, 1 0, -1 1
"""
BINARY = """
add          nan 1 nan, 1 nan nan, inf -inf nan, -inf inf nan, inf inf inf, inf 1 inf, -0 -0 -0,
             -0 0 0, 0 -0 0, -0 2 2, 1 -1 0
atan2        nan 1 nan, 1 nan nan, 1 0 pi/2, 1 -0 pi/2, 0 1 0, 0 0 0, 0 -0 pi, 0 -1 pi, -0 1 -0,
             -0 0 -0, -0 -0 -pi, -0 -1 -pi, -1 0 -pi/2, -1 -0 -pi/2, 1 inf 0, 1 -inf pi,
             -1 inf -0, -1 -inf -pi, inf 1 pi/2, -inf 1 -pi/2, inf inf pi/4, inf -inf 3*pi/4,
             -inf inf -pi/4, -inf -inf -3*pi/4
copysign     1 -0 -1, -1 0 1, inf -1 -inf, 0 -1 -0
divide       nan 1 nan, inf inf nan, inf -inf nan, 0 0 nan, 0 -0 nan, 0 1 0, -0 1 -0, 0 -1 -0,
             1 0 inf, 1 -0 -inf, -1 0 -inf, -1 -0 inf, inf 2 inf, inf -2 -inf, -inf 2 -inf,
             2 inf 0, 2 -inf -0, -2 inf -0, -2 -inf 0
floor_divide nan 1 nan, 1 nan nan, inf inf nan, inf -inf nan, -inf inf nan, 0 0 nan, 0 -0 nan,
             0 1 0, -0 1 -0, 0 -1 -0, -0 -1 0, 1 0 inf, 1 -0 -inf, -1 0 -inf, -1 -0 inf,
             2 inf 0, 2 -inf -1, -2 inf -1, -2 -inf 0, 5 2 2, -5 2 -3, 5 -2 -3, -5 -2 2
hypot        inf nan inf, nan -inf inf, nan 1 nan, 0 -3 3, -inf 0 inf
logaddexp    nan 1 nan, inf nan nan, inf 1 inf, 1 inf inf
maximum      nan 1 nan, 1 nan nan, inf 1 inf
minimum      nan 1 nan, 1 nan nan, -inf 1 -inf
multiply     nan 1 nan, inf 0 nan, inf -0 nan, inf inf inf, inf -inf -inf, inf 2 inf, inf -2 -inf,
             0 -2 -0, -0 -2 0
nextafter    nan 1 nan, 1 nan nan, -0 0 0, 0 -0 -0, inf inf inf
pow          2 nan nan, 1 nan 1, nan 0 1, nan -0 1, 2 0 1, nan 2 nan, 2 inf inf, 2 -inf 0,
             -2 inf inf, 1 inf 1, -1 inf 1, -1 -inf 1, 0.5 inf 0, 0.5 -inf inf, inf 2 inf,
             inf -2 0, -inf 3 -inf, -inf 2 inf, -inf -3 -0, -inf -2 0, 0 2 0, 0 -2 inf, -0 3 -0,
             -0 2 0, -0 -3 -inf, -0 -2 inf, -2 0.5 nan
remainder    nan 1 nan, 1 nan nan, inf 2 nan, -inf 2 nan, inf inf nan, 1 0 nan, 1 -0 nan, 0 0 nan,
             0 2 0, -0 2 0, 0 -2 -0, -0 -2 -0, 2 2 0, -2 2 0, 2 -2 -0, -2 -2 -0,
             2 inf 2, -2 -inf -2, -2 inf inf, 2 -inf -inf, 5 2 1, -5 2 1, 5 -2 -1, -5 -2 -1
subtract     inf inf nan, -inf -inf nan, 0 0 0, -0 0 -0, 1 inf -inf
equal        nan nan 0, inf inf 1, 0 -0 1
not_equal    nan nan 1, 0 -0 0
less         nan 1 0, 1 nan 0, -inf inf 1, -0 0 0
less_equal   nan 1 0, -inf -inf 1, 0 -0 1
greater      nan 1 0, inf 1 1
greater_equal nan nan 0, inf inf 1, -0 0 1
"""


def number(text: str) -> float:
    """A number as the tables write it."""
    sign = -1.0 if text.startswith("-") else 1.0
    parts = {"pi": pi, "3*pi/4": 3 * pi / 4, "pi/2": pi / 2, "pi/4": pi / 4}
    text = text.removeprefix("-")
    return sign * (parts[text] if text in parts else float(text))


def rows(table: str) -> list[tuple[str, list[list[float]]]]:
    """(function, [[arguments.., value], ..]) of every row of a table."""
    found: dict[str, str] = {}
    name = ""
    for line in table.strip().splitlines():
        if not line.startswith(" "):
            name, _, line = line.partition(" ")
        found[name] = f"{found.get(name, '')} {line.strip()}"
    cases = {name: text.strip().rstrip(",").split(",") for name, text in found.items()}
    return [(name, [list(map(number, c.split())) for c in each]) for name, each in cases.items()]


@pytest.mark.parametrize("dtype", [xp.float32, xp.float64], ids=repr)
@pytest.mark.parametrize(("name", "cases"), [*rows(UNARY), *rows(BINARY)], ids=lambda x: str(x)[:9])
def test_special_values(name: str, cases: list[list[float]], dtype: Any) -> None:
    *arguments, want = np.array(cases).T
    got = getattr(xp, name)(*[xp.asarray(each, dtype=dtype) for each in arguments]).numpy()
    near = np.isclose(got, want, rtol=1e-6, atol=0, equal_nan=True)
    signs = np.isnan(want) | (np.signbit(got.astype(np.float64)) == np.signbit(want))
    wrong = [case for case, one, other in zip(cases, near, signs) if not (one and other)]
    assert not wrong, (wrong, got)


# ---- reductions of nothing and of NaN ------------------------------------------------------------
def test_reductions_of_nothing() -> None:
    empty = xp.zeros((0,))
    assert float(xp.sum(empty)) == 0 and float(xp.prod(empty)) == 1
    assert bool(xp.all(empty)) and not bool(xp.any(empty))
    assert np.isnan(float(xp.mean(empty)))
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises((ValueError, IndexError), match=name):
            getattr(xp, name)(empty)
    bad = xp.asarray([1.0, nan])
    for name in ("sum", "prod", "max", "min", "mean", "std", "var"):
        assert np.isnan(float(getattr(xp, name)(bad)))


# ---- dtypes --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_finfo(name: str) -> None:
    got, want = xp.finfo(getattr(xp, name)), np.finfo(name)
    for field in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(got, field) == getattr(want, field)
    assert got.dtype is getattr(xp, name)


@pytest.mark.parametrize("name", ["int8", "uint16", "int64", "uint64"])
def test_iinfo(name: str) -> None:
    got, want = xp.iinfo(xp.ones(1, dtype=name)), np.iinfo(name)
    assert (got.bits, got.max, got.min) == (want.bits, want.max, want.min)
    with pytest.raises(TypeError, match="finfo is of floats"):
        xp.iinfo(xp.float32)
    with pytest.raises(TypeError, match="iinfo is of integers"):
        xp.finfo(name)


def test_isdtype() -> None:
    assert xp.isdtype(xp.bfloat16, "real floating")
    assert xp.isdtype(xp.uint8, ("signed integer", "unsigned integer"))
    assert xp.isdtype(xp.uint8, "numeric") and not xp.isdtype(xp.bool, "numeric")
    assert not xp.isdtype(xp.float32, "complex floating")
    with pytest.raises(ValueError, match="no kind 'real'"):
        xp.isdtype(xp.float32, "real")


def test_can_cast_between_no_kinds() -> None:
    assert not xp.can_cast(xp.int8, xp.float32)
    assert not xp.can_cast(xp.bool, xp.int8)
    assert not xp.can_cast(xp.uint64, xp.int64)
    assert xp.can_cast(Tensor([1.0]), xp.float64)


# ---- the namespace of itself ---------------------------------------------------------------------
def test_inspection() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.default_device() in info.devices()
    assert info.default_dtypes()["indexing"] is xp.int64
    assert set(info.dtypes(kind="bool")) == {"bool"}
    assert set(info.dtypes(kind=("signed integer", "real floating"))) >= {"int8", "float64"}
    assert xp.__array_api_version__ == "2024.12"
    assert Tensor(1).__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="2099"):
        Tensor(1).__array_namespace__(api_version="2099.1")


def test_the_object() -> None:
    x = xp.asarray([[1, 2, 3]])
    assert (+x).tolist() == x.tolist()
    assert x.mT.shape == (3, 1) == x.T.shape and x.ndim == 2
    assert [10, 20][xp.asarray(1)] == 20
    assert x.to_device(x.device).tolist() == x.tolist()
    with pytest.raises(NotImplementedError, match="stream"):
        x.to_device(x.device, stream=1)
    x += 1
    x @= xp.eye(3, dtype=xp.int64)
    assert x.tolist() == [[2, 3, 4]]


def test_asarray_and_astype() -> None:
    x = Tensor([1.0, 2.0])
    assert xp.asarray(x) is x is xp.astype(x, xp.float32, copy=False)
    assert xp.asarray(x, copy=True) is not x
    assert xp.asarray([1, 2], dtype=xp.float64).dtype is xp.float64
    assert xp.asarray(True).dtype is xp.bool
    with pytest.raises(ValueError, match="always copied"):
        xp.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="needs a copy"):
        xp.asarray(x, dtype=xp.int8, copy=False)


# ---- tensors for numbers -------------------------------------------------------------------------
def test_sizes_and_bounds_that_are_tensors_are_read() -> None:
    n = Tensor([2, 3]).sum()
    assert xp.zeros((n, 2)).shape == (5, 2)
    assert xp.broadcast_to(Tensor(1.0), (n, Tensor(1) + 1)).shape == (5, 2)
    assert xp.reshape(xp.arange(n + n), (n, -1)).shape == (5, 2)
    assert xp.arange(10)[n - 3 : n].tolist() == [2, 3, 4]
    x = xp.arange(6)
    x[:n] = 0
    assert x.tolist() == [0, 0, 0, 0, 0, 5]
    with pytest.raises(TypeError, match=r"zeros: a size is an int .* not a tensor of float32"):
        xp.zeros((Tensor(2.0),))
    with pytest.raises(xp.JitError, match="size that is a tensor"):
        xp.jit(lambda size: xp.zeros((size,)))(n)


def test_full_of_an_element_of_a_tensor() -> None:
    x = Tensor(2.5, requires_grad=True)
    filled = xp.full((3,), x)
    filled.sum().backward()
    assert filled.tolist() == [2.5] * 3 and x.grad is not None and x.grad.item() == 3.0
    assert xp.full_like(Tensor([1, 2]), x).tolist() == [2, 2]


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers_add_up_in_uint64(name: str, dtype: str) -> None:
    x = Tensor([20, 100], dtype=dtype)
    found = getattr(xp, name)(x)
    assert found.dtype is xp.uint64
    np.testing.assert_array_equal(found.numpy(), getattr(np, name)(x.numpy()))
    assert x.sum().dtype is (xp.uint64 if dtype == "uint64" else xp.int64)  # PyTorch's


def test_one_shift_for_several_axes() -> None:
    assert xp.roll(Tensor([[1, 2], [3, 4]]), 1, axis=(0, 1)).tolist() == [[4, 3], [2, 1]]


def test_rounding_and_lines_of_complex_numbers() -> None:
    z = np.array([1.5 - 2.5j, -0.5 + 0.5j], np.complex64)
    np.testing.assert_array_equal(xp.round(ours(z)).numpy(), np.round(z))
    for ends in [(0, 1 + 2j), (1j, -1.0)]:
        for endpoint in (True, False):
            got = xp.linspace(*ends, 5, endpoint=endpoint)
            np.testing.assert_allclose(got.numpy(), np.linspace(*ends, 5, endpoint=endpoint))
    assert xp.linspace(0, 1, 3, dtype=xp.complex64).dtype is xp.complex64
    with pytest.raises(TypeError, match="linspace: a complex number"):
        xp.linspace(0, 1j, 3, dtype=xp.float32)


def test_membership() -> None:
    x = Tensor([1.0, float("nan")])
    assert 1 in x and 2 not in x and float("nan") not in x
    assert 3 in Tensor([[1, 2], [3, 4]])
