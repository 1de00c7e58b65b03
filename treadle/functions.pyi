"""The functions of the namespace `treadle`.

Made by `tools/stubs.py --write`.
"""

import builtins
from typing import Any, overload

from treadle.graph.counting import UniqueAllResult, UniqueCountsResult, UniqueInverseResult
from treadle.graph.shapes import Axes
from treadle.tensor import Tensor
from treadle.vocabulary import Array, DTypeLike, Operand, Size

def abs(x: Operand) -> Tensor:
    """The magnitude of x; the least integer, which has none, stays as it is."""

def absolute(x: Operand) -> Tensor:
    """The magnitude of x; the least integer, which has none, stays as it is."""

def acos(x: Array) -> Tensor:
    """The angle, in radians from 0 to pi, whose cosine is x; NaN outside [-1, 1]."""

def acosh(x: Array) -> Tensor:
    """The inverse of cosh, from 0 on; NaN below 1. log(x + sqrt(x^2 - 1)) is log1p((x - 1) +
    sqrt(x^2 - 1)), exact near 1; of large x, log(x) + log(2)."""

def add(x: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """x + alpha * other."""

def all(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """Whether every element is true (not 0); True of nothing."""

def amax(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    other: Array | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The greatest value (values only); NaN if there is one."""

def amin(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    other: Array | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The least value (values only); NaN if there is one."""

def angle(x: Array) -> Tensor:
    """The angle of a complex number, in radians from -pi to pi; of a real one 0, or pi below 0."""

def any(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """Whether some element is true (not 0); False of nothing."""

def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DTypeLike | None = None,
    stop: Any = ...,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """start, start + step .. up to, without, `end`; with one number, from 0 up to it. int64 if all
    numbers are ints, else float32."""

def arccos(x: Array) -> Tensor:
    """The angle, in radians from 0 to pi, whose cosine is x; NaN outside [-1, 1]."""

def arccosh(x: Array) -> Tensor:
    """The inverse of cosh, from 0 on; NaN below 1. log(x + sqrt(x^2 - 1)) is log1p((x - 1) +
    sqrt(x^2 - 1)), exact near 1; of large x, log(x) + log(2)."""

def arcsin(x: Array) -> Tensor:
    """The angle, in radians from -pi/2 to pi/2, whose sine is x; NaN outside [-1, 1]."""

def arcsinh(x: Array) -> Tensor:
    """The inverse of sinh: of x >= 0, log(x + sqrt(x^2 + 1)), which is log1p(x (1 + x / (1 +
    sqrt(x^2 + 1)))), exact near 0; of large x, log(x) + log(2)."""

def arctan(x: Operand) -> Tensor:
    """The angle, in radians, whose tangent is x, in floating point."""

def arctan2(x: Operand, other: Operand) -> Tensor:
    """The angle, in radians from -pi to pi, of the point with the coordinates (other, x): the
    quadrant is right where that of atan(x / other) is not."""

def arctanh(x: Array) -> Tensor:
    """The inverse of tanh, (log(1 + x) - log(1 - x)) / 2; NaN outside [-1, 1]."""

def argmax(
    x: Array,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    axis: builtins.int | None = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The index, int64, of the greatest value along `dim`, or in the flattened tensor without it;
    of equals the first, and of NaN the first NaN."""

def argmin(
    x: Array,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    axis: builtins.int | None = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The index, int64, of the least value along `dim`, or in the flattened tensor without it; of
    equals the first, and of NaN the first NaN."""

def argsort(
    x: Array,
    *,
    axis: builtins.int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
    dim: builtins.int = ...,
) -> Tensor:
    """Where the elements in order along an axis stood, int64."""

def asin(x: Array) -> Tensor:
    """The angle, in radians from -pi/2 to pi/2, whose sine is x; NaN outside [-1, 1]."""

def asinh(x: Array) -> Tensor:
    """The inverse of sinh: of x >= 0, log(x + sqrt(x^2 + 1)), which is log1p(x (1 + x / (1 +
    sqrt(x^2 + 1)))), exact near 0; of large x, log(x) + log(2)."""

def atan(x: Operand) -> Tensor:
    """The angle, in radians, whose tangent is x, in floating point."""

def atan2(x: Operand, other: Operand) -> Tensor:
    """The angle, in radians from -pi to pi, of the point with the coordinates (other, x): the
    quadrant is right where that of atan(x / other) is not."""

def atanh(x: Array) -> Tensor:
    """The inverse of tanh, (log(1 + x) - log(1 - x)) / 2; NaN outside [-1, 1]."""

def bartlett_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Bartlett's window, a triangle: 1 - |2k / (n - 1) - 1|."""

def bitwise_and(x: Operand, other: Operand) -> Tensor:
    """The bits that both have, `&`."""

def bitwise_invert(x: Operand) -> Tensor:
    """x with every bit turned over, `~`; of bools: not."""

def bitwise_left_shift(x: Operand, other: Operand) -> Tensor:
    """x with its bits moved up by `other` places, `<<`; a shift by the width or more, or by less
    than 0, gives 0."""

def bitwise_not(x: Operand) -> Tensor:
    """x with every bit turned over, `~`; of bools: not."""

def bitwise_or(x: Operand, other: Operand) -> Tensor:
    """The bits that one or both have, `|`."""

def bitwise_right_shift(x: Operand, other: Operand) -> Tensor:
    """x with its bits moved down by `other` places, `>>`, keeping the sign; a shift by the width or
    more, or by less than 0, gives 0, or -1 of a negative number."""

def bitwise_xor(x: Operand, other: Operand) -> Tensor:
    """The bits that exactly one has, `^`."""

def blackman_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Blackman's window, 0.42 - 0.5 cos(2 pi k / (n - 1)) + 0.08 cos(4 pi k / (n - 1))."""

def broadcast_arrays(*_arrays: Any, arrays: Any = ...) -> list[Tensor]:
    """The arrays stretched to their common shape."""

def broadcast_to(x: Array, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
    """Stretched to a shape: a size of 1 becomes any size, -1 keeps one, new ones stand in front."""

def cat(arrays: Any, dim: builtins.int | None = 0, *, axis: builtins.int | None = ...) -> Tensor:
    """The tensors of a list joined along a dimension, or all of them flattened if it is None."""

def ceil(x: Operand) -> Tensor:
    """x rounded up to a whole number; integers stay as they are."""

def chunk(
    x: Array, chunks: builtins.int, dim: builtins.int = 0, *, axis: builtins.int = ...
) -> tuple[Tensor, ...]:
    """The tensor in (at most)"""

def clamp(x: Operand, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """x brought into [min, max]; None is no limit."""

def clip(x: Operand, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """x brought into [min, max]; None is no limit."""

def complex(real: Operand, imag: Operand) -> Tensor:
    """The complex numbers of these parts, which broadcast: complex128 of float64, else
    complex64."""

def concat(arrays: Any, dim: builtins.int | None = 0, *, axis: builtins.int | None = ...) -> Tensor:
    """The tensors of a list joined along a dimension, or all of them flattened if it is None."""

def concatenate(
    arrays: Any, dim: builtins.int | None = 0, *, axis: builtins.int | None = ...
) -> Tensor:
    """The tensors of a list joined along a dimension, or all of them flattened if it is None."""

def conj(x: Array) -> Tensor:
    """The complex conjugate, which of a real number is the number."""

def copysign(x: Operand, other: Operand) -> Tensor:
    """|x| with the sign of `other`, which may be that of a zero."""

def cos(x: Operand) -> Tensor:
    """The cosine of x radians, in floating point."""

def cosh(x: Array) -> Tensor:
    """The hyperbolic cosine; near 0, with t = expm1(x), it is 1 + t^2/(t + 1)/2, whose derivative
    keeps its digits there."""

def count_nonzero(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """How many elements are not 0, int64."""

def cumulative_prod(
    x: Array,
    *,
    axis: builtins.int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: builtins.bool = False,
    dim: builtins.int | None = ...,
) -> Tensor:
    """The product of the elements up to and including each element along `axis`, which may be left
    out of a tensor of one dimension. include_initial: begin with that of no elements."""

def cumulative_sum(
    x: Array,
    *,
    axis: builtins.int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: builtins.bool = False,
    dim: builtins.int | None = ...,
) -> Tensor:
    """The sum of the elements up to and including each element along `axis`, which may be left out
    of a tensor of one dimension. include_initial: begin with that of no elements."""

def diff(
    x: Array,
    n: builtins.int = 1,
    dim: builtins.int = -1,
    prepend: Array | None = None,
    append: Array | None = None,
    *,
    axis: builtins.int = ...,
) -> Tensor:
    """Each element less the one before it along a dimension, n times over; of bools, whether they
    differ. prepend, append: joined to the ends first, unless n is 0."""

def div(x: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """x / other, in floating point (integers give float32). rounding_mode="floor" is `//` and
    "trunc" rounds towards zero; both keep integers."""

def divide(x: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """x / other, in floating point (integers give float32). rounding_mode="floor" is `//` and
    "trunc" rounds towards zero; both keep integers."""

def einsum(
    equation: Any,
    *_tensors: Any,
    tensors: Any = ...,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """The sum of products that an equation names: `einsum("bij,bjk->bik", x, y)`."""

def empty(
    *_size: Any,
    dtype: DTypeLike | None = None,
    size: Any = ...,
    shape: Any = ...,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A tensor of zeros. (`empty` is zeros too: there is no memory without values.)"""

def empty_like(
    x: Array,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Zeros in the shape of x, and of its dtype unless one is given."""

def eq(x: Operand, other: Operand) -> Tensor:
    """Whether x == other, as bool."""

@overload
def equal(x1: Operand, x2: Operand) -> Tensor:
    """Whether x1 == x2, element by element."""

@overload
def equal(x1: Operand, *, other: Operand) -> Tensor:
    """Whether x1 == x2, element by element."""

@overload
def equal(x1: Operand, *, input2: Operand) -> Tensor:
    """Whether x1 == x2, element by element."""

def erf(x: Operand) -> Tensor:
    """The error function, in floating point."""

def exp(x: Operand) -> Tensor:
    """e to the power x, in floating point."""

def exp2(x: Operand) -> Tensor:
    """2 to the power x, in floating point."""

def expand(x: Array, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
    """Stretched to a shape: a size of 1 becomes any size, -1 keeps one, new ones stand in front."""

@overload
def expand_dims(x: Array, axis: Any) -> Tensor:
    """With dimensions of size 1 more, at `axis` (an int or several) of the result."""

@overload
def expand_dims(x: Array, *, dim: Any) -> Tensor:
    """With dimensions of size 1 more, at `axis` (an int or several) of the result."""

def expm1(x: Operand) -> Tensor:
    """exp(x) - 1, exact near 0, in floating point."""

def eye(
    n_rows: Size,
    n_cols: Size | None = None,
    *,
    k: builtins.int = 0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """The matrix of n_rows rows and n_cols columns (n_rows unless given) with ones on its diagonal
    k, above the main one if k is above 0."""

def fix(x: Operand) -> Tensor:
    """x rounded towards zero to a whole number; integers stay as they are."""

def flip(
    x: Array, *_dims: Any, dims: Any = ..., dim: Any = ..., axes: Any = ..., axis: Any = ...
) -> Tensor:
    """In reverse order along the given dimensions (none given: all)."""

def floor(x: Operand) -> Tensor:
    """x rounded down to a whole number; integers stay as they are."""

def floor_divide(x: Operand, other: Operand) -> Tensor:
    """The quotient rounded down, `//`."""

@overload
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A tensor of a shape filled with one number (or the element of a 0-d tensor), which decides
    the dtype unless one is given."""

@overload
def full(
    *,
    shape: Any,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A tensor of a shape filled with one number (or the element of a 0-d tensor), which decides
    the dtype unless one is given."""

def full_like(
    x: Array,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """One number (or the element of a 0-d tensor) in the shape of x, and of its dtype unless one is
    given."""

def ge(x: Operand, other: Operand) -> Tensor:
    """Whether x >= other, as bool."""

def greater(x: Operand, other: Operand) -> Tensor:
    """Whether x > other, as bool."""

def greater_equal(x: Operand, other: Operand) -> Tensor:
    """Whether x >= other, as bool."""

def gt(x: Operand, other: Operand) -> Tensor:
    """Whether x > other, as bool."""

def hamming_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    alpha: builtins.float = 0.54,
    beta: builtins.float = 0.46,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Hamming's window, alpha - beta cos(2 pi k / (n - 1))."""

def hann_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Hann's window, 1/2 - 1/2 cos(2 pi k / (n - 1)): float32 unless a dtype is given."""

def hypot(x: Operand, other: Operand) -> Tensor:
    """sqrt(x^2 + other^2), which does not overflow on the way; inf if either is infinite."""

def imag(x: Array) -> Tensor:
    """The imaginary part, which of a real number is 0."""

def is_complex(x: Array) -> builtins.bool:
    """Whether the dtype is complex."""

def isfinite(x: Operand) -> Tensor:
    """Whether an element is neither infinite nor NaN."""

def isinf(x: Operand) -> Tensor:
    """Whether an element is inf or -inf."""

def isnan(x: Operand) -> Tensor:
    """Whether an element is NaN."""

def isneginf(x: Operand) -> Tensor:
    """Whether an element is -inf; of integers none is."""

def isposinf(x: Operand) -> Tensor:
    """Whether an element is inf; of integers none is."""

def isreal(x: Array) -> Tensor:
    """Whether the imaginary part is 0."""

def istft(
    x: Array,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: Array | None = None,
    center: builtins.bool = True,
    normalized: builtins.bool = False,
    onesided: builtins.bool | None = None,
    length: builtins.int | None = None,
    return_complex: builtins.bool = False,
) -> Tensor:
    """The signals whose `stft`, with the same arguments, is nearest to x (.., frequencies, frames):
    frames are multiplied by the window again, summed at their places, and divided by the sum of
    squares of the windows there."""

def kaiser_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    beta: builtins.float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Kaiser's window, I0(beta sqrt(1 - u**2)) / I0(beta) with u = 2k / (n - 1) - 1."""

def le(x: Operand, other: Operand) -> Tensor:
    """Whether x <= other, as bool."""

def less(x: Operand, other: Operand) -> Tensor:
    """Whether x < other, as bool."""

def less_equal(x: Operand, other: Operand) -> Tensor:
    """Whether x <= other, as bool."""

def linspace(
    start: Any,
    stop: Any,
    num: builtins.int,
    *,
    dtype: DTypeLike | None = None,
    endpoint: builtins.bool = True,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """`num` numbers at equal distances from `start` to `stop`, which is the last one unless
    endpoint=False."""

def log(x: Operand) -> Tensor:
    """The natural logarithm; -inf of 0, NaN below, in floating point."""

def log10(x: Array) -> Tensor:
    """The logarithm to base 10, in floating point; -inf of 0, NaN below."""

def log1p(x: Operand) -> Tensor:
    """log(1 + x), exact near 0, in floating point."""

def log2(x: Operand) -> Tensor:
    """The logarithm to base 2; -inf of 0, NaN below, in floating point."""

def logaddexp(x: Operand, other: Operand) -> Tensor:
    """log(exp(x) + exp(other)), which does not overflow."""

def logical_and(x: Operand, other: Operand) -> Tensor:
    """Whether both are true (not 0), as bool."""

def logical_not(x: Operand) -> Tensor:
    """Whether x is 0 (False)."""

def logical_or(x: Operand, other: Operand) -> Tensor:
    """Whether one or both are true (not 0), as bool."""

def logical_xor(x: Operand, other: Operand) -> Tensor:
    """Whether exactly one is true (not 0), as bool."""

def lt(x: Operand, other: Operand) -> Tensor:
    """Whether x < other, as bool."""

def matmul(x: Array, other: Array) -> Tensor:
    """The matrix product `@`: (.., m, k) @ (.., k, n) -> (.., m, n), leading dimensions
    broadcast."""

def matrix_transpose(x: Array) -> Tensor:
    """Every matrix, in the last two dimensions, transposed."""

def max(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    other: Array | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The greatest value (values only); NaN if there is one."""

def maximum(x: Operand, other: Operand) -> Tensor:
    """The greater of two; NaN if either is NaN."""

def mean(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The sum divided by the number of elements; NaN of nothing."""

def meshgrid(*_arrays: Any, indexing: str = "xy", arrays: Any = ...) -> list[Tensor]:
    """The coordinates of a grid, as the method gives them, but indexing="xy" unless given."""

def min(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    other: Array | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The least value (values only); NaN if there is one."""

def minimum(x: Operand, other: Operand) -> Tensor:
    """The lesser of two; NaN if either is NaN."""

def mod(x: Operand, other: Operand) -> Tensor:
    """What `//` leaves, with the sign of `other`: `%`."""

def moveaxis(x: Array, source: Any, destination: Any) -> Tensor:
    """Dimensions moved to other places; the others keep their order."""

def movedim(x: Array, source: Any, destination: Any) -> Tensor:
    """Dimensions moved to other places; the others keep their order."""

def mul(x: Operand, other: Operand) -> Tensor:
    """x * other."""

def multiply(x: Operand, other: Operand) -> Tensor:
    """x * other."""

def ne(x: Operand, other: Operand) -> Tensor:
    """Whether x != other, as bool."""

def neg(x: Operand) -> Tensor:
    """-x."""

def negative(x: Operand) -> Tensor:
    """-x."""

def nextafter(x: Operand, other: Operand) -> Tensor:
    """The next number of the dtype after x in the direction of `other`; `other` if they are
    equal."""

def nonzero(x: Array) -> tuple[Tensor, ...]:
    """The indices of the elements that are not 0: a tensor of int64 for each dimension."""

def not_equal(x: Operand, other: Operand) -> Tensor:
    """Whether x != other, as bool."""

def ones(
    *_size: Any,
    dtype: DTypeLike | None = None,
    size: Any = ...,
    shape: Any = ...,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A tensor of ones."""

def ones_like(
    x: Array,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Ones in the shape of x, and of its dtype unless one is given."""

def permute(
    x: Array, *_dims: Any, dims: Any = ..., dim: Any = ..., axes: Any = ..., axis: Any = ...
) -> Tensor:
    """The dimensions in another order: dimension `dims[i]` becomes dimension i."""

def permute_dims(
    x: Array, *_dims: Any, dims: Any = ..., dim: Any = ..., axes: Any = ..., axis: Any = ...
) -> Tensor:
    """The dimensions in another order: dimension `dims[i]` becomes dimension i."""

def polar(abs: Operand, angle: Operand) -> Tensor:
    """The complex numbers at a distance from 0 and an angle, in radians: abs * exp(i angle)."""

def positive(x: Operand) -> Tensor:
    """x itself, `+x`."""

def pow(x: Operand, exponent: Operand) -> Tensor:
    """x to a power, `**`."""

def prod(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The product; 1 of nothing."""

def real(x: Array) -> Tensor:
    """The real part, which of a real number is the number."""

def reciprocal(x: Operand) -> Tensor:
    """1 / x, in floating point."""

def remainder(x: Operand, other: Operand) -> Tensor:
    """What `//` leaves, with the sign of `other`: `%`."""

@overload
def repeat(
    x: Array, repeats: Any, *, axis: builtins.int | None = None, dim: builtins.int | None = ...
) -> Tensor:
    """Each element `repeats` times (a number, or a tensor of one for each place), along a dimension
    or of the flattened tensor (the method `x.repeat` repeats the whole, as in PyTorch)."""

@overload
def repeat(
    x: Array, *, sizes: Any, axis: builtins.int | None = None, dim: builtins.int | None = ...
) -> Tensor:
    """Each element `repeats` times (a number, or a tensor of one for each place), along a dimension
    or of the flattened tensor (the method `x.repeat` repeats the whole, as in PyTorch)."""

@overload
def repeat(
    x: Array, *, dims: Any, axis: builtins.int | None = None, dim: builtins.int | None = ...
) -> Tensor:
    """Each element `repeats` times (a number, or a tensor of one for each place), along a dimension
    or of the flattened tensor (the method `x.repeat` repeats the whole, as in PyTorch)."""

def reshape(
    x: Array, *_shape: Any, copy: builtins.bool | None = None, shape: Any = ..., size: Any = ...
) -> Tensor:
    """The elements in row-major order in another shape; one size may be -1. copy: has no meaning
    for results that nobody can see change, so every value of it is fine."""

@overload
def roll(
    x: Array, shifts: Any, dims: Any = None, *, dim: Any = ..., axes: Any = ..., axis: Any = ...
) -> Tensor:
    """Moved by `shifts` places along `dims` (one number: along each), what leaves at the end
    entering at the start."""

@overload
def roll(
    x: Array, *, shift: Any, dims: Any = None, dim: Any = ..., axes: Any = ..., axis: Any = ...
) -> Tensor:
    """Moved by `shifts` places along `dims` (one number: along each), what leaves at the end
    entering at the start."""

def round(x: Operand, decimals: builtins.int = 0) -> Tensor:
    """x rounded to the nearest whole number, halves to the even one; with `decimals`, to so many
    digits behind the point (or, below 0, before it)."""

@overload
def searchsorted(
    x1: Array, x2: Operand, *, side: str = "left", sorter: Array | None = None
) -> Tensor:
    """Where each of `x2` is to be inserted into the ascending row `x1`, int64: before its equals,
    or after them with side="right"."""

@overload
def searchsorted(
    x1: Array, *, other: Operand, side: str = "left", sorter: Array | None = None
) -> Tensor:
    """Where each of `x2` is to be inserted into the ascending row `x1`, int64: before its equals,
    or after them with side="right"."""

@overload
def searchsorted(
    x1: Array, *, input2: Operand, side: str = "left", sorter: Array | None = None
) -> Tensor:
    """Where each of `x2` is to be inserted into the ascending row `x1`, int64: before its equals,
    or after them with side="right"."""

def sgn(x: Array) -> Tensor:
    """x / abs(x), and 0 of 0; of real numbers, the sign."""

def sign(x: Operand) -> Tensor:
    """-1, 0 or 1 as x is below, at or above 0; NaN of NaN."""

def signbit(x: Operand) -> Tensor:
    """Whether the sign is minus: of -0.0 too, and of a NaN that carries it; of integers x < 0."""

def sin(x: Operand) -> Tensor:
    """The sine of x radians, in floating point."""

def sinh(x: Array) -> Tensor:
    """The hyperbolic sine, exact near 0: there, with t = expm1(x), it is (t + t/(t + 1)) / 2."""

def sort(
    x: Array,
    *,
    axis: builtins.int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
    dim: builtins.int = ...,
) -> Tensor:
    """The elements in order along an axis (values only)."""

@overload
def split(
    x: Array, split_size: Any, dim: builtins.int = 0, *, axis: builtins.int = ...
) -> tuple[Tensor, ...]:
    """The tensor in parts along a dimension: of `split_size` each (the last may be smaller), or of
    the sizes in a list, which add up to the dimension's."""

@overload
def split(
    x: Array, *, split_size_or_sections: Any, dim: builtins.int = 0, axis: builtins.int = ...
) -> tuple[Tensor, ...]:
    """The tensor in parts along a dimension: of `split_size` each (the last may be smaller), or of
    the sizes in a list, which add up to the dimension's."""

def sqrt(x: Operand) -> Tensor:
    """The square root; NaN below 0, in floating point."""

def square(x: Operand) -> Tensor:
    """x * x, in the dtype of x; int64 of a bool."""

@overload
def squeeze(x: Array, axis: Any) -> Tensor:
    """Without the dimensions `axis` (an int or several), which have size 1: ValueError if not (the
    method `x.squeeze` leaves them)."""

@overload
def squeeze(x: Array, *, dim: Any) -> Tensor:
    """Without the dimensions `axis` (an int or several), which have size 1: ValueError if not (the
    method `x.squeeze` leaves them)."""

def stack(
    *_tensors: Any,
    dim: builtins.int | None = None,
    tensors: Any = ...,
    axis: builtins.int | None = ...,
) -> Tensor:
    """Tensors of one shape joined along a new dimension (the first unless given)."""

def std(
    x: Array,
    *,
    axis: Any = None,
    correction: builtins.int | builtins.float = 0.0,
    keepdims: builtins.bool = False,
    dim: Any = ...,
    keepdim: builtins.bool = ...,
) -> Tensor:
    """The square root of `var` (the method `x.std` has correction 1, as in PyTorch)."""

def stft(
    x: Array,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: Array | None = None,
    center: builtins.bool = True,
    pad_mode: str = "reflect",
    normalized: builtins.bool = False,
    onesided: builtins.bool | None = None,
    return_complex: builtins.bool = True,
) -> Tensor:
    """The short-time Fourier transform of signals (t,) or (batch, t): (.., frequencies, frames)."""

def sub(x: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """x - alpha * other."""

def subtract(x: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """x - alpha * other."""

def sum(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """The sum; 0 of nothing."""

def take(
    x: Array, indices: Array, *, axis: builtins.int | None = None, dim: builtins.int | None = ...
) -> Tensor:
    """The slices that 1-d indices name along `axis`, which may be left out of a tensor of one
    dimension; indices below 0 count from the end."""

def take_along_axis(
    x: Array, indices: Array, *, axis: builtins.int = -1, dim: builtins.int = ...
) -> Tensor:
    """The elements at `indices` along a dimension, the other dimensions broadcast."""

def tan(x: Operand) -> Tensor:
    """The tangent of x radians, in floating point."""

def tanh(x: Operand) -> Tensor:
    """The hyperbolic tangent, in floating point."""

def tensordot(
    x: Array, other: Array, dims: Axes = 2, *, dim: Axes = ..., axes: Axes = ..., axis: Axes = ...
) -> Tensor:
    """The sum over pairs of axes of a product: `dims` pairs the last n axes of x with the first n
    of `other`, or lists the axes of each: `([1, 2], [0, 1])`."""

def tile(x: Array, *_repeats: Any, repeats: Any = ..., sizes: Any = ..., dims: Any = ...) -> Tensor:
    """As `repeat`, but fewer numbers than dimensions are for the last dimensions."""

def tril(x: Array, diagonal: builtins.int = 0, *, k: builtins.int = ...) -> Tensor:
    """The last two dimensions with 0 above the given diagonal."""

def triu(x: Array, diagonal: builtins.int = 0, *, k: builtins.int = ...) -> Tensor:
    """The last two dimensions with 0 below the given diagonal."""

def true_divide(x: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """x / other, in floating point (integers give float32). rounding_mode="floor" is `//` and
    "trunc" rounds towards zero; both keep integers."""

def trunc(x: Operand) -> Tensor:
    """x rounded towards zero to a whole number; integers stay as they are."""

def unbind(x: Array, dim: builtins.int = 0, *, axis: builtins.int = ...) -> tuple[Tensor, ...]:
    """The slices along a dimension, without it."""

def unique_all(x: Array) -> UniqueAllResult[Tensor]:
    """The different elements in ascending order, where each stands first, which of them each
    element is, and how often each stands."""

def unique_counts(x: Array) -> UniqueCountsResult[Tensor]:
    """The different elements in ascending order, and how often each stands."""

def unique_inverse(x: Array) -> UniqueInverseResult[Tensor]:
    """The different elements in ascending order, and which of them each element is."""

def unique_values(x: Array) -> Tensor:
    """The different elements in ascending order."""

def unstack(x: Array, dim: builtins.int = 0, *, axis: builtins.int = ...) -> tuple[Tensor, ...]:
    """The slices along a dimension, without it."""

def var(
    x: Array,
    *,
    axis: Any = None,
    correction: builtins.int | builtins.float = 0.0,
    keepdims: builtins.bool = False,
    dim: Any = ...,
    keepdim: builtins.bool = ...,
) -> Tensor:
    """The mean square distance from the mean, the sum of squares divided by `count - correction`
    (the method `x.var` has correction 1, as in PyTorch)."""

def vecdot(x: Array, y: Array, *, dim: builtins.int = -1, axis: builtins.int = ...) -> Tensor:
    """The sum along one axis of the product; the other axes broadcast."""

def view_as_complex(x: Array) -> Tensor:
    """The complex numbers whose parts stand along the last dimension, of size 2."""

def view_as_real(x: Array) -> Tensor:
    """The parts along a new last dimension of size 2."""

def where(
    condition: Operand,
    x1: Operand | None = None,
    x2: Operand | None = None,
    *,
    input: Operand = ...,
    input1: Operand = ...,
    other: Operand = ...,
    input2: Operand = ...,
) -> Tensor | tuple[Tensor, ...]:
    """x1 where the condition (bool) holds, else x2; of a condition alone, where it holds: a tensor
    of indices for each dimension, as `nonzero` gives them."""

def zeros(
    *_size: Any,
    dtype: DTypeLike | None = None,
    size: Any = ...,
    shape: Any = ...,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A tensor of zeros. (`empty` is zeros too: there is no memory without values.)"""

def zeros_like(
    x: Array,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Zeros in the shape of x, and of its dtype unless one is given."""
