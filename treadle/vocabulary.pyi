"""The methods of Tensor that come from the table of public names.

Made by `tools/stubs.py --write`.
"""

import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from treadle.dims import Dim
from treadle.graph.linalg.results import (
    QRResult,
    SlogdetResult,
    TensorSVDResult,
    TriangularSolveResult,
)
from treadle.graph.results import MinMax, ValuesIndices
from treadle.graph.shapes import Axes
from treadle.graph.windows import Padding, Sizes
from treadle.ir.dtype import DType
from treadle.tensor import Tensor

# The class has methods named `bool`, `float` and `int`; there they are `builtins.int` etc.
Number: TypeAlias = bool | int | float
Array: TypeAlias = Tensor | np.ndarray[Any, Any] | np.generic
Operand: TypeAlias = Array | Number | Dim
Size: TypeAlias = int | Dim
DTypeLike: TypeAlias = DType | str | type | np.dtype[Any]

class Vocabulary:
    """The public names as methods; Tensor is its one subclass."""

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix, which for real numbers is the transpose."""

    @property
    def T(self) -> Tensor:
        """The dimensions in reverse order: of a matrix, its transpose."""

    def abs(self) -> Tensor:
        """The magnitude of x; the least integer, which has none, stays as it is."""

    def abs_(self) -> Tensor:
        """`abs`, with the result put into this tensor. Returns it."""

    def absolute(self) -> Tensor:
        """The magnitude of x; the least integer, which has none, stays as it is."""

    def absolute_(self) -> Tensor:
        """`absolute`, with the result put into this tensor. Returns it."""

    def acos(self) -> Tensor:
        """The angle, in radians from 0 to pi, whose cosine is x; NaN outside [-1, 1]."""

    def acos_(self) -> Tensor:
        """`acos`, with the result put into this tensor. Returns it."""

    def arccos(self) -> Tensor:
        """The angle, in radians from 0 to pi, whose cosine is x; NaN outside [-1, 1]."""

    def arccos_(self) -> Tensor:
        """`arccos`, with the result put into this tensor. Returns it."""

    def acosh(self) -> Tensor:
        """The inverse of cosh, from 0 on; NaN below 1. log(x + sqrt(x^2 - 1)) is log1p((x - 1) +
        sqrt(x^2 - 1)), exact near 1; of large x, log(x) + log(2)."""

    def acosh_(self) -> Tensor:
        """`acosh`, with the result put into this tensor. Returns it."""

    def arccosh(self) -> Tensor:
        """The inverse of cosh, from 0 on; NaN below 1. log(x + sqrt(x^2 - 1)) is log1p((x - 1) +
        sqrt(x^2 - 1)), exact near 1; of large x, log(x) + log(2)."""

    def arccosh_(self) -> Tensor:
        """`arccosh`, with the result put into this tensor. Returns it."""

    def adaptive_avg_pool1d(self, output_size: Sizes) -> Tensor:
        """The mean of each of `output_size` windows that divide the last 1 dimension(s) as evenly
        as possible."""

    def adaptive_avg_pool1d_(self, output_size: Sizes) -> Tensor:
        """`adaptive_avg_pool1d`, with the result put into this tensor. Returns it."""

    def adaptive_avg_pool2d(self, output_size: Sizes) -> Tensor:
        """The mean of each of `output_size` windows that divide the last 2 dimension(s) as evenly
        as possible."""

    def adaptive_avg_pool2d_(self, output_size: Sizes) -> Tensor:
        """`adaptive_avg_pool2d`, with the result put into this tensor. Returns it."""

    def adaptive_avg_pool3d(self, output_size: Sizes) -> Tensor:
        """The mean of each of `output_size` windows that divide the last 3 dimension(s) as evenly
        as possible."""

    def adaptive_avg_pool3d_(self, output_size: Sizes) -> Tensor:
        """`adaptive_avg_pool3d`, with the result put into this tensor. Returns it."""

    def adaptive_max_pool1d(self, output_size: Sizes, return_indices: builtins.bool = False) -> Any:
        """The greatest element of each of `output_size` windows that divide the last 1 dimension(s)
        as evenly as possible."""

    def adaptive_max_pool2d(self, output_size: Sizes, return_indices: builtins.bool = False) -> Any:
        """The greatest element of each of `output_size` windows that divide the last 2 dimension(s)
        as evenly as possible."""

    def adaptive_max_pool3d(self, output_size: Sizes, return_indices: builtins.bool = False) -> Any:
        """The greatest element of each of `output_size` windows that divide the last 3 dimension(s)
        as evenly as possible."""

    def add(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """x + alpha * other."""

    def add_(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """`add`, with the result put into this tensor. Returns it."""

    def addbmm(self, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * the sum over the batch of batch1 @ batch2; with beta=0, x is not
        read."""

    def addbmm_(self, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addbmm`, with the result put into this tensor. Returns it."""

    def addcdiv(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        """x + value * tensor1 / tensor2, in floating point."""

    def addcdiv_(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        """`addcdiv`, with the result put into this tensor. Returns it."""

    def addcmul(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        """x + value * tensor1 * tensor2, rounded once in half and bfloat16."""

    def addcmul_(self, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
        """`addcmul`, with the result put into this tensor. Returns it."""

    def addmm(self, mat1: Array, mat2: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * (mat1 @ mat2)."""

    def addmm_(self, mat1: Array, mat2: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addmm`, with the result put into this tensor. Returns it."""

    def addmv(self, mat: Array, vec: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * (mat @ vec); with beta=0, x is not read."""

    def addmv_(self, mat: Array, vec: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addmv`, with the result put into this tensor. Returns it."""

    def addr(self, vec1: Array, vec2: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * outer(vec1, vec2); with beta=0, x is not read."""

    def addr_(self, vec1: Array, vec2: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addr`, with the result put into this tensor. Returns it."""

    def adjoint(self) -> Tensor:
        """The conjugate transposes of the matrices in the last two dimensions: `mH`."""

    def adjoint_(self) -> Tensor:
        """`adjoint`, with the result put into this tensor. Returns it."""

    @overload
    def affine_grid(
        self, size: Sequence[builtins.int], align_corners: builtins.bool | None = None
    ) -> Tensor:
        """The grid for `grid_sample` of affine maps: for each place (x, y, 1) of the result, theta
        times it."""

    @overload
    def affine_grid(
        self, *, shape: Sequence[builtins.int], align_corners: builtins.bool | None = None
    ) -> Tensor:
        """The grid for `grid_sample` of affine maps: for each place (x, y, 1) of the result, theta
        times it."""

    @overload
    def affine_grid_(
        self, size: Sequence[builtins.int], align_corners: builtins.bool | None = None
    ) -> Tensor:
        """`affine_grid`, with the result put into this tensor. Returns it."""

    @overload
    def affine_grid_(
        self, *, shape: Sequence[builtins.int], align_corners: builtins.bool | None = None
    ) -> Tensor:
        """`affine_grid`, with the result put into this tensor. Returns it."""

    def all(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Whether every element is true (not 0); True of nothing."""

    def all_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`all`, with the result put into this tensor. Returns it."""

    def allclose(
        self,
        other: Operand,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Whether `isclose` holds everywhere."""

    def alpha_dropout(self, p: builtins.float = 0.5, *, random_key: Any = ...) -> Tensor:
        """x with each element set to the least value of `selu` with probability p, and all scaled
        and shifted so that mean 0 and variance 1 stay. random_key: as of `dropout`."""

    def aminmax(
        self,
        *,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> MinMax[Tensor]:
        """(the least, the greatest) value, of all or along a dimension; NaN if there is one."""

    def angle(self) -> Tensor:
        """The angle of a complex number, in radians from -pi to pi; of a real one 0, or pi below
        0."""

    def angle_(self) -> Tensor:
        """`angle`, with the result put into this tensor. Returns it."""

    def any(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """Whether some element is true (not 0); False of nothing."""

    def any_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`any`, with the result put into this tensor. Returns it."""

    @staticmethod
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
        """start, start + step .. up to, without, `end`; with one number, from 0 up to it. int64 if
        all numbers are ints, else float32."""

    def argmax(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The index, int64, of the greatest value along `dim`, or in the flattened tensor without
        it; of equals the first, and of NaN the first NaN."""

    def argmax_(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`argmax`, with the result put into this tensor. Returns it."""

    def argmin(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The index, int64, of the least value along `dim`, or in the flattened tensor without it;
        of equals the first, and of NaN the first NaN."""

    def argmin_(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`argmin`, with the result put into this tensor. Returns it."""

    def argsort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        *,
        stable: builtins.bool = True,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Where the elements in order stood, int64: the indices of `sort`."""

    def argsort_(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        *,
        stable: builtins.bool = True,
        axis: builtins.int = ...,
    ) -> Tensor:
        """`argsort`, with the result put into this tensor. Returns it."""

    def argwhere(self) -> Tensor:
        """The indices of the elements that are not 0, int64, a row for each."""

    def asin(self) -> Tensor:
        """The angle, in radians from -pi/2 to pi/2, whose sine is x; NaN outside [-1, 1]."""

    def asin_(self) -> Tensor:
        """`asin`, with the result put into this tensor. Returns it."""

    def arcsin(self) -> Tensor:
        """The angle, in radians from -pi/2 to pi/2, whose sine is x; NaN outside [-1, 1]."""

    def arcsin_(self) -> Tensor:
        """`arcsin`, with the result put into this tensor. Returns it."""

    def asinh(self) -> Tensor:
        """The inverse of sinh: of x >= 0, log(x + sqrt(x^2 + 1)), which is log1p(x (1 + x / (1 +
        sqrt(x^2 + 1)))), exact near 0; of large x, log(x) + log(2)."""

    def asinh_(self) -> Tensor:
        """`asinh`, with the result put into this tensor. Returns it."""

    def arcsinh(self) -> Tensor:
        """The inverse of sinh: of x >= 0, log(x + sqrt(x^2 + 1)), which is log1p(x (1 + x / (1 +
        sqrt(x^2 + 1)))), exact near 0; of large x, log(x) + log(2)."""

    def arcsinh_(self) -> Tensor:
        """`arcsinh`, with the result put into this tensor. Returns it."""

    def atan(self) -> Tensor:
        """The angle, in radians, whose tangent is x, in floating point."""

    def atan_(self) -> Tensor:
        """`atan`, with the result put into this tensor. Returns it."""

    def arctan(self) -> Tensor:
        """The angle, in radians, whose tangent is x, in floating point."""

    def arctan_(self) -> Tensor:
        """`arctan`, with the result put into this tensor. Returns it."""

    def atan2(self, other: Operand) -> Tensor:
        """The angle, in radians from -pi to pi, of the point with the coordinates (other, x): the
        quadrant is right where that of atan(x / other) is not."""

    def atan2_(self, other: Operand) -> Tensor:
        """`atan2`, with the result put into this tensor. Returns it."""

    def arctan2(self, other: Operand) -> Tensor:
        """The angle, in radians from -pi to pi, of the point with the coordinates (other, x): the
        quadrant is right where that of atan(x / other) is not."""

    def arctan2_(self, other: Operand) -> Tensor:
        """`arctan2`, with the result put into this tensor. Returns it."""

    def atanh(self) -> Tensor:
        """The inverse of tanh, (log(1 + x) - log(1 - x)) / 2; NaN outside [-1, 1]."""

    def atanh_(self) -> Tensor:
        """`atanh`, with the result put into this tensor. Returns it."""

    def arctanh(self) -> Tensor:
        """The inverse of tanh, (log(1 + x) - log(1 - x)) / 2; NaN outside [-1, 1]."""

    def arctanh_(self) -> Tensor:
        """`arctanh`, with the result put into this tensor. Returns it."""

    def atleast_1d(*_tensors: Any, tensors: Any = ...) -> Any:
        """With one dimension or more: a 0-d tensor becomes 1-d."""

    def atleast_2d(*_tensors: Any, tensors: Any = ...) -> Any:
        """With two dimensions or more: new ones stand in front."""

    def atleast_3d(*_tensors: Any, tensors: Any = ...) -> Any:
        """With three dimensions or more: of a matrix, the new one is the last."""

    def avg_pool1d(
        self,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        ceil_mode: builtins.bool = False,
        count_include_pad: builtins.bool = True,
        divisor_override: builtins.int | None = None,
    ) -> Tensor:
        """The mean of each window over the last 1 dimension(s)."""

    def avg_pool1d_(
        self,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        ceil_mode: builtins.bool = False,
        count_include_pad: builtins.bool = True,
        divisor_override: builtins.int | None = None,
    ) -> Tensor:
        """`avg_pool1d`, with the result put into this tensor. Returns it."""

    def avg_pool2d(
        self,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        ceil_mode: builtins.bool = False,
        count_include_pad: builtins.bool = True,
        divisor_override: builtins.int | None = None,
    ) -> Tensor:
        """The mean of each window over the last 2 dimension(s)."""

    def avg_pool2d_(
        self,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        ceil_mode: builtins.bool = False,
        count_include_pad: builtins.bool = True,
        divisor_override: builtins.int | None = None,
    ) -> Tensor:
        """`avg_pool2d`, with the result put into this tensor. Returns it."""

    def avg_pool3d(
        self,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        ceil_mode: builtins.bool = False,
        count_include_pad: builtins.bool = True,
        divisor_override: builtins.int | None = None,
    ) -> Tensor:
        """The mean of each window over the last 3 dimension(s)."""

    def avg_pool3d_(
        self,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        ceil_mode: builtins.bool = False,
        count_include_pad: builtins.bool = True,
        divisor_override: builtins.int | None = None,
    ) -> Tensor:
        """`avg_pool3d`, with the result put into this tensor. Returns it."""

    def baddbmm(self, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * (batch1 @ batch2), for batches of matrices; with beta=0, x is not
        read."""

    def baddbmm_(self, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`baddbmm`, with the result put into this tensor. Returns it."""

    def batch_norm(
        self,
        mean: Array,
        var: Array,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """(x - mean) / sqrt(var + eps) * weight + bias, with one number each per channel."""

    def batch_norm_(
        self,
        mean: Array,
        var: Array,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """`batch_norm`, with the result put into this tensor. Returns it."""

    def batch_statistics(self) -> tuple[Tensor, Tensor]:
        """(mean, variance) of each channel of x (batch, channels, ..): sums divided by the number
        of elements, not one less."""

    def batchnorm(
        self,
        weight: Array | None,
        bias: Array | None,
        mean: Array,
        invstd: Array,
        dim: Any = 1,
        *,
        axis: Any = ...,
    ) -> Tensor:
        """(x - mean) * invstd * weight + bias along the given dimensions; invstd is 1 /
        sqrt(variance)."""

    def bernoulli(
        self,
        p: Operand | None = None,
        *,
        size: Any = None,
        dtype: Any = None,
        shape: Any = ...,
        random_key: Any = ...,
    ) -> Tensor:
        """1 with the probability that each element of x gives (or p, for all), else 0; of the shape
        and dtype of x."""

    def binary_cross_entropy(
        self, target: Array, weight: Array | None = None, reduction: str = "mean"
    ) -> Tensor:
        """-(target * log(x) + (1 - target) * log(1 - x)) of probabilities x, with logarithms taken
        to be at least -100; NaN for an x outside 0..1. weight: broadcasts to x."""

    def binary_cross_entropy_(
        self, target: Array, weight: Array | None = None, reduction: str = "mean"
    ) -> Tensor:
        """`binary_cross_entropy`, with the result put into this tensor. Returns it."""

    def binary_crossentropy(
        self, target: Array, weight: Array | None = None, reduction: str = "mean"
    ) -> Tensor:
        """-(target * log(x) + (1 - target) * log(1 - x)) of probabilities x, with logarithms taken
        to be at least -100; NaN for an x outside 0..1. weight: broadcasts to x."""

    def binary_crossentropy_(
        self, target: Array, weight: Array | None = None, reduction: str = "mean"
    ) -> Tensor:
        """`binary_crossentropy`, with the result put into this tensor. Returns it."""

    def binary_cross_entropy_with_logits(
        self,
        target: Array,
        weight: Array | None = None,
        reduction: str = "mean",
        pos_weight: Array | None = None,
    ) -> Tensor:
        """The binary cross entropy of probabilities sigmoid(x), exact for scores x of any size."""

    def binary_cross_entropy_with_logits_(
        self,
        target: Array,
        weight: Array | None = None,
        reduction: str = "mean",
        pos_weight: Array | None = None,
    ) -> Tensor:
        """`binary_cross_entropy_with_logits`, with the result put into this tensor. Returns it."""

    def binary_crossentropy_logits(
        self,
        target: Array,
        weight: Array | None = None,
        reduction: str = "mean",
        pos_weight: Array | None = None,
    ) -> Tensor:
        """The binary cross entropy of probabilities sigmoid(x), exact for scores x of any size."""

    def binary_crossentropy_logits_(
        self,
        target: Array,
        weight: Array | None = None,
        reduction: str = "mean",
        pos_weight: Array | None = None,
    ) -> Tensor:
        """`binary_crossentropy_logits`, with the result put into this tensor. Returns it."""

    def bincount(self, weights: Array | None = None, minlength: builtins.int = 0) -> Tensor:
        """How often each of 0, 1, 2 .. stands in a row of integers, int64, up to the greatest and
        at least `minlength` of them; with weights the sum of those, in their dtype (of integers:
        float64)."""

    def bitcast(self, dtype: DTypeLike | str) -> Tensor:
        """The bytes of x read as another dtype, little end first."""

    def bitwise_and(self, other: Operand) -> Tensor:
        """The bits that both have, `&`."""

    def bitwise_and_(self, other: Operand) -> Tensor:
        """`bitwise_and`, with the result put into this tensor. Returns it."""

    def bitwise_left_shift(self, other: Operand) -> Tensor:
        """x with its bits moved up by `other` places, `<<`; a shift by the width or more, or by
        less than 0, gives 0."""

    def bitwise_left_shift_(self, other: Operand) -> Tensor:
        """`bitwise_left_shift`, with the result put into this tensor. Returns it."""

    def bitwise_not(self) -> Tensor:
        """x with every bit turned over, `~`; of bools: not."""

    def bitwise_not_(self) -> Tensor:
        """`bitwise_not`, with the result put into this tensor. Returns it."""

    def bitwise_invert(self) -> Tensor:
        """x with every bit turned over, `~`; of bools: not."""

    def bitwise_invert_(self) -> Tensor:
        """`bitwise_invert`, with the result put into this tensor. Returns it."""

    def bitwise_or(self, other: Operand) -> Tensor:
        """The bits that one or both have, `|`."""

    def bitwise_or_(self, other: Operand) -> Tensor:
        """`bitwise_or`, with the result put into this tensor. Returns it."""

    def bitwise_right_shift(self, other: Operand) -> Tensor:
        """x with its bits moved down by `other` places, `>>`, keeping the sign; a shift by the
        width or more, or by less than 0, gives 0, or -1 of a negative number."""

    def bitwise_right_shift_(self, other: Operand) -> Tensor:
        """`bitwise_right_shift`, with the result put into this tensor. Returns it."""

    def bitwise_xor(self, other: Operand) -> Tensor:
        """The bits that exactly one has, `^`."""

    def bitwise_xor_(self, other: Operand) -> Tensor:
        """`bitwise_xor`, with the result put into this tensor. Returns it."""

    def block_diag(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """The matrix with the given matrices along its diagonal; a vector is a row."""

    def block_diag_(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """`block_diag`, with the result put into this tensor. Returns it."""

    def bmm(self, mat2: Array) -> Tensor:
        """As many matrix products as the two tensors have matrices: (b, m, k) with (b, k, n)."""

    def bmm_(self, mat2: Array) -> Tensor:
        """`bmm`, with the result put into this tensor. Returns it."""

    def broadcast_tensors(*_tensors: Any, tensors: Any = ...) -> tuple[Tensor, ...]:
        """The tensors stretched to their common shape."""

    def bucketize(
        self, boundaries: Array, *, out_int32: builtins.bool = False, right: builtins.bool = False
    ) -> Tensor:
        """Which of the buckets between ascending boundaries each element is in: `searchsorted` of x
        in the boundaries."""

    def bucketize_(
        self, boundaries: Array, *, out_int32: builtins.bool = False, right: builtins.bool = False
    ) -> Tensor:
        """`bucketize`, with the result put into this tensor. Returns it."""

    def cartesian_prod(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """All combinations of one element of each tensor of one dimension, a row for each."""

    def cartesian_prod_(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """`cartesian_prod`, with the result put into this tensor. Returns it."""

    def cat(
        *_tensors: Any,
        dim: builtins.int | None = None,
        tensors: Any = ...,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """Tensors joined along a dimension (0 unless given); their other sizes are equal."""

    def cat_(
        *_tensors: Any,
        dim: builtins.int | None = None,
        tensors: Any = ...,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """`cat`, with the result put into this tensor. Returns it."""

    def concat(
        *_tensors: Any,
        dim: builtins.int | None = None,
        tensors: Any = ...,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """Tensors joined along a dimension (0 unless given); their other sizes are equal."""

    def concat_(
        *_tensors: Any,
        dim: builtins.int | None = None,
        tensors: Any = ...,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """`concat`, with the result put into this tensor. Returns it."""

    def concatenate(
        *_tensors: Any,
        dim: builtins.int | None = None,
        tensors: Any = ...,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """Tensors joined along a dimension (0 unless given); their other sizes are equal."""

    def concatenate_(
        *_tensors: Any,
        dim: builtins.int | None = None,
        tensors: Any = ...,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """`concatenate`, with the result put into this tensor. Returns it."""

    @overload
    def cdist(self, x2: Array, p: builtins.float = 2.0, compute_mode: str | None = None) -> Tensor:
        """The p-norms of the differences of all pairs of rows: (.., m, k), (.., n, k) -> (.., m,
        n)."""

    @overload
    def cdist(
        self, *, other: Array, p: builtins.float = 2.0, compute_mode: str | None = None
    ) -> Tensor:
        """The p-norms of the differences of all pairs of rows: (.., m, k), (.., n, k) -> (.., m,
        n)."""

    @overload
    def cdist(
        self, *, input2: Array, p: builtins.float = 2.0, compute_mode: str | None = None
    ) -> Tensor:
        """The p-norms of the differences of all pairs of rows: (.., m, k), (.., n, k) -> (.., m,
        n)."""

    @overload
    def cdist_(self, x2: Array, p: builtins.float = 2.0, compute_mode: str | None = None) -> Tensor:
        """`cdist`, with the result put into this tensor. Returns it."""

    @overload
    def cdist_(
        self, *, other: Array, p: builtins.float = 2.0, compute_mode: str | None = None
    ) -> Tensor:
        """`cdist`, with the result put into this tensor. Returns it."""

    @overload
    def cdist_(
        self, *, input2: Array, p: builtins.float = 2.0, compute_mode: str | None = None
    ) -> Tensor:
        """`cdist`, with the result put into this tensor. Returns it."""

    def ceil(self) -> Tensor:
        """x rounded up to a whole number; integers stay as they are."""

    def ceil_(self) -> Tensor:
        """`ceil`, with the result put into this tensor. Returns it."""

    def celu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x where it is above 0, else alpha * (exp(x/alpha) - 1): smooth for every alpha."""

    def celu_(self, alpha: builtins.float = 1.0) -> Tensor:
        """`celu`, with the result put into this tensor. Returns it."""

    def channel_shuffle(self, groups: builtins.int) -> Tensor:
        """The channels of x (batch, channels, ..), which are so many groups one after the other, in
        turn from each group."""

    def channel_shuffle_(self, groups: builtins.int) -> Tensor:
        """`channel_shuffle`, with the result put into this tensor. Returns it."""

    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """The lower triangular L with L @ L.mH == x for positive definite matrices (.., n, n),
        which are symmetric (complex ones: Hermitian) and of which the lower triangle is read; with
        `upper`, L.mH, from the upper triangle."""

    def cholesky_(self, upper: builtins.bool = False) -> Tensor:
        """`cholesky`, with the result put into this tensor. Returns it."""

    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """The inverse of A from its Cholesky factor x: A is x @ x.mH for a lower triangular x, or
        x.mH @ x with `upper`."""

    def cholesky_inverse_(self, upper: builtins.bool = False) -> Tensor:
        """`cholesky_inverse`, with the result put into this tensor. Returns it."""

    def cholesky_solve(self, input2: Array, upper: builtins.bool = False) -> Tensor:
        """The solution X of A @ X == x from the Cholesky factor of A: A is L @ L.mH for a lower
        triangular L, or U.mH @ U with `upper`."""

    def cholesky_solve_(self, input2: Array, upper: builtins.bool = False) -> Tensor:
        """`cholesky_solve`, with the result put into this tensor. Returns it."""

    def chunk(
        self, chunks: builtins.int, dim: builtins.int = 0, *, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """The tensor in (at most)"""

    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """x brought into [min, max]; a limit may be a number, a tensor, or None (no limit); `max`
        wins where min > max."""

    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """`clamp`, with the result put into this tensor. Returns it."""

    def clip(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """x brought into [min, max]; a limit may be a number, a tensor, or None (no limit); `max`
        wins where min > max."""

    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """`clip`, with the result put into this tensor. Returns it."""

    def clamp_max(self, max: Operand) -> Tensor:
        """x, but `max` where it is above."""

    def clamp_max_(self, max: Operand) -> Tensor:
        """`clamp_max`, with the result put into this tensor. Returns it."""

    def clamp_min(self, min: Operand) -> Tensor:
        """x, but `min` where it is below."""

    def clamp_min_(self, min: Operand) -> Tensor:
        """`clamp_min`, with the result put into this tensor. Returns it."""

    def col2im(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> Tensor:
        """The adjoint of `im2col`: columns (batch, channels * elements of a window, windows) added
        up where they came from, (batch, channels, height, width)."""

    def col2im_(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> Tensor:
        """`col2im`, with the result put into this tensor. Returns it."""

    def column_stack(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """Tensors of one dimension (or none) as columns, joined with the columns of matrices."""

    def column_stack_(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """`column_stack`, with the result put into this tensor. Returns it."""

    def combinations(self, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Tensor:
        """All choices of r elements of a row, as rows, in the order of their places; with
        replacement an element may be chosen again."""

    def combinations_(self, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Tensor:
        """`combinations`, with the result put into this tensor. Returns it."""

    def conj(self) -> Tensor:
        """The complex conjugate, which of a real number is the number."""

    def conv1d(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: builtins.int = 1,
    ) -> Tensor:
        """The convolution (cross-correlation) of x with a weight, over 1 dimension(s)."""

    def conv1d_(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: builtins.int = 1,
    ) -> Tensor:
        """`conv1d`, with the result put into this tensor. Returns it."""

    def conv2d(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: builtins.int = 1,
    ) -> Tensor:
        """The convolution (cross-correlation) of x with a weight, over 2 dimension(s)."""

    def conv2d_(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: builtins.int = 1,
    ) -> Tensor:
        """`conv2d`, with the result put into this tensor. Returns it."""

    def conv3d(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: builtins.int = 1,
    ) -> Tensor:
        """The convolution (cross-correlation) of x with a weight, over 3 dimension(s)."""

    def conv3d_(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: builtins.int = 1,
    ) -> Tensor:
        """`conv3d`, with the result put into this tensor. Returns it."""

    def conv_transpose1d(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
        groups: builtins.int = 1,
        dilation: Sizes = 1,
    ) -> Tensor:
        """The adjoint of a convolution with the same arguments, over 1 dimension(s)."""

    def conv_transpose1d_(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
        groups: builtins.int = 1,
        dilation: Sizes = 1,
    ) -> Tensor:
        """`conv_transpose1d`, with the result put into this tensor. Returns it."""

    def conv_transpose2d(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
        groups: builtins.int = 1,
        dilation: Sizes = 1,
    ) -> Tensor:
        """The adjoint of a convolution with the same arguments, over 2 dimension(s)."""

    def conv_transpose2d_(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
        groups: builtins.int = 1,
        dilation: Sizes = 1,
    ) -> Tensor:
        """`conv_transpose2d`, with the result put into this tensor. Returns it."""

    def conv_transpose3d(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
        groups: builtins.int = 1,
        dilation: Sizes = 1,
    ) -> Tensor:
        """The adjoint of a convolution with the same arguments, over 3 dimension(s)."""

    def conv_transpose3d_(
        self,
        weight: Array,
        bias: Array | None = None,
        stride: Sizes = 1,
        padding: Padding = 0,
        output_padding: Sizes = 0,
        groups: builtins.int = 1,
        dilation: Sizes = 1,
    ) -> Tensor:
        """`conv_transpose3d`, with the result put into this tensor. Returns it."""

    def copysign(self, other: Operand) -> Tensor:
        """|x| with the sign of `other`, which may be that of a zero."""

    def copysign_(self, other: Operand) -> Tensor:
        """`copysign`, with the result put into this tensor. Returns it."""

    def corrcoef(self) -> Tensor:
        """The correlation of the rows of a matrix, whose columns are observations, within [-1, 1];
        of one row 1, of shape ()."""

    def corrcoef_(self) -> Tensor:
        """`corrcoef`, with the result put into this tensor. Returns it."""

    def cos(self) -> Tensor:
        """The cosine of x radians, in floating point."""

    def cos_(self) -> Tensor:
        """`cos`, with the result put into this tensor. Returns it."""

    def cosh(self) -> Tensor:
        """The hyperbolic cosine; near 0, with t = expm1(x), it is 1 + t^2/(t + 1)/2, whose
        derivative keeps its digits there."""

    def cosh_(self) -> Tensor:
        """`cosh`, with the result put into this tensor. Returns it."""

    @overload
    def cosine_embedding_loss(
        self, x2: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """Of the cosine c between vectors of the last dimension: 1 - c where the target is 1,
        max(0, c - margin) where it is -1. x1: (vector,) or (batch, vector); target: () or
        (batch,)."""

    @overload
    def cosine_embedding_loss(
        self, *, other: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """Of the cosine c between vectors of the last dimension: 1 - c where the target is 1,
        max(0, c - margin) where it is -1. x1: (vector,) or (batch, vector); target: () or
        (batch,)."""

    @overload
    def cosine_embedding_loss(
        self, *, input2: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """Of the cosine c between vectors of the last dimension: 1 - c where the target is 1,
        max(0, c - margin) where it is -1. x1: (vector,) or (batch, vector); target: () or
        (batch,)."""

    @overload
    def cosine_embedding_loss_(
        self, x2: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """`cosine_embedding_loss`, with the result put into this tensor. Returns it."""

    @overload
    def cosine_embedding_loss_(
        self, *, other: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """`cosine_embedding_loss`, with the result put into this tensor. Returns it."""

    @overload
    def cosine_embedding_loss_(
        self, *, input2: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """`cosine_embedding_loss`, with the result put into this tensor. Returns it."""

    @overload
    def cosine_similarity(
        self,
        x2: Array,
        dim: builtins.int = 1,
        eps: builtins.float = 1e-08,
        *,
        axis: builtins.int = ...,
    ) -> Tensor:
        """The cosine of the angle between vectors along a dimension, whose norms are taken to be at
        least eps."""

    @overload
    def cosine_similarity(
        self,
        *,
        other: Array,
        dim: builtins.int = 1,
        eps: builtins.float = 1e-08,
        axis: builtins.int = ...,
    ) -> Tensor:
        """The cosine of the angle between vectors along a dimension, whose norms are taken to be at
        least eps."""

    @overload
    def cosine_similarity(
        self,
        *,
        input2: Array,
        dim: builtins.int = 1,
        eps: builtins.float = 1e-08,
        axis: builtins.int = ...,
    ) -> Tensor:
        """The cosine of the angle between vectors along a dimension, whose norms are taken to be at
        least eps."""

    @overload
    def cosine_similarity_(
        self,
        x2: Array,
        dim: builtins.int = 1,
        eps: builtins.float = 1e-08,
        *,
        axis: builtins.int = ...,
    ) -> Tensor:
        """`cosine_similarity`, with the result put into this tensor. Returns it."""

    @overload
    def cosine_similarity_(
        self,
        *,
        other: Array,
        dim: builtins.int = 1,
        eps: builtins.float = 1e-08,
        axis: builtins.int = ...,
    ) -> Tensor:
        """`cosine_similarity`, with the result put into this tensor. Returns it."""

    @overload
    def cosine_similarity_(
        self,
        *,
        input2: Array,
        dim: builtins.int = 1,
        eps: builtins.float = 1e-08,
        axis: builtins.int = ...,
    ) -> Tensor:
        """`cosine_similarity`, with the result put into this tensor. Returns it."""

    def count_nonzero(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """How many elements are not 0, int64."""

    def count_nonzero_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`count_nonzero`, with the result put into this tensor. Returns it."""

    def cov(
        self,
        *,
        correction: builtins.int = 1,
        fweights: Array | None = None,
        aweights: Array | None = None,
    ) -> Tensor:
        """The covariances of the rows of a matrix, whose columns are observations; of one row its
        variance, of shape ()."""

    def cov_(
        self,
        *,
        correction: builtins.int = 1,
        fweights: Array | None = None,
        aweights: Array | None = None,
    ) -> Tensor:
        """`cov`, with the result put into this tensor. Returns it."""

    def cross(
        self, other: Array, dim: builtins.int | None = None, *, axis: builtins.int | None = ...
    ) -> Tensor:
        """The vector product along an axis of size 3; the first such axis unless `dim` is given."""

    def cross_(
        self, other: Array, dim: builtins.int | None = None, *, axis: builtins.int | None = ...
    ) -> Tensor:
        """`cross`, with the result put into this tensor. Returns it."""

    def cross_entropy(
        self,
        target: Array,
        weight: Array | None = None,
        ignore_index: builtins.int = -100,
        reduction: str = "mean",
        label_smoothing: builtins.float = 0.0,
    ) -> Tensor:
        """The cross entropy of softmax(x) along the classes, and a target: -log of the probability
        that x gives to the target's class."""

    def cross_entropy_(
        self,
        target: Array,
        weight: Array | None = None,
        ignore_index: builtins.int = -100,
        reduction: str = "mean",
        label_smoothing: builtins.float = 0.0,
    ) -> Tensor:
        """`cross_entropy`, with the result put into this tensor. Returns it."""

    def ctc_loss(
        self,
        targets: Array,
        input_lengths: Any,
        target_lengths: Any,
        blank: builtins.int = 0,
        reduction: str = "mean",
        zero_infinity: builtins.bool = False,
    ) -> Tensor:
        """-log of the probability of the targets, summed over all ways to place them in time."""

    def ctc_loss_(
        self,
        targets: Array,
        input_lengths: Any,
        target_lengths: Any,
        blank: builtins.int = 0,
        reduction: str = "mean",
        zero_infinity: builtins.bool = False,
    ) -> Tensor:
        """`ctc_loss`, with the result put into this tensor. Returns it."""

    @overload
    def cummax(self, dim: builtins.int) -> ValuesIndices[Tensor]:
        """(values, indices): the greatest of the elements up to and including each, along a
        dimension, and where it stands, int64; of equals the last."""

    @overload
    def cummax(self, *, axis: builtins.int) -> ValuesIndices[Tensor]:
        """(values, indices): the greatest of the elements up to and including each, along a
        dimension, and where it stands, int64; of equals the last."""

    @overload
    def cummin(self, dim: builtins.int) -> ValuesIndices[Tensor]:
        """(values, indices): the least of the elements up to and including each, along a dimension,
        and where it stands, int64; of equals the last."""

    @overload
    def cummin(self, *, axis: builtins.int) -> ValuesIndices[Tensor]:
        """(values, indices): the least of the elements up to and including each, along a dimension,
        and where it stands, int64; of equals the last."""

    @overload
    def cumprod(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The product of the elements up to and including each, along a dimension."""

    @overload
    def cumprod(self, *, axis: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
        """The product of the elements up to and including each, along a dimension."""

    @overload
    def cumprod_(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """`cumprod`, with the result put into this tensor. Returns it."""

    @overload
    def cumprod_(self, *, axis: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
        """`cumprod`, with the result put into this tensor. Returns it."""

    @overload
    def cumsum(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The sum of the elements up to and including each, along a dimension."""

    @overload
    def cumsum(self, *, axis: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
        """The sum of the elements up to and including each, along a dimension."""

    @overload
    def cumsum_(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """`cumsum`, with the result put into this tensor. Returns it."""

    @overload
    def cumsum_(self, *, axis: builtins.int, dtype: DTypeLike | None = None) -> Tensor:
        """`cumsum`, with the result put into this tensor. Returns it."""

    def cumulative_trapezoid(
        self,
        x: Array | None = None,
        *,
        dx: Operand | None = None,
        dim: builtins.int = -1,
        input: Array | None = ...,
        A: Array | None = ...,
        axis: builtins.int = ...,
    ) -> Tensor:
        """The areas of `trapezoid` up to each point but the first."""

    def cumulative_trapezoid_(
        self,
        x: Array | None = None,
        *,
        dx: Operand | None = None,
        dim: builtins.int = -1,
        input: Array | None = ...,
        A: Array | None = ...,
        axis: builtins.int = ...,
    ) -> Tensor:
        """`cumulative_trapezoid`, with the result put into this tensor. Returns it."""

    def deg2rad(self) -> Tensor:
        """Degrees as radians: x * pi/180."""

    def deg2rad_(self) -> Tensor:
        """`deg2rad`, with the result put into this tensor. Returns it."""

    def det(self) -> Tensor:
        """The determinants of matrices (.., n, n); 1 of an empty one."""

    def det_(self) -> Tensor:
        """`det`, with the result put into this tensor. Returns it."""

    def diag(self, diagonal: builtins.int = 0, *, k: builtins.int = ...) -> Tensor:
        """Of a vector the matrix with it on a diagonal; of a matrix that diagonal."""

    def diag_(self, diagonal: builtins.int = 0, *, k: builtins.int = ...) -> Tensor:
        """`diag`, with the result put into this tensor. Returns it."""

    def diag_embed(
        self,
        offset: builtins.int = 0,
        dim1: builtins.int = -2,
        dim2: builtins.int = -1,
        *,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
    ) -> Tensor:
        """Matrices, in the dimensions dim1 and dim2 of the result, with the last dimension of x on
        a diagonal (offset > 0: above the main one) and 0 elsewhere."""

    def diag_embed_(
        self,
        offset: builtins.int = 0,
        dim1: builtins.int = -2,
        dim2: builtins.int = -1,
        *,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
    ) -> Tensor:
        """`diag_embed`, with the result put into this tensor. Returns it."""

    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """The matrix with all elements on a diagonal."""

    def diagflat_(self, offset: builtins.int = 0) -> Tensor:
        """`diagflat`, with the result put into this tensor. Returns it."""

    def diagonal(
        self,
        offset: builtins.int = 0,
        dim1: builtins.int = 0,
        dim2: builtins.int = 1,
        *,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
    ) -> Tensor:
        """The diagonal of two dimensions as a new last dimension; offset > 0 above, < 0 below
        it."""

    def diagonal_(
        self,
        offset: builtins.int = 0,
        dim1: builtins.int = 0,
        dim2: builtins.int = 1,
        *,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
    ) -> Tensor:
        """`diagonal`, with the result put into this tensor. Returns it."""

    def diagonal_scatter(
        self,
        src: Array,
        offset: builtins.int = 0,
        dim1: builtins.int = 0,
        dim2: builtins.int = 1,
        *,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
    ) -> Tensor:
        """x with `src` in the place of its `diagonal`."""

    def diagonal_scatter_(
        self,
        src: Array,
        offset: builtins.int = 0,
        dim1: builtins.int = 0,
        dim2: builtins.int = 1,
        *,
        axis1: builtins.int = ...,
        axis2: builtins.int = ...,
    ) -> Tensor:
        """`diagonal_scatter`, with the result put into this tensor. Returns it."""

    def diff(
        self,
        n: builtins.int = 1,
        dim: builtins.int = -1,
        prepend: Array | None = None,
        append: Array | None = None,
        *,
        axis: builtins.int = ...,
    ) -> Tensor:
        """Each element less the one before it along a dimension, n times over; of bools, whether
        they differ. prepend, append: joined to the ends first, unless n is 0."""

    def diff_(
        self,
        n: builtins.int = 1,
        dim: builtins.int = -1,
        prepend: Array | None = None,
        append: Array | None = None,
        *,
        axis: builtins.int = ...,
    ) -> Tensor:
        """`diff`, with the result put into this tensor. Returns it."""

    def digamma(self) -> Tensor:
        """The derivative of `lgamma`; -inf at 0.0, inf at -0.0, NaN at the negative integers, in
        floating point."""

    def digamma_(self) -> Tensor:
        """`digamma`, with the result put into this tensor. Returns it."""

    def dist(self, other: Array, p: builtins.int | builtins.float = 2) -> Tensor:
        """The p-norm of x - other, of all elements; the two broadcast."""

    def dist_(self, other: Array, p: builtins.int | builtins.float = 2) -> Tensor:
        """`dist`, with the result put into this tensor. Returns it."""

    def div(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """x / other, in floating point (integers give float32). rounding_mode="floor" is `//` and
        "trunc" rounds towards zero; both keep integers."""

    def div_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """`div`, with the result put into this tensor. Returns it."""

    def divide(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """x / other, in floating point (integers give float32). rounding_mode="floor" is `//` and
        "trunc" rounds towards zero; both keep integers."""

    def divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """`divide`, with the result put into this tensor. Returns it."""

    def true_divide(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """x / other, in floating point (integers give float32). rounding_mode="floor" is `//` and
        "trunc" rounds towards zero; both keep integers."""

    def true_divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """`true_divide`, with the result put into this tensor. Returns it."""

    def dot(self, tensor: Array) -> Tensor:
        """The sum of the products of two vectors."""

    def dot_(self, tensor: Array) -> Tensor:
        """`dot`, with the result put into this tensor. Returns it."""

    def dropout(self, p: builtins.float = 0.5, *, random_key: Any = ...) -> Tensor:
        """x with each element set to 0 with probability p, and the others divided by 1 - p."""

    @overload
    def dsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along the third dimension: so many equal ones, or ending at a list of indices."""

    @overload
    def dsplit(self, *, indices: Any) -> tuple[Tensor, ...]:
        """Parts along the third dimension: so many equal ones, or ending at a list of indices."""

    @overload
    def dsplit(self, *, sections: Any) -> tuple[Tensor, ...]:
        """Parts along the third dimension: so many equal ones, or ending at a list of indices."""

    @overload
    def dsplit(self, *, tensor_indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along the third dimension: so many equal ones, or ending at a list of indices."""

    def dstack(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """Tensors joined along their third dimension, after `atleast_3d`."""

    def dstack_(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """`dstack`, with the result put into this tensor. Returns it."""

    @staticmethod
    def einsum(
        equation: Any,
        *_tensors: Any,
        tensors: Any = ...,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """The sum of products that an equation names: `einsum("bij,bjk->bik", x, y)`."""

    def elu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x where it is above 0, else alpha * (exp(x) - 1)."""

    def elu_(self, alpha: builtins.float = 1.0) -> Tensor:
        """`elu`, with the result put into this tensor. Returns it."""

    def embedding(
        self,
        weight: Array,
        padding_idx: builtins.int | None = None,
        scale_grad_by_freq: builtins.bool = False,
    ) -> Tensor:
        """The rows of a table that ids name: ids (..) and weight (rows, ..) give (.., ..)."""

    def embedding_(
        self,
        weight: Array,
        padding_idx: builtins.int | None = None,
        scale_grad_by_freq: builtins.bool = False,
    ) -> Tensor:
        """`embedding`, with the result put into this tensor. Returns it."""

    def embedding_bag(
        self,
        weight: Array,
        offsets: Array | None = None,
        scale_grad_by_freq: builtins.bool = False,
        mode: str = "mean",
        per_sample_weights: Array | None = None,
        include_last_offset: builtins.bool = False,
        padding_idx: builtins.int | None = None,
    ) -> Tensor:
        """The rows of a table that each bag of ids names, reduced to one: (bags, dimension)."""

    def embedding_bag_(
        self,
        weight: Array,
        offsets: Array | None = None,
        scale_grad_by_freq: builtins.bool = False,
        mode: str = "mean",
        per_sample_weights: Array | None = None,
        include_last_offset: builtins.bool = False,
        padding_idx: builtins.int | None = None,
    ) -> Tensor:
        """`embedding_bag`, with the result put into this tensor. Returns it."""

    def eq(self, other: Operand) -> Tensor:
        """Whether x == other, as bool."""

    def eq_(self, other: Operand) -> Tensor:
        """`eq`, with the result put into this tensor. Returns it."""

    def equal(self, other: Array) -> builtins.bool:
        """Whether two tensors have one shape and equal elements (NaN equals nothing); `x == other`,
        or `treadle.equal(x, other)`, compares elements."""

    def erf(self) -> Tensor:
        """The error function, in floating point."""

    def erf_(self) -> Tensor:
        """`erf`, with the result put into this tensor. Returns it."""

    def erfc(self) -> Tensor:
        """1 - erf(x), exact where that is small, in floating point."""

    def erfc_(self) -> Tensor:
        """`erfc`, with the result put into this tensor. Returns it."""

    def erfinv(self) -> Tensor:
        """The number whose error function is x; inf at 1, NaN outside [-1, 1], in floating
        point."""

    def erfinv_(self) -> Tensor:
        """`erfinv`, with the result put into this tensor. Returns it."""

    def exp(self) -> Tensor:
        """e to the power x, in floating point."""

    def exp_(self) -> Tensor:
        """`exp`, with the result put into this tensor. Returns it."""

    def exp2(self) -> Tensor:
        """2 to the power x, in floating point."""

    def exp2_(self) -> Tensor:
        """`exp2`, with the result put into this tensor. Returns it."""

    def expand(self, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
        """Stretched to a shape: a size of 1 becomes any size, -1 keeps one, new ones stand in
        front."""

    def expand_(self, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
        """`expand`, with the result put into this tensor. Returns it."""

    def broadcast_to(self, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
        """Stretched to a shape: a size of 1 becomes any size, -1 keeps one, new ones stand in
        front."""

    def broadcast_to_(self, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
        """`broadcast_to`, with the result put into this tensor. Returns it."""

    def expand_as(self, other: Array) -> Tensor:
        """Stretched to the shape of `other`."""

    def expand_as_(self, other: Array) -> Tensor:
        """`expand_as`, with the result put into this tensor. Returns it."""

    def expm1(self) -> Tensor:
        """exp(x) - 1, exact near 0, in floating point."""

    def expm1_(self) -> Tensor:
        """`expm1`, with the result put into this tensor. Returns it."""

    @staticmethod
    def eye(
        n: Size,
        m: Size | None = None,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """The matrix of n rows and m columns (n unless given) with ones on its diagonal."""

    def feature_alpha_dropout(self, p: builtins.float = 0.5, *, random_key: Any = ...) -> Tensor:
        """`alpha_dropout` of whole channels of x (batch, channels, ..). random_key: as of
        `dropout`."""

    def feature_dropout(self, p: builtins.float = 0.5, *, random_key: Any = ...) -> Tensor:
        """x (batch, channels, ..) with whole channels of samples set to 0 with probability p, and
        the others divided by 1 - p. random_key: as of `dropout`."""

    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """The dimensions from `start_dim` to `end_dim` merged into one; a 0-d tensor becomes
        1-d."""

    def flatten_(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """`flatten`, with the result put into this tensor. Returns it."""

    def flip(
        self, *_dims: Any, dims: Any = ..., dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """In reverse order along the given dimensions (none given: all)."""

    def flip_(
        self, *_dims: Any, dims: Any = ..., dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """`flip`, with the result put into this tensor. Returns it."""

    def fliplr(self) -> Tensor:
        """In reverse order along the second dimension."""

    def fliplr_(self) -> Tensor:
        """`fliplr`, with the result put into this tensor. Returns it."""

    def flipud(self) -> Tensor:
        """In reverse order along the first dimension."""

    def flipud_(self) -> Tensor:
        """`flipud`, with the result put into this tensor. Returns it."""

    def float_power(self, exponent: Operand) -> Tensor:
        """x to a power, in float64."""

    def float_power_(self, exponent: Operand) -> Tensor:
        """`float_power`, with the result put into this tensor. Returns it."""

    def floor(self) -> Tensor:
        """x rounded down to a whole number; integers stay as they are."""

    def floor_(self) -> Tensor:
        """`floor`, with the result put into this tensor. Returns it."""

    def floor_divide(self, other: Operand) -> Tensor:
        """The quotient rounded down, `//`."""

    def floor_divide_(self, other: Operand) -> Tensor:
        """`floor_divide`, with the result put into this tensor. Returns it."""

    def fmax(self, other: Operand) -> Tensor:
        """The greater of two; where one is NaN, the other."""

    def fmax_(self, other: Operand) -> Tensor:
        """`fmax`, with the result put into this tensor. Returns it."""

    def fmin(self, other: Operand) -> Tensor:
        """The lesser of two; where one is NaN, the other."""

    def fmin_(self, other: Operand) -> Tensor:
        """`fmin`, with the result put into this tensor. Returns it."""

    def fmod(self, other: Operand) -> Tensor:
        """What division rounded towards zero leaves, with the sign of x; else as `remainder`."""

    def fmod_(self, other: Operand) -> Tensor:
        """`fmod`, with the result put into this tensor. Returns it."""

    def frac(self) -> Tensor:
        """x - trunc(x), with the sign of x."""

    def frac_(self) -> Tensor:
        """`frac`, with the result put into this tensor. Returns it."""

    def frexp(self) -> tuple[Tensor, Tensor]:
        """(mantissa, exponent): x as mantissa * 2**exponent, the mantissa from 0.5 up to 1 in
        magnitude, the exponent int32. 0, infinities and NaN are their own mantissa, with exponent
        0."""

    @overload
    @staticmethod
    def full(
        size: Any,
        fill_value: Any,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A tensor of a shape filled with one number (or the element of a 0-d tensor), which
        decides the dtype unless one is given."""

    @overload
    @staticmethod
    def full(
        *,
        shape: Any,
        fill_value: Any,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A tensor of a shape filled with one number (or the element of a 0-d tensor), which
        decides the dtype unless one is given."""

    def full_like(
        self,
        fill_value: Any,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """One number (or the element of a 0-d tensor) in the shape of x, and of its dtype unless
        one is given."""

    @overload
    def gather(
        self, dim: builtins.int, index: Array, *, sparse_grad: builtins.bool = False
    ) -> Tensor:
        """out[i][j][k] = x[i][index[i][j][k]][k], for dim=1."""

    @overload
    def gather(
        self, *, axis: builtins.int, index: Array, sparse_grad: builtins.bool = False
    ) -> Tensor:
        """out[i][j][k] = x[i][index[i][j][k]][k], for dim=1."""

    @overload
    def gather_(
        self, dim: builtins.int, index: Array, *, sparse_grad: builtins.bool = False
    ) -> Tensor:
        """`gather`, with the result put into this tensor. Returns it."""

    @overload
    def gather_(
        self, *, axis: builtins.int, index: Array, sparse_grad: builtins.bool = False
    ) -> Tensor:
        """`gather`, with the result put into this tensor. Returns it."""

    def gaussian_nll_loss(
        self,
        target: Array,
        var: Operand,
        full: builtins.bool = False,
        eps: builtins.float = 1e-06,
        reduction: str = "mean",
    ) -> Tensor:
        """The negative logarithm of the density of targets under normal distributions with means x
        and variances `var`: half of log(var) + (x - target)^2 / var."""

    def gaussian_nll_loss_(
        self,
        target: Array,
        var: Operand,
        full: builtins.bool = False,
        eps: builtins.float = 1e-06,
        reduction: str = "mean",
    ) -> Tensor:
        """`gaussian_nll_loss`, with the result put into this tensor. Returns it."""

    def gcd(self, other: Operand) -> Tensor:
        """The greatest common divisor of integers, 0 of 0 and 0; by Euclid's algorithm, as many
        steps as the slowest pair takes."""

    def gcd_(self, other: Operand) -> Tensor:
        """`gcd`, with the result put into this tensor. Returns it."""

    def ge(self, other: Operand) -> Tensor:
        """Whether x >= other, as bool."""

    def ge_(self, other: Operand) -> Tensor:
        """`ge`, with the result put into this tensor. Returns it."""

    def greater_equal(self, other: Operand) -> Tensor:
        """Whether x >= other, as bool."""

    def greater_equal_(self, other: Operand) -> Tensor:
        """`greater_equal`, with the result put into this tensor. Returns it."""

    def gelu(self, approximate: str = "none") -> Tensor:
        """x times the probability that a normal variable is below x: x/2 * (1 + erf(x/sqrt 2));
        with approximate="tanh", x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))."""

    def gelu_(self, approximate: str = "none") -> Tensor:
        """`gelu`, with the result put into this tensor. Returns it."""

    @staticmethod
    def glorot_uniform(
        *_size: Any,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Uniform up to sqrt(6 / (outputs + inputs)) on both sides of 0 (Glorot and Bengio, 2010):
        the first size is the outputs, the product of the others the inputs."""

    def glu(self, dim: builtins.int = -1, *, axis: builtins.int = ...) -> Tensor:
        """The first half of x along a dimension times the sigmoid of the second half."""

    def glu_(self, dim: builtins.int = -1, *, axis: builtins.int = ...) -> Tensor:
        """`glu`, with the result put into this tensor. Returns it."""

    def grid_sample(
        self,
        grid: Array,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: builtins.bool | None = None,
    ) -> Tensor:
        """The values of x at the places that a grid names, between elements by interpolation."""

    def grid_sample_(
        self,
        grid: Array,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: builtins.bool | None = None,
    ) -> Tensor:
        """`grid_sample`, with the result put into this tensor. Returns it."""

    def group_norm(
        self,
        num_groups: builtins.int,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """x with mean 0 and variance 1 within each of `num_groups` parts of its channels, for every
        sample, times weight, plus bias."""

    def group_norm_(
        self,
        num_groups: builtins.int,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """`group_norm`, with the result put into this tensor. Returns it."""

    def groupnorm(
        self,
        num_groups: builtins.int,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """x with mean 0 and variance 1 within each of `num_groups` parts of its channels, for every
        sample, times weight, plus bias."""

    def groupnorm_(
        self,
        num_groups: builtins.int,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """`groupnorm`, with the result put into this tensor. Returns it."""

    def gt(self, other: Operand) -> Tensor:
        """Whether x > other, as bool."""

    def gt_(self, other: Operand) -> Tensor:
        """`gt`, with the result put into this tensor. Returns it."""

    def greater(self, other: Operand) -> Tensor:
        """Whether x > other, as bool."""

    def greater_(self, other: Operand) -> Tensor:
        """`greater`, with the result put into this tensor. Returns it."""

    def gumbel_softmax(
        self,
        tau: builtins.float = 1.0,
        hard: builtins.bool = False,
        dim: builtins.int = -1,
        *,
        axis: builtins.int = ...,
        random_key: Any = ...,
    ) -> Tensor:
        """A draw from the categorical distribution with these logits along a dimension, made
        smooth: softmax((logits + gumbel noise) / tau). hard: one-hot, with the derivative of the
        smooth one."""

    def hardshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """x, but 0 from -lambd to lambd; NaN stays NaN."""

    def hardshrink_(self, lambd: builtins.float = 0.5) -> Tensor:
        """`hardshrink`, with the result put into this tensor. Returns it."""

    def hardsigmoid(self) -> Tensor:
        """x/6 + 1/2 brought into [0, 1]."""

    def hardsigmoid_(self) -> Tensor:
        """`hardsigmoid`, with the result put into this tensor. Returns it."""

    def hardswish(self) -> Tensor:
        """x * hardsigmoid(x): 0 up to -3, x from 3 on, x (x + 3)/6 between."""

    def hardswish_(self) -> Tensor:
        """`hardswish`, with the result put into this tensor. Returns it."""

    def hardtanh(self, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor:
        """x brought into [min_val, max_val], which for integers are truncated; NaN stays NaN."""

    def hardtanh_(self, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor:
        """`hardtanh`, with the result put into this tensor. Returns it."""

    def heaviside(self, values: Operand) -> Tensor:
        """0 below 0, 1 above, `values` at 0; 0 for NaN."""

    def heaviside_(self, values: Operand) -> Tensor:
        """`heaviside`, with the result put into this tensor. Returns it."""

    def hinge_embedding_loss(
        self, target: Array, margin: builtins.float = 1.0, reduction: str = "mean"
    ) -> Tensor:
        """x where the target is 1, max(0, margin - x) where it is -1."""

    def hinge_embedding_loss_(
        self, target: Array, margin: builtins.float = 1.0, reduction: str = "mean"
    ) -> Tensor:
        """`hinge_embedding_loss`, with the result put into this tensor. Returns it."""

    def histc(
        self,
        bins: builtins.int = 100,
        min: builtins.int | builtins.float = 0,
        max: builtins.int | builtins.float = 0,
    ) -> Tensor:
        """How many elements lie in each of `bins` equal parts of min..max, in the dtype of x; min
        == max means from the least to the greatest element."""

    def histc_(
        self,
        bins: builtins.int = 100,
        min: builtins.int | builtins.float = 0,
        max: builtins.int | builtins.float = 0,
    ) -> Tensor:
        """`histc`, with the result put into this tensor. Returns it."""

    @overload
    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along the second (of one dimension: the first) dimension: so many equal ones, or
        ending at a list of indices."""

    @overload
    def hsplit(self, *, indices: Any) -> tuple[Tensor, ...]:
        """Parts along the second (of one dimension: the first) dimension: so many equal ones, or
        ending at a list of indices."""

    @overload
    def hsplit(self, *, sections: Any) -> tuple[Tensor, ...]:
        """Parts along the second (of one dimension: the first) dimension: so many equal ones, or
        ending at a list of indices."""

    @overload
    def hsplit(self, *, tensor_indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along the second (of one dimension: the first) dimension: so many equal ones, or
        ending at a list of indices."""

    def hstack(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """Tensors joined along their second dimension, those of one dimension along it."""

    def hstack_(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """`hstack`, with the result put into this tensor. Returns it."""

    def huber_loss(
        self,
        target: Array,
        reduction: str = "mean",
        delta: builtins.float = 1.0,
        weight: Array | None = None,
    ) -> Tensor:
        """Of the difference d: d^2 / 2 where |d| <= delta, else delta * (|d| - delta/2). x and
        target have one shape. weight: of that shape, what each counts; the mean is that of all."""

    def huber_loss_(
        self,
        target: Array,
        reduction: str = "mean",
        delta: builtins.float = 1.0,
        weight: Array | None = None,
    ) -> Tensor:
        """`huber_loss`, with the result put into this tensor. Returns it."""

    def hypot(self, other: Operand) -> Tensor:
        """sqrt(x^2 + other^2), which does not overflow on the way; inf if either is infinite."""

    def hypot_(self, other: Operand) -> Tensor:
        """`hypot`, with the result put into this tensor. Returns it."""

    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind of the order 0."""

    def i0_(self) -> Tensor:
        """`i0`, with the result put into this tensor. Returns it."""

    def im2col(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> Tensor:
        """The windows of x (batch, channels, height, width) as columns: (batch, channels * elements
        of a window, windows)."""

    def im2col_(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> Tensor:
        """`im2col`, with the result put into this tensor. Returns it."""

    @property
    def imag(self) -> Tensor:
        """The imaginary part; of a real tensor, 0 (PyTorch raises)."""

    @overload
    def index_add(
        self,
        dim: builtins.int,
        index: Array,
        source: Array,
        *,
        alpha: builtins.bool | builtins.int | builtins.float = 1,
    ) -> Tensor:
        """x with alpha * source added, slice by slice, at the indices along a dimension; several
        for one place add up."""

    @overload
    def index_add(
        self,
        *,
        axis: builtins.int,
        index: Array,
        source: Array,
        alpha: builtins.bool | builtins.int | builtins.float = 1,
    ) -> Tensor:
        """x with alpha * source added, slice by slice, at the indices along a dimension; several
        for one place add up."""

    @overload
    def index_add_(
        self,
        dim: builtins.int,
        index: Array,
        source: Array,
        *,
        alpha: builtins.bool | builtins.int | builtins.float = 1,
    ) -> Tensor:
        """`index_add`, with the result put into this tensor. Returns it."""

    @overload
    def index_add_(
        self,
        *,
        axis: builtins.int,
        index: Array,
        source: Array,
        alpha: builtins.bool | builtins.int | builtins.float = 1,
    ) -> Tensor:
        """`index_add`, with the result put into this tensor. Returns it."""

    @overload
    def index_copy(self, dim: builtins.int, index: Array, source: Array) -> Tensor:
        """x with the slices of the source in the place of those at the indices along a dimension;
        of several for one place the last stays."""

    @overload
    def index_copy(self, *, axis: builtins.int, index: Array, source: Array) -> Tensor:
        """x with the slices of the source in the place of those at the indices along a dimension;
        of several for one place the last stays."""

    @overload
    def index_copy_(self, dim: builtins.int, index: Array, source: Array) -> Tensor:
        """`index_copy`, with the result put into this tensor. Returns it."""

    @overload
    def index_copy_(self, *, axis: builtins.int, index: Array, source: Array) -> Tensor:
        """`index_copy`, with the result put into this tensor. Returns it."""

    @overload
    def index_fill(self, dim: builtins.int, index: Array, value: Operand) -> Tensor:
        """x with one value (a number, or a tensor of shape ()) in the slices at the indices along a
        dimension; indices below 0 count from the end."""

    @overload
    def index_fill(self, *, axis: builtins.int, index: Array, value: Operand) -> Tensor:
        """x with one value (a number, or a tensor of shape ()) in the slices at the indices along a
        dimension; indices below 0 count from the end."""

    @overload
    def index_fill_(self, dim: builtins.int, index: Array, value: Operand) -> Tensor:
        """`index_fill`, with the result put into this tensor. Returns it."""

    @overload
    def index_fill_(self, *, axis: builtins.int, index: Array, value: Operand) -> Tensor:
        """`index_fill`, with the result put into this tensor. Returns it."""

    def index_put(
        self, indices: Sequence[Array], values: Array, accumulate: builtins.bool = False
    ) -> Tensor:
        """x after `x[indices] = values`, for a tuple of tensors (ints that broadcast, or bool
        masks); with `accumulate` the values are added, several for one place too."""

    def index_put_(
        self, indices: Sequence[Array], values: Array, accumulate: builtins.bool = False
    ) -> Tensor:
        """`index_put`, with the result put into this tensor. Returns it."""

    @overload
    def index_reduce(
        self,
        dim: builtins.int,
        index: Array,
        source: Array,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """As `scatter_reduce`, with one index for each slice; reduce: "prod", "mean", "amax",
        "amin"."""

    @overload
    def index_reduce(
        self,
        *,
        axis: builtins.int,
        index: Array,
        source: Array,
        reduce: str,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """As `scatter_reduce`, with one index for each slice; reduce: "prod", "mean", "amax",
        "amin"."""

    @overload
    def index_reduce_(
        self,
        dim: builtins.int,
        index: Array,
        source: Array,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """`index_reduce`, with the result put into this tensor. Returns it."""

    @overload
    def index_reduce_(
        self,
        *,
        axis: builtins.int,
        index: Array,
        source: Array,
        reduce: str,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """`index_reduce`, with the result put into this tensor. Returns it."""

    @overload
    def index_select(self, dim: builtins.int, index: Array) -> Tensor:
        """The slices of `x` that a 1-d (or 0-d) index names along a dimension."""

    @overload
    def index_select(self, *, axis: builtins.int, index: Array) -> Tensor:
        """The slices of `x` that a 1-d (or 0-d) index names along a dimension."""

    @overload
    def index_select_(self, dim: builtins.int, index: Array) -> Tensor:
        """`index_select`, with the result put into this tensor. Returns it."""

    @overload
    def index_select_(self, *, axis: builtins.int, index: Array) -> Tensor:
        """`index_select`, with the result put into this tensor. Returns it."""

    def inner(self, other: Array) -> Tensor:
        """The sum over the last axes of both; with a 0-d tensor, the product."""

    def inner_(self, other: Array) -> Tensor:
        """`inner`, with the result put into this tensor. Returns it."""

    def instance_norm(
        self, weight: Array | None = None, bias: Array | None = None, eps: builtins.float = 1e-05
    ) -> Tensor:
        """x with mean 0 and variance 1 within each channel of each sample, times weight, plus
        bias."""

    def instance_norm_(
        self, weight: Array | None = None, bias: Array | None = None, eps: builtins.float = 1e-05
    ) -> Tensor:
        """`instance_norm`, with the result put into this tensor. Returns it."""

    def instancenorm(
        self, weight: Array | None = None, bias: Array | None = None, eps: builtins.float = 1e-05
    ) -> Tensor:
        """x with mean 0 and variance 1 within each channel of each sample, times weight, plus
        bias."""

    def instancenorm_(
        self, weight: Array | None = None, bias: Array | None = None, eps: builtins.float = 1e-05
    ) -> Tensor:
        """`instancenorm`, with the result put into this tensor. Returns it."""

    def interpolate(
        self,
        size: Sizes = None,
        scale_factor: Sizes = None,
        mode: str = "nearest",
        align_corners: builtins.bool | None = None,
        recompute_scale_factor: builtins.bool | None = None,
        antialias: builtins.bool = False,
        *,
        shape: Sizes = ...,
    ) -> Tensor:
        """x (batch, channels, ..) with other spatial sizes, of which it has 1 to 3."""

    def interpolate_(
        self,
        size: Sizes = None,
        scale_factor: Sizes = None,
        mode: str = "nearest",
        align_corners: builtins.bool | None = None,
        recompute_scale_factor: builtins.bool | None = None,
        antialias: builtins.bool = False,
        *,
        shape: Sizes = ...,
    ) -> Tensor:
        """`interpolate`, with the result put into this tensor. Returns it."""

    def inverse(self) -> Tensor:
        """`linalg.inv`."""

    def inverse_(self) -> Tensor:
        """`inverse`, with the result put into this tensor. Returns it."""

    def is_complex(self) -> builtins.bool:
        """Whether the dtype is complex."""

    def is_contiguous(self) -> builtins.bool:
        """True: every tensor is contiguous."""

    def is_floating_point(self) -> builtins.bool:
        """Whether the dtype is one of floating-point numbers."""

    def is_same_size(self, other: Array) -> builtins.bool:
        """Whether two tensors have one shape."""

    def is_signed(self) -> builtins.bool:
        """Whether the dtype has numbers below 0."""

    def isclose(
        self,
        other: Operand,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Whether |x - other| <= atol + rtol * |other|; infinities are close to themselves only,
        NaN to nothing unless `equal_nan`."""

    def isclose_(
        self,
        other: Operand,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """`isclose`, with the result put into this tensor. Returns it."""

    def isfinite(self) -> Tensor:
        """Whether an element is neither infinite nor NaN."""

    def isfinite_(self) -> Tensor:
        """`isfinite`, with the result put into this tensor. Returns it."""

    def isin(
        self,
        test_elements: Operand,
        *,
        assume_unique: builtins.bool = False,
        invert: builtins.bool = False,
    ) -> Tensor:
        """Whether each element is one of `test_elements`; with `invert` whether it is none of them.
        assume_unique: changes nothing, every element is compared with every other."""

    def isin_(
        self,
        test_elements: Operand,
        *,
        assume_unique: builtins.bool = False,
        invert: builtins.bool = False,
    ) -> Tensor:
        """`isin`, with the result put into this tensor. Returns it."""

    def isinf(self) -> Tensor:
        """Whether an element is inf or -inf."""

    def isinf_(self) -> Tensor:
        """`isinf`, with the result put into this tensor. Returns it."""

    def isnan(self) -> Tensor:
        """Whether an element is NaN."""

    def isnan_(self) -> Tensor:
        """`isnan`, with the result put into this tensor. Returns it."""

    def isneginf(self) -> Tensor:
        """Whether an element is -inf; of integers none is."""

    def isneginf_(self) -> Tensor:
        """`isneginf`, with the result put into this tensor. Returns it."""

    def isposinf(self) -> Tensor:
        """Whether an element is inf; of integers none is."""

    def isposinf_(self) -> Tensor:
        """`isposinf`, with the result put into this tensor. Returns it."""

    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0."""

    def isreal_(self) -> Tensor:
        """`isreal`, with the result put into this tensor. Returns it."""

    def istft(
        self,
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
        """The signals whose `stft`, with the same arguments, is nearest to x (.., frequencies,
        frames): frames are multiplied by the window again, summed at their places, and divided by
        the sum of squares of the windows there."""

    def istft_(
        self,
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
        """`istft`, with the result put into this tensor. Returns it."""

    @staticmethod
    def kaiming_normal(
        *_size: Any,
        a: builtins.float = 0.01,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Normal with the standard deviation of He et al. for a leaky ReLU of slope `a`; all sizes
        but the first are the inputs of one sum."""

    @staticmethod
    def kaiming_uniform(
        *_size: Any,
        a: builtins.float = 0.01,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Uniform with the standard deviation of He et al. for a leaky ReLU of slope `a`; all sizes
        but the first are the inputs of one sum."""

    def kl_div(
        self, target: Array, reduction: str = "mean", log_target: builtins.bool = False
    ) -> Tensor:
        """The Kullback-Leibler divergence of targets (probabilities; with `log_target` their
        logarithms) from x, which are logarithms of probabilities: target * (log(target) - x)."""

    def kl_div_(
        self, target: Array, reduction: str = "mean", log_target: builtins.bool = False
    ) -> Tensor:
        """`kl_div`, with the result put into this tensor. Returns it."""

    def kron(self, other: Array) -> Tensor:
        """The Kronecker product: every element of x times the whole of `other`."""

    def kron_(self, other: Array) -> Tensor:
        """`kron`, with the result put into this tensor. Returns it."""

    def kthvalue(
        self,
        k: builtins.int,
        dim: builtins.int = -1,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int = ...,
        keepdims: builtins.bool = ...,
    ) -> ValuesIndices[Tensor]:
        """(values, indices): the k-th least element (from 1) along a dimension, and where it
        stands."""

    def l1_loss(
        self, target: Array, reduction: str = "mean", weight: Array | None = None
    ) -> Tensor:
        """The absolute differences. x and target have one shape (they do not broadcast)."""

    def l1_loss_(
        self, target: Array, reduction: str = "mean", weight: Array | None = None
    ) -> Tensor:
        """`l1_loss`, with the result put into this tensor. Returns it."""

    def layer_norm(
        self,
        normalized_shape: Any,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """x with mean 0 and variance 1 over its last dimensions, times weight, plus bias."""

    def layer_norm_(
        self,
        normalized_shape: Any,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """`layer_norm`, with the result put into this tensor. Returns it."""

    def layernorm(self, dim: Any = -1, eps: builtins.float = 1e-05, *, axis: Any = ...) -> Tensor:
        """x with mean 0 and variance 1 over the given dimensions; see `layer_norm` for weight and
        bias."""

    def lcm(self, other: Operand) -> Tensor:
        """The least common multiple of integers, 0 if one of them is 0; it wraps at the width."""

    def lcm_(self, other: Operand) -> Tensor:
        """`lcm`, with the result put into this tensor. Returns it."""

    def ldexp(self, other: Operand) -> Tensor:
        """x * 2**other, in floating point."""

    def ldexp_(self, other: Operand) -> Tensor:
        """`ldexp`, with the result put into this tensor. Returns it."""

    def le(self, other: Operand) -> Tensor:
        """Whether x <= other, as bool."""

    def le_(self, other: Operand) -> Tensor:
        """`le`, with the result put into this tensor. Returns it."""

    def less_equal(self, other: Operand) -> Tensor:
        """Whether x <= other, as bool."""

    def less_equal_(self, other: Operand) -> Tensor:
        """`less_equal`, with the result put into this tensor. Returns it."""

    def leaky_relu(self, negative_slope: builtins.float = 0.01) -> Tensor:
        """x where it is above 0, else negative_slope * x."""

    def leaky_relu_(self, negative_slope: builtins.float = 0.01) -> Tensor:
        """`leaky_relu`, with the result put into this tensor. Returns it."""

    @overload
    def lerp(self, end: Operand, weight: Operand) -> Tensor:
        """From x to `end` by the part `weight`: x at 0, exactly `end` at 1."""

    @overload
    def lerp(self, *, stop: Operand, weight: Operand) -> Tensor:
        """From x to `end` by the part `weight`: x at 0, exactly `end` at 1."""

    @overload
    def lerp_(self, end: Operand, weight: Operand) -> Tensor:
        """`lerp`, with the result put into this tensor. Returns it."""

    @overload
    def lerp_(self, *, stop: Operand, weight: Operand) -> Tensor:
        """`lerp`, with the result put into this tensor. Returns it."""

    def lgamma(self) -> Tensor:
        """The logarithm of |gamma(x)|; inf at 0, the negative integers and -inf, in floating
        point."""

    def lgamma_(self) -> Tensor:
        """`lgamma`, with the result put into this tensor. Returns it."""

    def linear(self, weight: Array, bias: Array | None = None) -> Tensor:
        """x times the transposed weight, plus the bias, along the last dimension."""

    def linear_(self, weight: Array, bias: Array | None = None) -> Tensor:
        """`linear`, with the result put into this tensor. Returns it."""

    @overload
    @staticmethod
    def linspace(
        start: Any,
        end: Any,
        steps: builtins.int,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """`steps` numbers at equal distances from `start` to exactly `end`, which are numbers or
        0-d tensors."""

    @overload
    @staticmethod
    def linspace(
        start: Any,
        *,
        stop: Any,
        steps: builtins.int,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """`steps` numbers at equal distances from `start` to exactly `end`, which are numbers or
        0-d tensors."""

    @overload
    @staticmethod
    def linspace(
        start: Any,
        end: Any,
        *,
        num: builtins.int,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """`steps` numbers at equal distances from `start` to exactly `end`, which are numbers or
        0-d tensors."""

    @overload
    def local_response_norm(
        self,
        size: builtins.int,
        alpha: builtins.float = 0.0001,
        beta: builtins.float = 0.75,
        k: builtins.float = 1.0,
    ) -> Tensor:
        """x / (k + alpha * m)**beta for m the mean square over `size` neighbouring channels, those
        outside counting as 0."""

    @overload
    def local_response_norm(
        self,
        *,
        shape: builtins.int,
        alpha: builtins.float = 0.0001,
        beta: builtins.float = 0.75,
        k: builtins.float = 1.0,
    ) -> Tensor:
        """x / (k + alpha * m)**beta for m the mean square over `size` neighbouring channels, those
        outside counting as 0."""

    @overload
    def local_response_norm_(
        self,
        size: builtins.int,
        alpha: builtins.float = 0.0001,
        beta: builtins.float = 0.75,
        k: builtins.float = 1.0,
    ) -> Tensor:
        """`local_response_norm`, with the result put into this tensor. Returns it."""

    @overload
    def local_response_norm_(
        self,
        *,
        shape: builtins.int,
        alpha: builtins.float = 0.0001,
        beta: builtins.float = 0.75,
        k: builtins.float = 1.0,
    ) -> Tensor:
        """`local_response_norm`, with the result put into this tensor. Returns it."""

    def log(self) -> Tensor:
        """The natural logarithm; -inf of 0, NaN below, in floating point."""

    def log_(self) -> Tensor:
        """`log`, with the result put into this tensor. Returns it."""

    def log10(self) -> Tensor:
        """The logarithm to base 10, in floating point; -inf of 0, NaN below."""

    def log10_(self) -> Tensor:
        """`log10`, with the result put into this tensor. Returns it."""

    def log1p(self) -> Tensor:
        """log(1 + x), exact near 0, in floating point."""

    def log1p_(self) -> Tensor:
        """`log1p`, with the result put into this tensor. Returns it."""

    def log2(self) -> Tensor:
        """The logarithm to base 2; -inf of 0, NaN below, in floating point."""

    def log2_(self) -> Tensor:
        """`log2`, with the result put into this tensor. Returns it."""

    def log_softmax(
        self, dim: builtins.int = -1, dtype: DTypeLike | None = None, *, axis: builtins.int = ...
    ) -> Tensor:
        """The logarithm of `softmax`, exact where softmax itself would be 0. dtype: what x is cast
        to first."""

    def log_softmax_(
        self, dim: builtins.int = -1, dtype: DTypeLike | None = None, *, axis: builtins.int = ...
    ) -> Tensor:
        """`log_softmax`, with the result put into this tensor. Returns it."""

    def logaddexp(self, other: Operand) -> Tensor:
        """log(exp(x) + exp(other)), which does not overflow."""

    def logaddexp_(self, other: Operand) -> Tensor:
        """`logaddexp`, with the result put into this tensor. Returns it."""

    def logaddexp2(self, other: Operand) -> Tensor:
        """log2(2**x + 2**other), which does not overflow."""

    def logaddexp2_(self, other: Operand) -> Tensor:
        """`logaddexp2`, with the result put into this tensor. Returns it."""

    @overload
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """log(sum(exp(x))) of the elements up to and including each, along a dimension; it does not
        overflow."""

    @overload
    def logcumsumexp(self, *, axis: builtins.int) -> Tensor:
        """log(sum(exp(x))) of the elements up to and including each, along a dimension; it does not
        overflow."""

    @overload
    def logcumsumexp_(self, dim: builtins.int) -> Tensor:
        """`logcumsumexp`, with the result put into this tensor. Returns it."""

    @overload
    def logcumsumexp_(self, *, axis: builtins.int) -> Tensor:
        """`logcumsumexp`, with the result put into this tensor. Returns it."""

    def logdet(self) -> Tensor:
        """The logarithms of determinants; NaN of a negative one, -inf of 0."""

    def logdet_(self) -> Tensor:
        """`logdet`, with the result put into this tensor. Returns it."""

    def logical_and(self, other: Operand) -> Tensor:
        """Whether both are true (not 0), as bool."""

    def logical_and_(self, other: Operand) -> Tensor:
        """`logical_and`, with the result put into this tensor. Returns it."""

    def logical_not(self) -> Tensor:
        """Whether x is 0 (False)."""

    def logical_not_(self) -> Tensor:
        """`logical_not`, with the result put into this tensor. Returns it."""

    def logical_or(self, other: Operand) -> Tensor:
        """Whether one or both are true (not 0), as bool."""

    def logical_or_(self, other: Operand) -> Tensor:
        """`logical_or`, with the result put into this tensor. Returns it."""

    def logical_xor(self, other: Operand) -> Tensor:
        """Whether exactly one is true (not 0), as bool."""

    def logical_xor_(self, other: Operand) -> Tensor:
        """`logical_xor`, with the result put into this tensor. Returns it."""

    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of sigmoid; NaN outside [0, 1]. eps: x is first brought
        into [eps, 1 - eps], with the derivative 0 outside."""

    def logit_(self, eps: builtins.float | None = None) -> Tensor:
        """`logit`, with the result put into this tensor. Returns it."""

    def logsigmoid(self) -> Tensor:
        """log(sigmoid(x)), exact where sigmoid itself would be 0."""

    def logsigmoid_(self) -> Tensor:
        """`logsigmoid`, with the result put into this tensor. Returns it."""

    @overload
    @staticmethod
    def logspace(
        start: Any,
        end: Any,
        steps: builtins.int,
        base: builtins.float = 10.0,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """`steps` numbers from base**start to base**end, whose logarithms are at equal
        distances."""

    @overload
    @staticmethod
    def logspace(
        start: Any,
        *,
        stop: Any,
        steps: builtins.int,
        base: builtins.float = 10.0,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """`steps` numbers from base**start to base**end, whose logarithms are at equal
        distances."""

    @overload
    @staticmethod
    def logspace(
        start: Any,
        end: Any,
        *,
        num: builtins.int,
        base: builtins.float = 10.0,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """`steps` numbers from base**start to base**end, whose logarithms are at equal
        distances."""

    def logsumexp(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """log(sum(exp(x))), which does not overflow; -inf of nothing."""

    def logsumexp_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`logsumexp`, with the result put into this tensor. Returns it."""

    def lp_pool1d(
        self,
        norm_type: builtins.float,
        kernel_size: Sizes,
        stride: Sizes = None,
        ceil_mode: builtins.bool = False,
    ) -> Tensor:
        """The norm of each window over the last 1 dimension(s): the root of order `norm_type` of
        the sum of the powers x**norm_type."""

    def lp_pool1d_(
        self,
        norm_type: builtins.float,
        kernel_size: Sizes,
        stride: Sizes = None,
        ceil_mode: builtins.bool = False,
    ) -> Tensor:
        """`lp_pool1d`, with the result put into this tensor. Returns it."""

    def lp_pool2d(
        self,
        norm_type: builtins.float,
        kernel_size: Sizes,
        stride: Sizes = None,
        ceil_mode: builtins.bool = False,
    ) -> Tensor:
        """The norm of each window over the last 2 dimension(s): the root of order `norm_type` of
        the sum of the powers x**norm_type."""

    def lp_pool2d_(
        self,
        norm_type: builtins.float,
        kernel_size: Sizes,
        stride: Sizes = None,
        ceil_mode: builtins.bool = False,
    ) -> Tensor:
        """`lp_pool2d`, with the result put into this tensor. Returns it."""

    def lp_pool3d(
        self,
        norm_type: builtins.float,
        kernel_size: Sizes,
        stride: Sizes = None,
        ceil_mode: builtins.bool = False,
    ) -> Tensor:
        """The norm of each window over the last 3 dimension(s): the root of order `norm_type` of
        the sum of the powers x**norm_type."""

    def lp_pool3d_(
        self,
        norm_type: builtins.float,
        kernel_size: Sizes,
        stride: Sizes = None,
        ceil_mode: builtins.bool = False,
    ) -> Tensor:
        """`lp_pool3d`, with the result put into this tensor. Returns it."""

    def lt(self, other: Operand) -> Tensor:
        """Whether x < other, as bool."""

    def lt_(self, other: Operand) -> Tensor:
        """`lt`, with the result put into this tensor. Returns it."""

    def less(self, other: Operand) -> Tensor:
        """Whether x < other, as bool."""

    def less_(self, other: Operand) -> Tensor:
        """`less`, with the result put into this tensor. Returns it."""

    @property
    def mH(self) -> Tensor:
        """The conjugate transposes of the matrices in the last two dimensions; of real numbers:
        mT."""

    @property
    def mT(self) -> Tensor:
        """The last two dimensions exchanged."""

    @overload
    def margin_ranking_loss(
        self, x2: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """max(0, -target * (x1 - x2) + margin): target 1 wants x1 above `x2`, -1 below."""

    @overload
    def margin_ranking_loss(
        self, *, other: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """max(0, -target * (x1 - x2) + margin): target 1 wants x1 above `x2`, -1 below."""

    @overload
    def margin_ranking_loss(
        self, *, input2: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """max(0, -target * (x1 - x2) + margin): target 1 wants x1 above `x2`, -1 below."""

    @overload
    def margin_ranking_loss_(
        self, x2: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """`margin_ranking_loss`, with the result put into this tensor. Returns it."""

    @overload
    def margin_ranking_loss_(
        self, *, other: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """`margin_ranking_loss`, with the result put into this tensor. Returns it."""

    @overload
    def margin_ranking_loss_(
        self, *, input2: Array, target: Array, margin: builtins.float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """`margin_ranking_loss`, with the result put into this tensor. Returns it."""

    def masked_fill(self, mask: Operand, value: Operand) -> Tensor:
        """x with `value` (a number, or a 0-d tensor) where the bool tensor `mask` holds; the dtype
        of x stays."""

    def masked_fill_(self, mask: Operand, value: Operand) -> Tensor:
        """`masked_fill`, with the result put into this tensor. Returns it."""

    def masked_scatter(self, mask: Array, source: Array) -> Tensor:
        """x with the elements where the bool `mask` holds replaced, in order, by the first of
        `source`; x and the mask broadcast, the dtypes agree."""

    def masked_scatter_(self, mask: Array, source: Array) -> Tensor:
        """`masked_scatter`, with the result put into this tensor. Returns it."""

    def masked_select(
        self, mask: Array, *, size: Any = None, fill_value: Operand = 0, shape: Any = ...
    ) -> Tensor:
        """The elements where the bool `mask` holds, in order, as one dimension; the two
        broadcast."""

    def matmul(self, other: Array) -> Tensor:
        """The matrix product `@`: (.., m, k) @ (.., k, n) -> (.., m, n), leading dimensions
        broadcast."""

    def matmul_(self, other: Array) -> Tensor:
        """`matmul`, with the result put into this tensor. Returns it."""

    def matrix_exp(self) -> Tensor:
        """The exponential of square matrices: 1 + x + x @ x / 2 + ..; of Pade's approximant,
        scaling and squaring."""

    def matrix_exp_(self) -> Tensor:
        """`matrix_exp`, with the result put into this tensor. Returns it."""

    def matrix_power(self, n: builtins.int) -> Tensor:
        """The product of n times each matrix (.., m, m), by repeated squaring; for n below 0 of its
        inverse."""

    def matrix_power_(self, n: builtins.int) -> Tensor:
        """`matrix_power`, with the result put into this tensor. Returns it."""

    def max(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Array | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The greatest value (values only); NaN if there is one."""

    def max_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Array | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`max`, with the result put into this tensor. Returns it."""

    def amax(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Array | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The greatest value (values only); NaN if there is one."""

    def amax_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Array | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`amax`, with the result put into this tensor. Returns it."""

    def max_pool1d(
        self,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        dilation: Sizes = 1,
        ceil_mode: builtins.bool = False,
        return_indices: builtins.bool = False,
    ) -> Any:
        """The greatest element of each window over the last 1 dimension(s)."""

    def max_pool2d(
        self,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        dilation: Sizes = 1,
        ceil_mode: builtins.bool = False,
        return_indices: builtins.bool = False,
    ) -> Any:
        """The greatest element of each window over the last 2 dimension(s)."""

    def max_pool3d(
        self,
        kernel_size: Sizes = 2,
        stride: Sizes = None,
        padding: Padding = 0,
        dilation: Sizes = 1,
        ceil_mode: builtins.bool = False,
        return_indices: builtins.bool = False,
    ) -> Any:
        """The greatest element of each window over the last 3 dimension(s)."""

    def max_unpool1d(
        self,
        indices: Array,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        output_size: Sizes = None,
    ) -> Tensor:
        """The values that `max_pool1d` with return_indices=True gave, back at their places; 0
        everywhere else."""

    def max_unpool1d_(
        self,
        indices: Array,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        output_size: Sizes = None,
    ) -> Tensor:
        """`max_unpool1d`, with the result put into this tensor. Returns it."""

    def max_unpool2d(
        self,
        indices: Array,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        output_size: Sizes = None,
    ) -> Tensor:
        """The values that `max_pool2d` with return_indices=True gave, back at their places; 0
        everywhere else."""

    def max_unpool2d_(
        self,
        indices: Array,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        output_size: Sizes = None,
    ) -> Tensor:
        """`max_unpool2d`, with the result put into this tensor. Returns it."""

    def max_unpool3d(
        self,
        indices: Array,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        output_size: Sizes = None,
    ) -> Tensor:
        """The values that `max_pool3d` with return_indices=True gave, back at their places; 0
        everywhere else."""

    def max_unpool3d_(
        self,
        indices: Array,
        kernel_size: Sizes,
        stride: Sizes = None,
        padding: Sizes = 0,
        output_size: Sizes = None,
    ) -> Tensor:
        """`max_unpool3d`, with the result put into this tensor. Returns it."""

    def maximum(self, other: Operand) -> Tensor:
        """The greater of two; NaN if either is NaN."""

    def maximum_(self, other: Operand) -> Tensor:
        """`maximum`, with the result put into this tensor. Returns it."""

    def mean(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The sum divided by the number of elements; NaN of nothing."""

    def mean_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`mean`, with the result put into this tensor. Returns it."""

    def median(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Any:
        """The middle element, NaN if there is a NaN; of an even number the lower of the two in the
        middle."""

    def meshgrid(*_tensors: Any, indexing: str = "ij", tensors: Any = ...) -> tuple[Tensor, ...]:
        """The coordinates of a grid: for each tensor of one dimension (or none) its numbers along a
        dimension of its own. indexing="xy" exchanges the first two dimensions."""

    def min(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Array | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The least value (values only); NaN if there is one."""

    def min_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Array | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`min`, with the result put into this tensor. Returns it."""

    def amin(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Array | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The least value (values only); NaN if there is one."""

    def amin_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        other: Array | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`amin`, with the result put into this tensor. Returns it."""

    def minimum(self, other: Operand) -> Tensor:
        """The lesser of two; NaN if either is NaN."""

    def minimum_(self, other: Operand) -> Tensor:
        """`minimum`, with the result put into this tensor. Returns it."""

    def mish(self) -> Tensor:
        """x * tanh(log(1 + exp(x)))."""

    def mish_(self) -> Tensor:
        """`mish`, with the result put into this tensor. Returns it."""

    def mm(self, mat2: Array) -> Tensor:
        """A matrix times a matrix."""

    def mm_(self, mat2: Array) -> Tensor:
        """`mm`, with the result put into this tensor. Returns it."""

    def mode(
        self,
        dim: builtins.int = -1,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int = ...,
        keepdims: builtins.bool = ...,
    ) -> ValuesIndices[Tensor]:
        """(values, indices): the most frequent element along a dimension, of several the least, and
        where it stands last."""

    def movedim(self, source: Any, destination: Any) -> Tensor:
        """Dimensions moved to other places; the others keep their order."""

    def movedim_(self, source: Any, destination: Any) -> Tensor:
        """`movedim`, with the result put into this tensor. Returns it."""

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Dimensions moved to other places; the others keep their order."""

    def moveaxis_(self, source: Any, destination: Any) -> Tensor:
        """`moveaxis`, with the result put into this tensor. Returns it."""

    def mse_loss(
        self, target: Array, reduction: str = "mean", weight: Array | None = None
    ) -> Tensor:
        """The squared differences. x and target have one shape (they do not broadcast)."""

    def mse_loss_(
        self, target: Array, reduction: str = "mean", weight: Array | None = None
    ) -> Tensor:
        """`mse_loss`, with the result put into this tensor. Returns it."""

    def msort(self) -> Tensor:
        """The elements in ascending order along the first dimension."""

    def msort_(self) -> Tensor:
        """`msort`, with the result put into this tensor. Returns it."""

    def mul(self, other: Operand) -> Tensor:
        """x * other."""

    def mul_(self, other: Operand) -> Tensor:
        """`mul`, with the result put into this tensor. Returns it."""

    def multiply(self, other: Operand) -> Tensor:
        """x * other."""

    def multiply_(self, other: Operand) -> Tensor:
        """`multiply`, with the result put into this tensor. Returns it."""

    def multi_margin_loss(
        self,
        target: Array,
        p: builtins.int = 1,
        margin: builtins.float = 1.0,
        weight: Array | None = None,
        reduction: str = "mean",
    ) -> Tensor:
        """The mean over the other classes of max(0, margin - x[target] + x[other])**p."""

    def multi_margin_loss_(
        self,
        target: Array,
        p: builtins.int = 1,
        margin: builtins.float = 1.0,
        weight: Array | None = None,
        reduction: str = "mean",
    ) -> Tensor:
        """`multi_margin_loss`, with the result put into this tensor. Returns it."""

    def multilabel_soft_margin_loss(
        self, target: Array, weight: Array | None = None, reduction: str = "mean"
    ) -> Tensor:
        """The binary cross entropy of every class (the last dimension), averaged over the
        classes."""

    def multilabel_soft_margin_loss_(
        self, target: Array, weight: Array | None = None, reduction: str = "mean"
    ) -> Tensor:
        """`multilabel_soft_margin_loss`, with the result put into this tensor. Returns it."""

    def multinomial(
        self,
        num_samples: builtins.int,
        replacement: builtins.bool = False,
        *,
        random_key: Any = ...,
    ) -> Tensor:
        """Indices drawn with the probabilities that a row (or each row of a matrix) gives, which
        need not add up to 1: int64, `num_samples` of them as the last dimension."""

    def mv(self, vec: Array) -> Tensor:
        """A matrix times a vector."""

    def mv_(self, vec: Array) -> Tensor:
        """`mv`, with the result put into this tensor. Returns it."""

    def mvlgamma(self, p: builtins.int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension p: the sum of lgamma(x -
        j/2) over j = 0 .. p - 1, and p (p - 1) / 4 log pi."""

    def mvlgamma_(self, p: builtins.int) -> Tensor:
        """`mvlgamma`, with the result put into this tensor. Returns it."""

    def nan_to_num(
        self,
        nan: builtins.float | None = 0.0,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """x with NaN replaced by `nan`, inf by `posinf` and -inf by `neginf`; None: 0, and the
        greatest and least number of the dtype."""

    def nan_to_num_(
        self,
        nan: builtins.float | None = 0.0,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """`nan_to_num`, with the result put into this tensor. Returns it."""

    def nanmean(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The mean of what is not NaN; NaN of nothing."""

    def nanmean_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`nanmean`, with the result put into this tensor. Returns it."""

    def nanmedian(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Any:
        """The middle element of those that are not NaN; of an even number the lower of the two in
        the middle."""

    def nanquantile(
        self,
        q: Any,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """As `quantile`, of the elements that are not NaN; NaN if there are none."""

    def nanquantile_(
        self,
        q: Any,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`nanquantile`, with the result put into this tensor. Returns it."""

    def nansum(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The sum of what is not NaN."""

    def nansum_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`nansum`, with the result put into this tensor. Returns it."""

    @overload
    def narrow(self, dim: builtins.int, start: Any, length: Size) -> Tensor:
        """`length` elements from `start` on along a dimension; a start below 0 counts from the
        end."""

    @overload
    def narrow(self, *, axis: builtins.int, start: Any, length: Size) -> Tensor:
        """`length` elements from `start` on along a dimension; a start below 0 counts from the
        end."""

    @overload
    def narrow_(self, dim: builtins.int, start: Any, length: Size) -> Tensor:
        """`narrow`, with the result put into this tensor. Returns it."""

    @overload
    def narrow_(self, *, axis: builtins.int, start: Any, length: Size) -> Tensor:
        """`narrow`, with the result put into this tensor. Returns it."""

    def ne(self, other: Operand) -> Tensor:
        """Whether x != other, as bool."""

    def ne_(self, other: Operand) -> Tensor:
        """`ne`, with the result put into this tensor. Returns it."""

    def not_equal(self, other: Operand) -> Tensor:
        """Whether x != other, as bool."""

    def not_equal_(self, other: Operand) -> Tensor:
        """`not_equal`, with the result put into this tensor. Returns it."""

    def neg(self) -> Tensor:
        """-x."""

    def neg_(self) -> Tensor:
        """`neg`, with the result put into this tensor. Returns it."""

    def negative(self) -> Tensor:
        """-x."""

    def negative_(self) -> Tensor:
        """`negative`, with the result put into this tensor. Returns it."""

    @overload
    def new_full(
        self,
        size: Any,
        fill_value: builtins.bool | builtins.int | builtins.float,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """One number in a shape, in the dtype of x unless one is given."""

    @overload
    def new_full(
        self,
        *,
        shape: Any,
        fill_value: builtins.bool | builtins.int | builtins.float,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """One number in a shape, in the dtype of x unless one is given."""

    def new_ones(
        self,
        *_size: Any,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Ones of a shape, in the dtype of x unless one is given."""

    def new_zeros(
        self,
        *_size: Any,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Zeros of a shape, in the dtype of x unless one is given. (`new_empty` is zeros too.)"""

    def new_empty(
        self,
        *_size: Any,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Zeros of a shape, in the dtype of x unless one is given. (`new_empty` is zeros too.)"""

    def nextafter(self, other: Operand) -> Tensor:
        """The next number of the dtype after x in the direction of `other`; `other` if they are
        equal."""

    def nextafter_(self, other: Operand) -> Tensor:
        """`nextafter`, with the result put into this tensor. Returns it."""

    def nll_loss(
        self,
        target: Array,
        weight: Array | None = None,
        ignore_index: builtins.int = -100,
        reduction: str = "mean",
    ) -> Tensor:
        """-x at the target's class, for logarithms of probabilities x."""

    def nll_loss_(
        self,
        target: Array,
        weight: Array | None = None,
        ignore_index: builtins.int = -100,
        reduction: str = "mean",
    ) -> Tensor:
        """`nll_loss`, with the result put into this tensor. Returns it."""

    def nonzero(
        self,
        *,
        as_tuple: builtins.bool = False,
        size: Any = None,
        fill_value: builtins.int = 0,
        shape: Any = ...,
    ) -> Any:
        """The indices of the elements that are not 0, int64, a row for each; as_tuple: a tensor of
        indices for each dimension instead."""

    def norm(
        self,
        p: builtins.int | builtins.float | str = "fro",
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """(sum of |x|**p)**(1/p); of all elements, or along one dimension or several. "fro" is p=2;
        inf and -inf give the greatest and the least |x|, 0 counts what is not 0; "nuc" is the sum
        of the singular values of a matrix, in the two dimensions `dim` (of a matrix: may be left
        out)."""

    def norm_(
        self,
        p: builtins.int | builtins.float | str = "fro",
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`norm`, with the result put into this tensor. Returns it."""

    @staticmethod
    def normal(
        *_size: Any,
        mean: builtins.float = 0.0,
        std: builtins.float = 1.0,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Normal numbers of a mean and a standard deviation (0 or more)."""

    def normalize(
        self, p: builtins.float = 2.0, dim: Any = 1, eps: builtins.float = 1e-12, *, axis: Any = ...
    ) -> Tensor:
        """x divided by its p-norm along the given dimensions, which is taken to be at least eps."""

    def normalize_(
        self, p: builtins.float = 2.0, dim: Any = 1, eps: builtins.float = 1e-12, *, axis: Any = ...
    ) -> Tensor:
        """`normalize`, with the result put into this tensor. Returns it."""

    def one_hot(self, num_classes: builtins.int = -1) -> Tensor:
        """A vector of `num_classes` for each class id, with 1 at its place, int64, as a new last
        dimension."""

    @staticmethod
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
        self,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Ones in the shape of x, and of its dtype unless one is given."""

    def orgqr(self, input2: Array) -> Tensor:
        """`linalg.householder_product`."""

    def orgqr_(self, input2: Array) -> Tensor:
        """`orgqr`, with the result put into this tensor. Returns it."""

    def outer(self, vec2: Array) -> Tensor:
        """Every element of one vector times every element of another: (m,), (n,) -> (m, n)."""

    def outer_(self, vec2: Array) -> Tensor:
        """`outer`, with the result put into this tensor. Returns it."""

    def ger(self, vec2: Array) -> Tensor:
        """Every element of one vector times every element of another: (m,), (n,) -> (m, n)."""

    def ger_(self, vec2: Array) -> Tensor:
        """`ger`, with the result put into this tensor. Returns it."""

    def pad(
        self,
        pad: Any,
        mode: str = "constant",
        value: builtins.bool | builtins.int | builtins.float | None = None,
    ) -> Tensor:
        """With elements added at the ends of dimensions."""

    def pad_(
        self,
        pad: Any,
        mode: str = "constant",
        value: builtins.bool | builtins.int | builtins.float | None = None,
    ) -> Tensor:
        """`pad`, with the result put into this tensor. Returns it."""

    def pad_to(self, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
        """With zeros added at the ends of dimensions up to a shape; None keeps a size."""

    @overload
    def pairwise_distance(
        self,
        x2: Array,
        p: builtins.float = 2.0,
        eps: builtins.float = 1e-06,
        keepdim: builtins.bool = False,
        *,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The p-norm of x1 - x2 + eps along the last dimension."""

    @overload
    def pairwise_distance(
        self,
        *,
        other: Array,
        p: builtins.float = 2.0,
        eps: builtins.float = 1e-06,
        keepdim: builtins.bool = False,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The p-norm of x1 - x2 + eps along the last dimension."""

    @overload
    def pairwise_distance(
        self,
        *,
        input2: Array,
        p: builtins.float = 2.0,
        eps: builtins.float = 1e-06,
        keepdim: builtins.bool = False,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The p-norm of x1 - x2 + eps along the last dimension."""

    @overload
    def pairwise_distance_(
        self,
        x2: Array,
        p: builtins.float = 2.0,
        eps: builtins.float = 1e-06,
        keepdim: builtins.bool = False,
        *,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`pairwise_distance`, with the result put into this tensor. Returns it."""

    @overload
    def pairwise_distance_(
        self,
        *,
        other: Array,
        p: builtins.float = 2.0,
        eps: builtins.float = 1e-06,
        keepdim: builtins.bool = False,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`pairwise_distance`, with the result put into this tensor. Returns it."""

    @overload
    def pairwise_distance_(
        self,
        *,
        input2: Array,
        p: builtins.float = 2.0,
        eps: builtins.float = 1e-06,
        keepdim: builtins.bool = False,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`pairwise_distance`, with the result put into this tensor. Returns it."""

    def pdist(self, p: builtins.float = 2.0) -> Tensor:
        """The p-norms of the differences of all pairs of rows of a matrix (n, k), (0, 1), (0, 2) ..
        in a row of n (n - 1) / 2."""

    def pdist_(self, p: builtins.float = 2.0) -> Tensor:
        """`pdist`, with the result put into this tensor. Returns it."""

    def permute(
        self, *_dims: Any, dims: Any = ..., dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """The dimensions in another order: dimension `dims[i]` becomes dimension i."""

    def permute_(
        self, *_dims: Any, dims: Any = ..., dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """`permute`, with the result put into this tensor. Returns it."""

    def permute_dims(
        self, *_dims: Any, dims: Any = ..., dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """The dimensions in another order: dimension `dims[i]` becomes dimension i."""

    def permute_dims_(
        self, *_dims: Any, dims: Any = ..., dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """`permute_dims`, with the result put into this tensor. Returns it."""

    def pinverse(self, rcond: Any = 1e-15) -> Tensor:
        """`linalg.pinv` with rtol=rcond."""

    def pinverse_(self, rcond: Any = 1e-15) -> Tensor:
        """`pinverse`, with the result put into this tensor. Returns it."""

    def pixel_shuffle(self, upscale_factor: builtins.int) -> Tensor:
        """(.., channels*r*r, height, width) as (.., channels, height*r, width*r): channels become
        the pixels of squares."""

    def pixel_shuffle_(self, upscale_factor: builtins.int) -> Tensor:
        """`pixel_shuffle`, with the result put into this tensor. Returns it."""

    def pixel_unshuffle(self, downscale_factor: builtins.int) -> Tensor:
        """(.., channels, height*r, width*r) as (.., channels*r*r, height, width): what
        `pixel_shuffle` makes, back."""

    def pixel_unshuffle_(self, downscale_factor: builtins.int) -> Tensor:
        """`pixel_unshuffle`, with the result put into this tensor. Returns it."""

    def poisson_nll_loss(
        self,
        target: Array,
        log_input: builtins.bool = True,
        full: builtins.bool = False,
        eps: builtins.float = 1e-08,
        reduction: str = "mean",
    ) -> Tensor:
        """The negative logarithm of the probability of counts under Poisson distributions, without
        what does not depend on x: exp(x) - target * x; without `log_input`, x - target * log(x +
        eps)."""

    def poisson_nll_loss_(
        self,
        target: Array,
        log_input: builtins.bool = True,
        full: builtins.bool = False,
        eps: builtins.float = 1e-08,
        reduction: str = "mean",
    ) -> Tensor:
        """`poisson_nll_loss`, with the result put into this tensor. Returns it."""

    def polygamma(self, n: builtins.int) -> Tensor:
        """The derivative of `digamma` of the order n, an int of 0 or more."""

    def polygamma_(self, n: builtins.int) -> Tensor:
        """`polygamma`, with the result put into this tensor. Returns it."""

    def positive(self) -> Tensor:
        """x itself, `+x`."""

    def positive_(self) -> Tensor:
        """`positive`, with the result put into this tensor. Returns it."""

    def pow(self, exponent: Operand) -> Tensor:
        """x to a power, `**`."""

    def pow_(self, exponent: Operand) -> Tensor:
        """`pow`, with the result put into this tensor. Returns it."""

    def prelu(self, weight: Array) -> Tensor:
        """x where it is above 0, else weight * x."""

    def prelu_(self, weight: Array) -> Tensor:
        """`prelu`, with the result put into this tensor. Returns it."""

    def prod(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The product; 1 of nothing."""

    def prod_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`prod`, with the result put into this tensor. Returns it."""

    def put(self, index: Array, source: Array, accumulate: builtins.bool = False) -> Tensor:
        """x with the elements of `source`, in order, at indices of the flattened tensor; with
        `accumulate` added to those that stand there."""

    def put_(self, index: Array, source: Array, accumulate: builtins.bool = False) -> Tensor:
        """`put`, with the result put into this tensor. Returns it."""

    def qr(self, some: builtins.bool = True) -> QRResult[Tensor]:
        """`linalg.qr`, reduced if `some`, else complete."""

    def quantile(
        self,
        q: Any,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The value below which the part q of the elements lies, of all or along a dimension; NaN
        if there is one. q: a number from 0 to 1, or a row of them, which the result then has as its
        first dimension (NaN for one in it that is beyond). interpolation: "linear", "lower",
        "higher", "midpoint" or "nearest" element."""

    def quantile_(
        self,
        q: Any,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
        axis: builtins.int | None = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`quantile`, with the result put into this tensor. Returns it."""

    def quick_gelu(self) -> Tensor:
        """x * sigmoid(1.702 x), which is near gelu."""

    def rad2deg(self) -> Tensor:
        """Radians as degrees: x * 180/pi."""

    def rad2deg_(self) -> Tensor:
        """`rad2deg`, with the result put into this tensor. Returns it."""

    @staticmethod
    def rand(
        *_size: Any,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Uniform on [0, 1): every multiple of 2**-24 (float64: 2**-53) is equally likely."""

    def rand_like(self, *, dtype: DTypeLike | None = None, random_key: Any = ...) -> Tensor:
        """Uniform on [0, 1), in the shape of x and in its dtype unless one is given."""

    @staticmethod
    def randint(
        low: builtins.int,
        high: Axes = None,
        size: Axes = None,
        *,
        dtype: DTypeLike | None = None,
        shape: Axes = ...,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Integers from `low` up to, without, `high`: randint(low, high, size), or randint(high,
        size) from 0. int64 unless `dtype` is given."""

    def randint_like(
        self,
        low: builtins.int,
        high: Any = None,
        *,
        dtype: DTypeLike | None = None,
        random_key: Any = ...,
    ) -> Tensor:
        """Integers from `low` up to, without, `high` (or from 0 up to the one that is given), in
        the shape of x and in its dtype unless one is given."""

    @staticmethod
    def randn(
        *_size: Any,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Normal numbers of mean 0 and variance 1."""

    def randn_like(self, *, dtype: DTypeLike | None = None, random_key: Any = ...) -> Tensor:
        """Normal numbers of mean 0 and variance 1, in the shape of x and in its dtype unless one is
        given."""

    @staticmethod
    def randperm(
        n: builtins.int,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """The numbers 0 .. n-1 in random order, int64 unless `dtype` is given."""

    def ravel(self) -> Tensor:
        """All elements in one dimension."""

    def ravel_(self) -> Tensor:
        """`ravel`, with the result put into this tensor. Returns it."""

    @property
    def real(self) -> Tensor:
        """The real part; of a real tensor, itself."""

    def rearrange(self, pattern: str, sizes: Any) -> Tensor:
        """The dimensions named on the left of the pattern, in the order and grouping on its
        right."""

    def reciprocal(self) -> Tensor:
        """1 / x, in floating point."""

    def reciprocal_(self) -> Tensor:
        """`reciprocal`, with the result put into this tensor. Returns it."""

    def relu(self) -> Tensor:
        """x where it is above 0, else 0; NaN stays NaN."""

    def relu_(self) -> Tensor:
        """`relu`, with the result put into this tensor. Returns it."""

    def relu6(self) -> Tensor:
        """x brought into [0, 6]; NaN stays NaN."""

    def relu6_(self) -> Tensor:
        """`relu6`, with the result put into this tensor. Returns it."""

    def remainder(self, other: Operand) -> Tensor:
        """What `//` leaves, with the sign of `other`: `%`."""

    def remainder_(self, other: Operand) -> Tensor:
        """`remainder`, with the result put into this tensor. Returns it."""

    def mod(self, other: Operand) -> Tensor:
        """What `//` leaves, with the sign of `other`: `%`."""

    def mod_(self, other: Operand) -> Tensor:
        """`mod`, with the result put into this tensor. Returns it."""

    @overload
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """x with every slice along `dim` whose p-norm is above `maxnorm` made as much smaller."""

    @overload
    def renorm(self, p: builtins.float, *, axis: builtins.int, maxnorm: builtins.float) -> Tensor:
        """x with every slice along `dim` whose p-norm is above `maxnorm` made as much smaller."""

    @overload
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """`renorm`, with the result put into this tensor. Returns it."""

    @overload
    def renorm_(self, p: builtins.float, *, axis: builtins.int, maxnorm: builtins.float) -> Tensor:
        """`renorm`, with the result put into this tensor. Returns it."""

    def repeat(
        self, *_repeats: Any, repeats: Any = ..., sizes: Any = ..., dims: Any = ...
    ) -> Tensor:
        """The whole tensor repeated, `repeats[i]` times along dimension i; more numbers than
        dimensions add dimensions in front."""

    def repeat_(
        self, *_repeats: Any, repeats: Any = ..., sizes: Any = ..., dims: Any = ...
    ) -> Tensor:
        """`repeat`, with the result put into this tensor. Returns it."""

    @overload
    def repeat_interleave(
        self,
        repeats: Any,
        dim: builtins.int | None = None,
        *,
        output_size: Any = None,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """Each element (without `dim`, of the flattened tensor) or slice along `dim` repeated:
        `repeats` times, or as often as the element of a tensor `repeats` says, whose sum is read
        unless it is given as `output_size`."""

    @overload
    def repeat_interleave(
        self,
        *,
        sizes: Any,
        dim: builtins.int | None = None,
        output_size: Any = None,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """Each element (without `dim`, of the flattened tensor) or slice along `dim` repeated:
        `repeats` times, or as often as the element of a tensor `repeats` says, whose sum is read
        unless it is given as `output_size`."""

    @overload
    def repeat_interleave(
        self,
        *,
        dims: Any,
        dim: builtins.int | None = None,
        output_size: Any = None,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """Each element (without `dim`, of the flattened tensor) or slice along `dim` repeated:
        `repeats` times, or as often as the element of a tensor `repeats` says, whose sum is read
        unless it is given as `output_size`."""

    def reshape(self, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
        """The elements in row-major order in another shape, given as sizes or as one tuple; one
        size may be -1."""

    def reshape_(self, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
        """`reshape`, with the result put into this tensor. Returns it."""

    def rms_norm(
        self, normalized_shape: Any, weight: Array | None = None, eps: builtins.float | None = None
    ) -> Tensor:
        """x divided by its root mean square over its last dimensions, times weight."""

    def rms_norm_(
        self, normalized_shape: Any, weight: Array | None = None, eps: builtins.float | None = None
    ) -> Tensor:
        """`rms_norm`, with the result put into this tensor. Returns it."""

    @overload
    def roll(
        self, shifts: Any, dims: Any = None, *, dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """Moved by `shifts` places along `dims` (one number: along each), what leaves at the end
        entering at the start."""

    @overload
    def roll(
        self, *, shift: Any, dims: Any = None, dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """Moved by `shifts` places along `dims` (one number: along each), what leaves at the end
        entering at the start."""

    @overload
    def roll_(
        self, shifts: Any, dims: Any = None, *, dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """`roll`, with the result put into this tensor. Returns it."""

    @overload
    def roll_(
        self, *, shift: Any, dims: Any = None, dim: Any = ..., axes: Any = ..., axis: Any = ...
    ) -> Tensor:
        """`roll`, with the result put into this tensor. Returns it."""

    def rot90(
        self,
        k: builtins.int = 1,
        dims: Sequence[builtins.int] = ...,
        *,
        dim: Sequence[builtins.int] = ...,
        axes: Sequence[builtins.int] = ...,
        axis: Sequence[builtins.int] = ...,
    ) -> Tensor:
        """Turned k times by 90 degrees in the plane of two dimensions, from the first towards the
        second."""

    def rot90_(
        self,
        k: builtins.int = 1,
        dims: Sequence[builtins.int] = ...,
        *,
        dim: Sequence[builtins.int] = ...,
        axes: Sequence[builtins.int] = ...,
        axis: Sequence[builtins.int] = ...,
    ) -> Tensor:
        """`rot90`, with the result put into this tensor. Returns it."""

    def round(self, decimals: builtins.int = 0) -> Tensor:
        """x rounded to the nearest whole number, halves to the even one; with `decimals`, to so
        many digits behind the point (or, below 0, before it)."""

    def round_(self, decimals: builtins.int = 0) -> Tensor:
        """`round`, with the result put into this tensor. Returns it."""

    def rrelu(
        self,
        lower: builtins.float = 0.125,
        upper: builtins.float = 0.3333333333333333,
        training: builtins.bool = False,
        *,
        random_key: Any = ...,
    ) -> Tensor:
        """x where it is above 0, else a slope times x: random, uniform from `lower` to `upper`, in
        training; else the middle of the two. random_key: as of `dropout`."""

    def rsqrt(self) -> Tensor:
        """1 / sqrt(x), in floating point."""

    def rsqrt_(self) -> Tensor:
        """`rsqrt`, with the result put into this tensor. Returns it."""

    def rsub(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """other - alpha * x."""

    def rsub_(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """`rsub`, with the result put into this tensor. Returns it."""

    def scaled_dot_product_attention(
        self,
        key: Array,
        value: Array,
        attn_mask: Array | None = None,
        dropout_p: builtins.float = 0.0,
        is_causal: builtins.bool = False,
        scale: builtins.float | None = None,
        enable_gqa: builtins.bool = False,
        *,
        random_key: Any = ...,
    ) -> Tensor:
        """softmax(query key^T * scale + mask) value, the softmax along the keys."""

    @staticmethod
    def scaled_uniform(
        *_size: Any,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Uniform up to 1 / sqrt(number of elements) on both sides of 0."""

    @overload
    def scatter(
        self,
        dim: builtins.int,
        index: Array,
        src: Operand | None = None,
        *,
        value: Operand | None = None,
        reduce: Any = None,
    ) -> Tensor:
        """x with x[i][index[i][j][k]][k] = src[i][j][k], for dim=1; `src` may be a number (or named
        `value`). reduce="add" or "multiply" combines instead."""

    @overload
    def scatter(
        self,
        *,
        axis: builtins.int,
        index: Array,
        src: Operand | None = None,
        value: Operand | None = None,
        reduce: Any = None,
    ) -> Tensor:
        """x with x[i][index[i][j][k]][k] = src[i][j][k], for dim=1; `src` may be a number (or named
        `value`). reduce="add" or "multiply" combines instead."""

    @overload
    def scatter_(
        self,
        dim: builtins.int,
        index: Array,
        src: Operand | None = None,
        *,
        value: Operand | None = None,
        reduce: Any = None,
    ) -> Tensor:
        """`scatter`, with the result put into this tensor. Returns it."""

    @overload
    def scatter_(
        self,
        *,
        axis: builtins.int,
        index: Array,
        src: Operand | None = None,
        value: Operand | None = None,
        reduce: Any = None,
    ) -> Tensor:
        """`scatter`, with the result put into this tensor. Returns it."""

    @overload
    def scatter_add(self, dim: builtins.int, index: Array, src: Operand) -> Tensor:
        """x with src[i][j][k] added to x[i][index[i][j][k]][k], for dim=1, in order."""

    @overload
    def scatter_add(self, *, axis: builtins.int, index: Array, src: Operand) -> Tensor:
        """x with src[i][j][k] added to x[i][index[i][j][k]][k], for dim=1, in order."""

    @overload
    def scatter_add_(self, dim: builtins.int, index: Array, src: Operand) -> Tensor:
        """`scatter_add`, with the result put into this tensor. Returns it."""

    @overload
    def scatter_add_(self, *, axis: builtins.int, index: Array, src: Operand) -> Tensor:
        """`scatter_add`, with the result put into this tensor. Returns it."""

    @overload
    def scatter_reduce(
        self,
        dim: builtins.int,
        index: Array,
        src: Array,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """x with all values of `src` for one place combined into it: places as in `scatter`."""

    @overload
    def scatter_reduce(
        self,
        *,
        axis: builtins.int,
        index: Array,
        src: Array,
        reduce: str,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """x with all values of `src` for one place combined into it: places as in `scatter`."""

    @overload
    def scatter_reduce_(
        self,
        dim: builtins.int,
        index: Array,
        src: Array,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """`scatter_reduce`, with the result put into this tensor. Returns it."""

    @overload
    def scatter_reduce_(
        self,
        *,
        axis: builtins.int,
        index: Array,
        src: Array,
        reduce: str,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """`scatter_reduce`, with the result put into this tensor. Returns it."""

    def searchsorted(
        self,
        values: Operand,
        *,
        out_int32: builtins.bool = False,
        right: builtins.bool = False,
        side: str | None = None,
        sorter: Array | None = None,
    ) -> Tensor:
        """Where each of `values` is to be inserted into the ascending last dimension of x: before
        its equals, or after them with right=True (or side="right"). x is one row for all values, or
        has the leading dimensions of `values`. sorter: the order of x (`argsort`) if it is not
        sorted."""

    def searchsorted_(
        self,
        values: Operand,
        *,
        out_int32: builtins.bool = False,
        right: builtins.bool = False,
        side: str | None = None,
        sorter: Array | None = None,
    ) -> Tensor:
        """`searchsorted`, with the result put into this tensor. Returns it."""

    @overload
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """The slice at an index along a dimension, without it; below 0 it counts from the end."""

    @overload
    def select(self, *, axis: builtins.int, index: builtins.int) -> Tensor:
        """The slice at an index along a dimension, without it; below 0 it counts from the end."""

    @overload
    def select_(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """`select`, with the result put into this tensor. Returns it."""

    @overload
    def select_(self, *, axis: builtins.int, index: builtins.int) -> Tensor:
        """`select`, with the result put into this tensor. Returns it."""

    @overload
    def select_scatter(self, src: Array, dim: builtins.int, index: builtins.int) -> Tensor:
        """x with `src` in the place of the slice at an index along a dimension."""

    @overload
    def select_scatter(self, src: Array, *, axis: builtins.int, index: builtins.int) -> Tensor:
        """x with `src` in the place of the slice at an index along a dimension."""

    @overload
    def select_scatter_(self, src: Array, dim: builtins.int, index: builtins.int) -> Tensor:
        """`select_scatter`, with the result put into this tensor. Returns it."""

    @overload
    def select_scatter_(self, src: Array, *, axis: builtins.int, index: builtins.int) -> Tensor:
        """`select_scatter`, with the result put into this tensor. Returns it."""

    def selu(self) -> Tensor:
        """`elu` with the two constants that keep mean 0 and variance 1."""

    def selu_(self) -> Tensor:
        """`selu`, with the result put into this tensor. Returns it."""

    def sgn(self) -> Tensor:
        """x / abs(x), and 0 of 0; of real numbers, the sign."""

    def sgn_(self) -> Tensor:
        """`sgn`, with the result put into this tensor. Returns it."""

    def shrink(self, regions: Sequence[tuple[Size, Size] | None]) -> Tensor:
        """The elements from `start` up to `stop`, a pair per dimension; None keeps a dimension."""

    def shrink_to(self, *_shape: Any, shape: Any = ..., size: Any = ...) -> Tensor:
        """The first elements of each dimension, of a shape; None keeps a size."""

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""

    def sigmoid_(self) -> Tensor:
        """`sigmoid`, with the result put into this tensor. Returns it."""

    def sign(self) -> Tensor:
        """-1, 0 or 1 as x is below, at or above 0; NaN of NaN."""

    def sign_(self) -> Tensor:
        """`sign`, with the result put into this tensor. Returns it."""

    def signbit(self) -> Tensor:
        """Whether the sign is minus: of -0.0 too, and of a NaN that carries it; of integers x <
        0."""

    def signbit_(self) -> Tensor:
        """`signbit`, with the result put into this tensor. Returns it."""

    def silu(self) -> Tensor:
        """x * sigmoid(x)."""

    def silu_(self) -> Tensor:
        """`silu`, with the result put into this tensor. Returns it."""

    def swish(self) -> Tensor:
        """x * sigmoid(x)."""

    def swish_(self) -> Tensor:
        """`swish`, with the result put into this tensor. Returns it."""

    def sin(self) -> Tensor:
        """The sine of x radians, in floating point."""

    def sin_(self) -> Tensor:
        """`sin`, with the result put into this tensor. Returns it."""

    def sinc(self) -> Tensor:
        """sin(pi x) / (pi x); 1 at 0."""

    def sinc_(self) -> Tensor:
        """`sinc`, with the result put into this tensor. Returns it."""

    def sinh(self) -> Tensor:
        """The hyperbolic sine, exact near 0: there, with t = expm1(x), it is (t + t/(t + 1)) /
        2."""

    def sinh_(self) -> Tensor:
        """`sinh`, with the result put into this tensor. Returns it."""

    def slice_scatter(
        self,
        src: Array,
        dim: builtins.int = 0,
        start: Size | None = None,
        end: Size | None = None,
        step: builtins.int = 1,
        *,
        axis: builtins.int = ...,
        stop: Size | None = ...,
    ) -> Tensor:
        """x with `src` in the place of the elements start:end:step along a dimension."""

    def slice_scatter_(
        self,
        src: Array,
        dim: builtins.int = 0,
        start: Size | None = None,
        end: Size | None = None,
        step: builtins.int = 1,
        *,
        axis: builtins.int = ...,
        stop: Size | None = ...,
    ) -> Tensor:
        """`slice_scatter`, with the result put into this tensor. Returns it."""

    def slogdet(self) -> SlogdetResult[Tensor]:
        """(sign, logabsdet): the determinants are sign * exp(logabsdet); of complex matrices the
        sign is a complex number of size 1. 0 and -inf of a singular matrix, whose derivative is inf
        or NaN."""

    def smooth_l1_loss(
        self, target: Array, reduction: str = "mean", beta: builtins.float = 1.0
    ) -> Tensor:
        """Of the difference d: d^2 / (2 beta) where |d| < beta, else |d| - beta/2; with beta=0,
        |d|. x and target have one shape."""

    def smooth_l1_loss_(
        self, target: Array, reduction: str = "mean", beta: builtins.float = 1.0
    ) -> Tensor:
        """`smooth_l1_loss`, with the result put into this tensor. Returns it."""

    def soft_margin_loss(self, target: Array, reduction: str = "mean") -> Tensor:
        """log(1 + exp(-target * x)), for targets 1 and -1."""

    def soft_margin_loss_(self, target: Array, reduction: str = "mean") -> Tensor:
        """`soft_margin_loss`, with the result put into this tensor. Returns it."""

    def softmax(
        self, dim: builtins.int = -1, dtype: DTypeLike | None = None, *, axis: builtins.int = ...
    ) -> Tensor:
        """exp(x) divided by its sum along a dimension: positive numbers that add up to 1."""

    def softmax_(
        self, dim: builtins.int = -1, dtype: DTypeLike | None = None, *, axis: builtins.int = ...
    ) -> Tensor:
        """`softmax`, with the result put into this tensor. Returns it."""

    def softmin(
        self, dim: builtins.int = -1, dtype: DTypeLike | None = None, *, axis: builtins.int = ...
    ) -> Tensor:
        """`softmax` of -x. dtype: what -x is cast to first."""

    def softmin_(
        self, dim: builtins.int = -1, dtype: DTypeLike | None = None, *, axis: builtins.int = ...
    ) -> Tensor:
        """`softmin`, with the result put into this tensor. Returns it."""

    def softplus(self, beta: builtins.float = 1.0, threshold: builtins.float = 20.0) -> Tensor:
        """log(1 + exp(beta * x)) / beta; x itself where beta * x is above `threshold`."""

    def softplus_(self, beta: builtins.float = 1.0, threshold: builtins.float = 20.0) -> Tensor:
        """`softplus`, with the result put into this tensor. Returns it."""

    def softshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """x moved towards 0 by lambd, and 0 from -lambd to lambd; NaN stays NaN."""

    def softshrink_(self, lambd: builtins.float = 0.5) -> Tensor:
        """`softshrink`, with the result put into this tensor. Returns it."""

    def softsign(self) -> Tensor:
        """x / (1 + |x|)."""

    def softsign_(self) -> Tensor:
        """`softsign`, with the result put into this tensor. Returns it."""

    def sort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        *,
        stable: builtins.bool = True,
        axis: builtins.int = ...,
    ) -> ValuesIndices[Tensor]:
        """(values, indices): the elements in order along a dimension, and where each stood,
        int64."""

    def sparse_categorical_crossentropy(
        self,
        y: Array,
        ignore_index: builtins.int = -1,
        label_smoothing: builtins.float = 0.0,
        reduction: str = "mean",
    ) -> Tensor:
        """`cross_entropy` of scores x (.., classes) and class ids y of the shape of x without the
        last dimension; samples with `ignore_index` do not count."""

    @overload
    def split(
        self, split_size: Any, dim: builtins.int = 0, *, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """The tensor in parts along a dimension: of `split_size` each (the last may be smaller), or
        of the sizes in a list, which add up to the dimension's."""

    @overload
    def split(
        self, *, split_size_or_sections: Any, dim: builtins.int = 0, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """The tensor in parts along a dimension: of `split_size` each (the last may be smaller), or
        of the sizes in a list, which add up to the dimension's."""

    def split_with_sizes(
        self,
        split_sizes: Sequence[builtins.int],
        dim: builtins.int = 0,
        *,
        axis: builtins.int = ...,
    ) -> tuple[Tensor, ...]:
        """Parts of the given sizes along a dimension, which add up to it."""

    def sqrt(self) -> Tensor:
        """The square root; NaN below 0, in floating point."""

    def sqrt_(self) -> Tensor:
        """`sqrt`, with the result put into this tensor. Returns it."""

    def square(self) -> Tensor:
        """x * x, in the dtype of x; int64 of a bool."""

    def square_(self) -> Tensor:
        """`square`, with the result put into this tensor. Returns it."""

    def squeeze(self, dim: Any = None, *, axis: Any = ...) -> Tensor:
        """Without the dimensions of size 1: all of them, or those of `dim` (an int or several) that
        have size 1."""

    def squeeze_(self, dim: Any = None, *, axis: Any = ...) -> Tensor:
        """`squeeze`, with the result put into this tensor. Returns it."""

    def stack(
        *_tensors: Any,
        dim: builtins.int | None = None,
        tensors: Any = ...,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """Tensors of one shape joined along a new dimension (the first unless given)."""

    def stack_(
        *_tensors: Any,
        dim: builtins.int | None = None,
        tensors: Any = ...,
        axis: builtins.int | None = ...,
    ) -> Tensor:
        """`stack`, with the result put into this tensor. Returns it."""

    def std(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.int | builtins.float | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The square root of `var`."""

    def std_(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.int | builtins.float | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`std`, with the result put into this tensor. Returns it."""

    def std_mean(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.int | builtins.float | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """(standard deviation, mean): `std` and `mean` of the same."""

    def stft(
        self,
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
        """The short-time Fourier transform of signals (t,) or (batch, t): (.., frequencies,
        frames)."""

    def stft_(
        self,
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
        """`stft`, with the result put into this tensor. Returns it."""

    def sub(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """x - alpha * other."""

    def sub_(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """`sub`, with the result put into this tensor. Returns it."""

    def subtract(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """x - alpha * other."""

    def subtract_(self, other: Operand, *, alpha: Operand = 1) -> Tensor:
        """`subtract`, with the result put into this tensor. Returns it."""

    def sum(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The sum; 0 of nothing."""

    def sum_(
        self,
        dim: Any = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`sum`, with the result put into this tensor. Returns it."""

    def sum_to_size(self, *_size: Any, size: Any = ..., shape: Any = ...) -> Tensor:
        """Summed over the dimensions that broadcasting from `size` would have stretched; to ()
        always as `sum` does it, in whose dtype the result then is."""

    def sum_to_size_(self, *_size: Any, size: Any = ..., shape: Any = ...) -> Tensor:
        """`sum_to_size`, with the result put into this tensor. Returns it."""

    def svd(
        self, some: builtins.bool = True, compute_uv: builtins.bool = True
    ) -> TensorSVDResult[Tensor]:
        """(U, S, V) with x == U @ diag(S) @ V.mH, as `linalg.svd` with full_matrices=not some;
        without `compute_uv`, U and V are zeros."""

    @overload
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    @overload
    def swapdims(self, *, axis0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    @overload
    def swapdims(self, dim0: builtins.int, *, axis1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    @overload
    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """`swapdims`, with the result put into this tensor. Returns it."""

    @overload
    def swapdims_(self, *, axis0: builtins.int, dim1: builtins.int) -> Tensor:
        """`swapdims`, with the result put into this tensor. Returns it."""

    @overload
    def swapdims_(self, dim0: builtins.int, *, axis1: builtins.int) -> Tensor:
        """`swapdims`, with the result put into this tensor. Returns it."""

    def t(self) -> Tensor:
        """The transpose of a matrix; a vector or a number as it is."""

    def t_(self) -> Tensor:
        """`t`, with the result put into this tensor. Returns it."""

    def take(self, index: Array) -> Tensor:
        """The elements of the flattened tensor at indices, in the shape of the indices."""

    def take_(self, index: Array) -> Tensor:
        """`take`, with the result put into this tensor. Returns it."""

    def take_along_dim(
        self, indices: Array, dim: builtins.int | None = None, *, axis: builtins.int | None = ...
    ) -> Tensor:
        """The elements at `indices` along a dimension, the other dimensions broadcast; without
        `dim` from the flattened tensor."""

    def take_along_dim_(
        self, indices: Array, dim: builtins.int | None = None, *, axis: builtins.int | None = ...
    ) -> Tensor:
        """`take_along_dim`, with the result put into this tensor. Returns it."""

    def take_along_axis(
        self, indices: Array, dim: builtins.int | None = None, *, axis: builtins.int | None = ...
    ) -> Tensor:
        """The elements at `indices` along a dimension, the other dimensions broadcast; without
        `dim` from the flattened tensor."""

    def take_along_axis_(
        self, indices: Array, dim: builtins.int | None = None, *, axis: builtins.int | None = ...
    ) -> Tensor:
        """`take_along_axis`, with the result put into this tensor. Returns it."""

    def tan(self) -> Tensor:
        """The tangent of x radians, in floating point."""

    def tan_(self) -> Tensor:
        """`tan`, with the result put into this tensor. Returns it."""

    def tanh(self) -> Tensor:
        """The hyperbolic tangent, in floating point."""

    def tanh_(self) -> Tensor:
        """`tanh`, with the result put into this tensor. Returns it."""

    def tanhshrink(self) -> Tensor:
        """x - tanh(x)."""

    def tanhshrink_(self) -> Tensor:
        """`tanhshrink`, with the result put into this tensor. Returns it."""

    @overload
    def tensor_split(
        self, indices_or_sections: Any, dim: builtins.int = 0, *, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """Parts along a dimension: `indices_or_sections` of them, the first of one element more
        where that does not divide; or parts that end where a list of indices says."""

    @overload
    def tensor_split(
        self, *, indices: Any, dim: builtins.int = 0, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """Parts along a dimension: `indices_or_sections` of them, the first of one element more
        where that does not divide; or parts that end where a list of indices says."""

    @overload
    def tensor_split(
        self, *, sections: Any, dim: builtins.int = 0, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """Parts along a dimension: `indices_or_sections` of them, the first of one element more
        where that does not divide; or parts that end where a list of indices says."""

    @overload
    def tensor_split(
        self, *, tensor_indices_or_sections: Any, dim: builtins.int = 0, axis: builtins.int = ...
    ) -> tuple[Tensor, ...]:
        """Parts along a dimension: `indices_or_sections` of them, the first of one element more
        where that does not divide; or parts that end where a list of indices says."""

    def tensordot(
        self, other: Array, dims: Axes = 2, *, dim: Axes = ..., axes: Axes = ..., axis: Axes = ...
    ) -> Tensor:
        """The sum over pairs of axes of a product: `dims` pairs the last n axes of x with the first
        n of `other`, or lists the axes of each: `([1, 2], [0, 1])`."""

    def tensordot_(
        self, other: Array, dims: Axes = 2, *, dim: Axes = ..., axes: Axes = ..., axis: Axes = ...
    ) -> Tensor:
        """`tensordot`, with the result put into this tensor. Returns it."""

    def threshold(self, threshold: builtins.float, value: builtins.float) -> Tensor:
        """x where it is above `threshold`, else `value`, in the dtype of x; NaN stays NaN."""

    def threshold_(self, threshold: builtins.float, value: builtins.float) -> Tensor:
        """`threshold`, with the result put into this tensor. Returns it."""

    def tile(self, *_repeats: Any, repeats: Any = ..., sizes: Any = ..., dims: Any = ...) -> Tensor:
        """As `repeat`, but fewer numbers than dimensions are for the last dimensions."""

    def tile_(
        self, *_repeats: Any, repeats: Any = ..., sizes: Any = ..., dims: Any = ...
    ) -> Tensor:
        """`tile`, with the result put into this tensor. Returns it."""

    def topk(
        self,
        k: builtins.int,
        dim: builtins.int = -1,
        largest: builtins.bool = True,
        sorted: builtins.bool = True,
        *,
        axis: builtins.int = ...,
    ) -> ValuesIndices[Tensor]:
        """(values, indices): the k greatest (or least) elements along a dimension, in order,
        whatever `sorted` says; of equals those that stand first."""

    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix; integers and bools are summed in int64."""

    def trace_(self) -> Tensor:
        """`trace`, with the result put into this tensor. Returns it."""

    @overload
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    @overload
    def transpose(self, *, axis0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    @overload
    def transpose(self, dim0: builtins.int, *, axis1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    @overload
    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """`transpose`, with the result put into this tensor. Returns it."""

    @overload
    def transpose_(self, *, axis0: builtins.int, dim1: builtins.int) -> Tensor:
        """`transpose`, with the result put into this tensor. Returns it."""

    @overload
    def transpose_(self, dim0: builtins.int, *, axis1: builtins.int) -> Tensor:
        """`transpose`, with the result put into this tensor. Returns it."""

    @overload
    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    @overload
    def swapaxes(self, *, axis0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    @overload
    def swapaxes(self, dim0: builtins.int, *, axis1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""

    @overload
    def swapaxes_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """`swapaxes`, with the result put into this tensor. Returns it."""

    @overload
    def swapaxes_(self, *, axis0: builtins.int, dim1: builtins.int) -> Tensor:
        """`swapaxes`, with the result put into this tensor. Returns it."""

    @overload
    def swapaxes_(self, dim0: builtins.int, *, axis1: builtins.int) -> Tensor:
        """`swapaxes`, with the result put into this tensor. Returns it."""

    def trapezoid(
        self,
        x: Array | None = None,
        *,
        dx: Operand | None = None,
        dim: builtins.int = -1,
        input: Array | None = ...,
        A: Array | None = ...,
        axis: builtins.int = ...,
    ) -> Tensor:
        """The area under y along a dimension by the trapezoidal rule, its points at x, or `dx`
        apart (1 unless given); 0 of fewer than two points."""

    def trapezoid_(
        self,
        x: Array | None = None,
        *,
        dx: Operand | None = None,
        dim: builtins.int = -1,
        input: Array | None = ...,
        A: Array | None = ...,
        axis: builtins.int = ...,
    ) -> Tensor:
        """`trapezoid`, with the result put into this tensor. Returns it."""

    def trapz(
        self,
        x: Array | None = None,
        *,
        dx: Operand | None = None,
        dim: builtins.int = -1,
        input: Array | None = ...,
        A: Array | None = ...,
        axis: builtins.int = ...,
    ) -> Tensor:
        """The area under y along a dimension by the trapezoidal rule, its points at x, or `dx`
        apart (1 unless given); 0 of fewer than two points."""

    def trapz_(
        self,
        x: Array | None = None,
        *,
        dx: Operand | None = None,
        dim: builtins.int = -1,
        input: Array | None = ...,
        A: Array | None = ...,
        axis: builtins.int = ...,
    ) -> Tensor:
        """`trapz`, with the result put into this tensor. Returns it."""

    @staticmethod
    def tri(
        r: Any,
        c: Any = None,
        diagonal: builtins.int = 0,
        *,
        dtype: DTypeLike | None = None,
        k: builtins.int = ...,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A matrix of r rows and c columns (r unless given): 1 on and below a diagonal, 0 above."""

    def triangular_solve(
        self,
        A: Array,
        upper: builtins.bool = True,
        transpose: builtins.bool = False,
        unitriangular: builtins.bool = False,
    ) -> TriangularSolveResult[Tensor]:
        """(X, A) with A @ X == x, or A.T @ X == x with `transpose`, for a triangular matrix A of
        which the other triangle is not read; batches broadcast."""

    def tril(self, diagonal: builtins.int = 0, *, k: builtins.int = ...) -> Tensor:
        """The last two dimensions with 0 above the given diagonal."""

    def tril_(self, diagonal: builtins.int = 0, *, k: builtins.int = ...) -> Tensor:
        """`tril`, with the result put into this tensor. Returns it."""

    @staticmethod
    def tril_indices(
        row: builtins.int,
        col: builtins.int,
        offset: builtins.int = 0,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """The indices of the elements on and below a diagonal of a matrix of `row` rows and `col`
        columns: a row of row numbers, and a row of column numbers, int64."""

    def triplet_margin_loss(
        self,
        positive: Array,
        negative: Array,
        margin: builtins.float = 1.0,
        p: builtins.float = 2.0,
        eps: builtins.float = 1e-06,
        swap: builtins.bool = False,
        reduction: str = "mean",
        *,
        input: builtins.float = ...,
    ) -> Tensor:
        """max(0, d(anchor, positive) - d(anchor, negative) + margin) of `pairwise_distance`s."""

    def triplet_margin_loss_(
        self,
        positive: Array,
        negative: Array,
        margin: builtins.float = 1.0,
        p: builtins.float = 2.0,
        eps: builtins.float = 1e-06,
        swap: builtins.bool = False,
        reduction: str = "mean",
        *,
        input: builtins.float = ...,
    ) -> Tensor:
        """`triplet_margin_loss`, with the result put into this tensor. Returns it."""

    def triu(self, diagonal: builtins.int = 0, *, k: builtins.int = ...) -> Tensor:
        """The last two dimensions with 0 below the given diagonal."""

    def triu_(self, diagonal: builtins.int = 0, *, k: builtins.int = ...) -> Tensor:
        """`triu`, with the result put into this tensor. Returns it."""

    @staticmethod
    def triu_indices(
        row: builtins.int,
        col: builtins.int,
        offset: builtins.int = 0,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """The indices of the elements on and above a diagonal of a matrix of `row` rows and `col`
        columns: a row of row numbers, and a row of column numbers, int64."""

    def trunc(self) -> Tensor:
        """x rounded towards zero to a whole number; integers stay as they are."""

    def trunc_(self) -> Tensor:
        """`trunc`, with the result put into this tensor. Returns it."""

    def fix(self) -> Tensor:
        """x rounded towards zero to a whole number; integers stay as they are."""

    def fix_(self) -> Tensor:
        """`fix`, with the result put into this tensor. Returns it."""

    def type_as(self, other: Array) -> Tensor:
        """x in the dtype of another tensor."""

    def type_as_(self, other: Array) -> Tensor:
        """`type_as`, with the result put into this tensor. Returns it."""

    def unbind(self, dim: builtins.int = 0, *, axis: builtins.int = ...) -> tuple[Tensor, ...]:
        """The slices along a dimension, without it."""

    def unstack(self, dim: builtins.int = 0, *, axis: builtins.int = ...) -> tuple[Tensor, ...]:
        """The slices along a dimension, without it."""

    @overload
    def unflatten(self, dim: builtins.int, sizes: Sequence[Size]) -> Tensor:
        """One dimension split into several of the given sizes, of which one may be -1."""

    @overload
    def unflatten(self, *, axis: builtins.int, sizes: Sequence[Size]) -> Tensor:
        """One dimension split into several of the given sizes, of which one may be -1."""

    @overload
    def unflatten_(self, dim: builtins.int, sizes: Sequence[Size]) -> Tensor:
        """`unflatten`, with the result put into this tensor. Returns it."""

    @overload
    def unflatten_(self, *, axis: builtins.int, sizes: Sequence[Size]) -> Tensor:
        """`unflatten`, with the result put into this tensor. Returns it."""

    @overload
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """All windows of `size` elements along a dimension, `step` apart; the elements of a window
        are the new last dimension."""

    @overload
    def unfold(self, dimension: builtins.int, *, shape: builtins.int, step: builtins.int) -> Tensor:
        """All windows of `size` elements along a dimension, `step` apart; the elements of a window
        are the new last dimension."""

    @overload
    def unfold_(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """`unfold`, with the result put into this tensor. Returns it."""

    @overload
    def unfold_(
        self, dimension: builtins.int, *, shape: builtins.int, step: builtins.int
    ) -> Tensor:
        """`unfold`, with the result put into this tensor. Returns it."""

    @staticmethod
    def uniform(
        *_size: Any,
        low: builtins.float = 0.0,
        high: builtins.float = 1.0,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        generator_key: builtins.int | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Uniform from `low` up to `high`."""

    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = ...,
    ) -> Any:
        """The different elements in ascending order (whatever `sorted` says), or along `dim` the
        different slices; with return_inverse also, for each element, which of them it is, and with
        return_counts how often each stands, int64."""

    def unique_consecutive(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = ...,
    ) -> Any:
        """As `unique`, of runs: elements (or slices) that equal the one before them are left
        out."""

    @overload
    def unravel_index(self, shape: Any) -> tuple[Tensor, ...]:
        """Places in a flattened tensor of a shape as its coordinates, one tensor for each
        dimension."""

    @overload
    def unravel_index(self, *, size: Any) -> tuple[Tensor, ...]:
        """Places in a flattened tensor of a shape as its coordinates, one tensor for each
        dimension."""

    @overload
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """With a dimension of size 1 more, at `dim` of the result."""

    @overload
    def unsqueeze(self, *, axis: builtins.int) -> Tensor:
        """With a dimension of size 1 more, at `dim` of the result."""

    @overload
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """`unsqueeze`, with the result put into this tensor. Returns it."""

    @overload
    def unsqueeze_(self, *, axis: builtins.int) -> Tensor:
        """`unsqueeze`, with the result put into this tensor. Returns it."""

    def var(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.int | builtins.float | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """The mean square distance from the mean, the sum of squares divided by `count -
        correction`."""

    def var_(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.int | builtins.float | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> Tensor:
        """`var`, with the result put into this tensor. Returns it."""

    def var_mean(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.int | builtins.float | None = None,
        axis: Any = ...,
        keepdims: builtins.bool = ...,
    ) -> tuple[Tensor, Tensor]:
        """(variance, mean): `var` and `mean` of the same."""

    def vdot(self, other: Array) -> Tensor:
        """The sum of the products of two vectors."""

    def vdot_(self, other: Array) -> Tensor:
        """`vdot`, with the result put into this tensor. Returns it."""

    def vecdot(self, y: Array, *, dim: builtins.int = -1, axis: builtins.int = ...) -> Tensor:
        """The sum along one axis of the product; the other axes broadcast."""

    def view(
        self, *_shape: Any, dtype: DTypeLike | None = None, shape: Any = ..., size: Any = ...
    ) -> Tensor:
        """The elements in another shape, as `reshape`; or, given a dtype, their bytes read as that,
        as `bitcast`."""

    def view_(
        self, *_shape: Any, dtype: DTypeLike | None = None, shape: Any = ..., size: Any = ...
    ) -> Tensor:
        """`view`, with the result put into this tensor. Returns it."""

    def view_as(self, other: Array) -> Tensor:
        """The elements in the shape of `other`."""

    def view_as_(self, other: Array) -> Tensor:
        """`view_as`, with the result put into this tensor. Returns it."""

    def reshape_as(self, other: Array) -> Tensor:
        """The elements in the shape of `other`."""

    def reshape_as_(self, other: Array) -> Tensor:
        """`reshape_as`, with the result put into this tensor. Returns it."""

    @overload
    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along the first dimension: so many equal ones, or ending at a list of indices."""

    @overload
    def vsplit(self, *, indices: Any) -> tuple[Tensor, ...]:
        """Parts along the first dimension: so many equal ones, or ending at a list of indices."""

    @overload
    def vsplit(self, *, sections: Any) -> tuple[Tensor, ...]:
        """Parts along the first dimension: so many equal ones, or ending at a list of indices."""

    @overload
    def vsplit(self, *, tensor_indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Parts along the first dimension: so many equal ones, or ending at a list of indices."""

    def vstack(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """Tensors joined along their first dimension, those of one dimension as rows."""

    def vstack_(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """`vstack`, with the result put into this tensor. Returns it."""

    def row_stack(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """Tensors joined along their first dimension, those of one dimension as rows."""

    def row_stack_(*_tensors: Any, tensors: Any = ...) -> Tensor:
        """`row_stack`, with the result put into this tensor. Returns it."""

    @overload
    def where(self, first: Operand, second: Operand) -> Tensor:
        """`condition.where(x, y)` of a bool tensor; `x.where(condition, y)` of any other: x where
        the condition holds, else y."""

    @overload
    def where(self, *, condition: Operand, second: Operand) -> Tensor:
        """`condition.where(x, y)` of a bool tensor; `x.where(condition, y)` of any other: x where
        the condition holds, else y."""

    @overload
    def where(self, first: Operand, *, other: Operand) -> Tensor:
        """`condition.where(x, y)` of a bool tensor; `x.where(condition, y)` of any other: x where
        the condition holds, else y."""

    @overload
    def where_(self, first: Operand, second: Operand) -> Tensor:
        """`where`, with the result put into this tensor. Returns it."""

    @overload
    def where_(self, *, condition: Operand, second: Operand) -> Tensor:
        """`where`, with the result put into this tensor. Returns it."""

    @overload
    def where_(self, first: Operand, *, other: Operand) -> Tensor:
        """`where`, with the result put into this tensor. Returns it."""

    def xlogy(self, other: Operand) -> Tensor:
        """x * log(other), which is 0 where x is 0 unless `other` is NaN."""

    def xlogy_(self, other: Operand) -> Tensor:
        """`xlogy`, with the result put into this tensor. Returns it."""

    @staticmethod
    def zeros(
        *_size: Any,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A tensor of zeros. (`empty` is zeros too: there is no memory without values.)"""

    @staticmethod
    def empty(
        *_size: Any,
        dtype: DTypeLike | None = None,
        size: Any = ...,
        shape: Any = ...,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A tensor of zeros. (`empty` is zeros too: there is no memory without values.)"""

    def zeros_like(
        self,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Zeros in the shape of x, and of its dtype unless one is given."""

    def empty_like(
        self,
        *,
        dtype: DTypeLike | None = None,
        device: str | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Zeros in the shape of x, and of its dtype unless one is given."""

    def float(self) -> Tensor:
        """This tensor as float32."""

    def double(self) -> Tensor:
        """This tensor as float64."""

    def half(self) -> Tensor:
        """This tensor as float16."""

    def bfloat16(self) -> Tensor:
        """This tensor as bfloat16."""

    def cfloat(self) -> Tensor:
        """This tensor as complex64."""

    def cdouble(self) -> Tensor:
        """This tensor as complex128."""

    def bool(self) -> Tensor:
        """This tensor as bool."""

    def byte(self) -> Tensor:
        """This tensor as uint8."""

    def char(self) -> Tensor:
        """This tensor as int8."""

    def short(self) -> Tensor:
        """This tensor as int16."""

    def int(self) -> Tensor:
        """This tensor as int32."""

    def long(self) -> Tensor:
        """This tensor as int64."""

    def zero_(self) -> Tensor:
        """Put 0 everywhere into this tensor. Returns it."""

    def fill_(self, value: Any) -> Tensor:
        """Put one value (a number or a 0-d tensor), cast, everywhere into this tensor. Returns
        it."""

    def copy_(self, src: Any, non_blocking: builtins.bool = False) -> Tensor:
        """Put the values of another tensor or array, cast, broadcast and on this tensor's device,
        into this tensor, whatever `non_blocking` says. Returns it."""

    def uniform_(self, low: builtins.float = 0.0, high: builtins.float = 1.0) -> Tensor:
        """Put uniform random numbers from `low` up to `high` into this tensor. Returns it."""

    def normal_(self, mean: builtins.float = 0.0, std: builtins.float = 1.0) -> Tensor:
        """Put normal random numbers of a mean and a deviation into this tensor. Returns it."""

    def exponential_(self, lambd: builtins.float = 1.0) -> Tensor:
        """Put random waiting times of the rate `lambd` into this tensor. Returns it."""

    def bernoulli_(self, p: Any = 0.5) -> Tensor:
        """Put 1 with the probability p (a number, or a tensor of them), else 0, into this tensor.
        Returns it."""

    def random_(self, low: builtins.int, high: builtins.int | None = None) -> Tensor:
        """Put random integers from `low` up to `high`, which is not one of them, into this tensor;
        of one number, from 0 up to it. Returns it."""

    def fill_diagonal_(self, fill_value: builtins.float) -> Tensor:
        """Put a number into the diagonal of this tensor, of two dimensions, or of more that are
        equal. Returns it."""

    def __add__(self, other: Operand, /) -> Tensor:
        """x + alpha * other."""

    def __radd__(self, other: Operand, /) -> Tensor:
        """`add` with the operands swapped."""

    def __iadd__(self, other: Operand, /) -> Tensor:
        """`add_`."""

    def __sub__(self, other: Operand, /) -> Tensor:
        """x - alpha * other."""

    def __rsub__(self, other: Operand, /) -> Tensor:
        """`sub` with the operands swapped."""

    def __isub__(self, other: Operand, /) -> Tensor:
        """`sub_`."""

    def __mul__(self, other: Operand, /) -> Tensor:
        """x * other."""

    def __rmul__(self, other: Operand, /) -> Tensor:
        """`mul` with the operands swapped."""

    def __imul__(self, other: Operand, /) -> Tensor:
        """`mul_`."""

    def __truediv__(self, other: Operand, /) -> Tensor:
        """x / other, in floating point (integers give float32). rounding_mode="floor" is `//` and
        "trunc" rounds towards zero; both keep integers."""

    def __rtruediv__(self, other: Operand, /) -> Tensor:
        """`div` with the operands swapped."""

    def __itruediv__(self, other: Operand, /) -> Tensor:
        """`div_`."""

    def __floordiv__(self, other: Operand, /) -> Tensor:
        """The quotient rounded down, `//`."""

    def __rfloordiv__(self, other: Operand, /) -> Tensor:
        """`floor_divide` with the operands swapped."""

    def __ifloordiv__(self, other: Operand, /) -> Tensor:
        """`floor_divide_`."""

    def __mod__(self, other: Operand, /) -> Tensor:
        """What `//` leaves, with the sign of `other`: `%`."""

    def __rmod__(self, other: Operand, /) -> Tensor:
        """`remainder` with the operands swapped."""

    def __imod__(self, other: Operand, /) -> Tensor:
        """`remainder_`."""

    def __pow__(self, exponent: Operand, /) -> Tensor:
        """x to a power, `**`."""

    def __rpow__(self, exponent: Operand, /) -> Tensor:
        """`pow` with the operands swapped."""

    def __ipow__(self, exponent: Operand, /) -> Tensor:
        """`pow_`."""

    def __matmul__(self, other: Array, /) -> Tensor:
        """The matrix product `@`: (.., m, k) @ (.., k, n) -> (.., m, n), leading dimensions
        broadcast."""

    def __rmatmul__(self, other: Array, /) -> Tensor:
        """`matmul` with the operands swapped."""

    def __imatmul__(self, other: Array, /) -> Tensor:
        """`matmul_`."""

    def __and__(self, other: Operand, /) -> Tensor:
        """The bits that both have, `&`."""

    def __rand__(self, other: Operand, /) -> Tensor:
        """`bitwise_and` with the operands swapped."""

    def __iand__(self, other: Operand, /) -> Tensor:
        """`bitwise_and_`."""

    def __or__(self, other: Operand, /) -> Tensor:
        """The bits that one or both have, `|`."""

    def __ror__(self, other: Operand, /) -> Tensor:
        """`bitwise_or` with the operands swapped."""

    def __ior__(self, other: Operand, /) -> Tensor:
        """`bitwise_or_`."""

    def __xor__(self, other: Operand, /) -> Tensor:
        """The bits that exactly one has, `^`."""

    def __rxor__(self, other: Operand, /) -> Tensor:
        """`bitwise_xor` with the operands swapped."""

    def __ixor__(self, other: Operand, /) -> Tensor:
        """`bitwise_xor_`."""

    def __lshift__(self, other: Operand, /) -> Tensor:
        """x with its bits moved up by `other` places, `<<`; a shift by the width or more, or by
        less than 0, gives 0."""

    def __rlshift__(self, other: Operand, /) -> Tensor:
        """`bitwise_left_shift` with the operands swapped."""

    def __ilshift__(self, other: Operand, /) -> Tensor:
        """`bitwise_left_shift_`."""

    def __rshift__(self, other: Operand, /) -> Tensor:
        """x with its bits moved down by `other` places, `>>`, keeping the sign; a shift by the
        width or more, or by less than 0, gives 0, or -1 of a negative number."""

    def __rrshift__(self, other: Operand, /) -> Tensor:
        """`bitwise_right_shift` with the operands swapped."""

    def __irshift__(self, other: Operand, /) -> Tensor:
        """`bitwise_right_shift_`."""

    def __eq__(self, other: Operand, /) -> Tensor:  # type: ignore[override]  # bools, where object gives one
        """Whether x == other, as bool."""

    def __ne__(self, other: Operand, /) -> Tensor:  # type: ignore[override]  # bools, where object gives one
        """Whether x != other, as bool."""

    def __lt__(self, other: Operand, /) -> Tensor:
        """Whether x < other, as bool."""

    def __le__(self, other: Operand, /) -> Tensor:
        """Whether x <= other, as bool."""

    def __gt__(self, other: Operand, /) -> Tensor:
        """Whether x > other, as bool."""

    def __ge__(self, other: Operand, /) -> Tensor:
        """Whether x >= other, as bool."""

    def __neg__(self) -> Tensor:
        """-x."""

    def __pos__(self) -> Tensor:
        """x itself, `+x`."""

    def __invert__(self) -> Tensor:
        """x with every bit turned over, `~`; of bools: not."""

    def __abs__(self) -> Tensor:
        """The magnitude of x; the least integer, which has none, stays as it is."""
