"""One call of every public function: which tensors it takes, and what stands beside them.

A *call* is written for any library and any dtype: `f` is the function, of treadle or of PyTorch,
and the tensors have the dtype that is tried, but for indices and masks. `tools/dtypes.py` and the
tests of dtypes and views make them. A name is `softmax` (a method), `treadle.take` (where the
namespace has another function than the method) or `linalg.solve`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import treadle
from treadle import Tensor
from treadle.graph.public import FFT, LINALG, METHODS, NAMESPACE, Public
from treadle.ir.dtype import DType

_DRAWN = np.random.default_rng(31)


def _some(*shape: int) -> np.ndarray:
    """Quarters from -2 to 2, of which no two are equal where there are few."""
    count = int(np.prod(shape))
    steps = np.linspace(-8, 8, count).round() if count > 17 else np.arange(count) - count // 2
    return _DRAWN.permutation(steps).reshape(shape) / 4


def _regular(*shape: int) -> np.ndarray:
    """Matrices that are well conditioned, in integers, too."""
    return _some(*shape) / 4 + 2 * np.eye(shape[-1])


X = _some(3, 4)
# what a call is made with, by name, as it is in floating point; integers get twice of it, rounded
OPERANDS: dict[str, np.ndarray] = {
    "x": X,
    "y": np.where(_some(3, 4) > 0, 1.5, -0.5) + _some(3, 4) / 8,  # never 0
    "z": _some(3, 4),
    "p": np.abs(_some(3, 4)) + 0.5,  # positive
    "u": _some(3, 4) * 0.375,  # between -1 and 1
    "q": (_some(3, 4) + 3.0) / 6.0,  # probabilities
    "b": np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0]]),
    "v": _some(4),
    "w": _some(3),
    "o": _some(3),
    "slopes": np.array([0.25, -0.5, 1.0, 0.5]),
    "scores": _some(3, 5),
    "x3": _some(1, 2, 8),
    "x4": _some(1, 2, 6, 5),
    "x5": _some(1, 2, 4, 4, 4),
    "w3": _some(3, 2, 3),
    "w4": _some(3, 2, 2, 2),
    "w5": _some(2, 2, 2, 2, 2),
    "t3": _some(2, 3, 3),
    "t4": _some(2, 3, 2, 2),
    "t5": _some(2, 2, 2, 2, 2),
    "c2": np.array([0.5, 1.0]),
    "d2": np.array([0.25, 0.75]),
    "c4": np.array([0.5, 1.0, 0.75, 0.25]),
    "cube": _some(2, 3, 4),
    "m": _some(4, 2),
    "batch": _some(2, 4, 3),
    "square": _regular(3, 3),
    "side": _some(3, 2),
    "definite": _regular(3, 3) @ _regular(3, 3).T,
    "triangle": np.tril(_regular(3, 3)),
    "tall": _some(4, 3) + np.eye(4, 3),
    "blocks": _some(1, 4, 3, 2),
    "columns": _some(1, 8, 12),
    "grid": _some(1, 3, 2, 2) / 2.5,
    "theta": _some(1, 2, 3),
    "table": _some(4, 3),
    "long": _some(7),
    "sorted": np.array([-1.5, -0.5, 0.5, 1.5]),
    "path": _some(6, 2, 4),
    "pooled": _some(1, 2, 4),
    "pooled2": _some(1, 1, 2, 2),
    "pooled3": _some(1, 1, 2, 2, 2),
}
# and those that have one dtype whatever is tried
FIXED: dict[str, np.ndarray] = {
    "pick": np.array([[0, 2, 1, 1], [2, 0, 0, 1]]),
    "once": np.array([[0, 2, 1, 1], [2, 0, 0, 2]]),
    "rows": np.array([2, 0, 2]),
    "two": np.array([2, 0]),
    "ids": np.array([2, 0, 1]),
    "words": np.array([[0, 3], [2, 0]]),
    "flat": np.array([[0, 11], [5, 2]]),
    "mask": X > 0,
    "labels": np.array([[1, 2], [3, 0]]),
    "signs": np.array([1, -1, 1]),
    "places": np.array([[[0, 2, 5, 7], [1, 3, 4, 6]]]),
    "places2": np.array([[[[0, 3], [9, 14]]]]),
    "places3": np.array([[[[[0, 3], [9, 14]], [[20, 27], [40, 63]]]]]),
    "order": np.array([2, 0, 3, 1]),
    "counts": np.array([1, 0, 2]),
}
Function = Callable[..., Any]


@dataclass(frozen=True)
class Call:
    """operands: names of the tensors. how: what is called, given the function and the tensors.
    theirs: PyTorch's function, if it has another name than ours (`F.unfold`); "" if it has none."""

    operands: str = "x"
    how: Function = lambda f, *xs: f(*xs)
    theirs: str | None = None


def _each(names: str, operands: str = "x", how: Function | None = None) -> dict[str, Call]:
    """The same call of several functions."""
    return {n: Call(operands, how) if how else Call(operands) for n in names.split()}


def _list(f: Function, *xs: Any) -> Any:
    """Of functions of a list of tensors."""
    return f(list(xs))


def _of_rows(f: Function, x: Any) -> Any:
    return f(x, 1)


def _written(f: Function, x: Any, i: Any, *source: Any) -> Any:
    """Of functions that write at indices along dimension 0."""
    return f(x, 0, i, *source)


ELEMENTWISE = {
    **_each("neg abs sign square reciprocal floor ceil trunc round isnan isinf isfinite"),
    **_each("logical_not bitwise_not positive frac nan_to_num isposinf isneginf signbit"),
    **_each("exp exp2 expm1 sin cos tan atan tanh erf sinh cosh sigmoid sinc asinh erfc"),
    **_each("deg2rad rad2deg relu silu gelu relu6 hardtanh leaky_relu hardshrink softshrink"),
    **_each("hardsigmoid hardswish elu selu celu softplus logsigmoid mish softsign tanhshrink"),
    **_each("rrelu treadle.real treadle.imag real imag conj angle sgn isreal is_complex"),
    **_each("is_floating_point is_signed is_contiguous"),
    "quick_gelu": Call(theirs=""),
    **_each("log log2 log10 log1p sqrt rsqrt lgamma digamma acosh", "p"),
    **_each("asin acos atanh erfinv", "u"),
    "logit": Call("q"),
    "threshold": Call(how=lambda f, x: f(x, 0.5, -1)),
    **_each("add sub", "x y", lambda f, x, y: f(x, y, alpha=2)),
    **_each("mul div floor_divide remainder fmod maximum minimum", "x y"),
    **_each("lt le gt ge eq ne logical_and logical_or logical_xor", "x z"),
    **_each("bitwise_and bitwise_or bitwise_xor copysign fmax fmin atan2 hypot logaddexp", "x y"),
    **_each("nextafter isclose heaviside", "x y"),
    **_each("bitwise_left_shift bitwise_right_shift", "x p"),
    **_each("pow float_power xlogy", "p q"),
    "clamp": Call("x", lambda f, x: f(x, 0, 1)),
    "treadle.clip": Call("x", lambda f, x: f(x, min=0, max=1), "torch.clip"),
    "masked_fill": Call("x mask", lambda f, x, m: f(x, m, 1)),
    "lerp": Call("x y q"),
    "where": Call("x mask z"),
    "treadle.where": Call("mask x z", theirs="torch.where"),
    **_each("addcmul addcdiv", "x z p", lambda f, x, y, z: f(x, y, z, value=2)),
    "prelu": Call("x slopes"),
    "allclose": Call("x z"),
    **_each("equal is_same_size type_as", "x z"),
    "treadle.equal": Call("x z", theirs="torch.eq"),
    "treadle.complex": Call("x y"),
    "treadle.polar": Call("p x"),
    "treadle.view_as_complex": Call("m"),
    "treadle.view_as_real": Call(),
    "bitcast": Call("x", lambda f, x: f(x, x.dtype), theirs=""),
}
MOVEMENT = {
    "reshape": Call(how=lambda f, x: f(x, (2, 6))),
    "view": Call(how=lambda f, x: f(x, (2, 6))),
    "flatten": Call(),
    "unflatten": Call(how=lambda f, x: f(x, 1, (2, 2))),
    "permute": Call(how=lambda f, x: f(x, (1, 0))),
    **_each("transpose swapdims movedim", "x", lambda f, x: f(x, 0, 1)),
    **_each(
        "T mT H mH adjoint squeeze ravel t fliplr flipud rot90 atleast_1d atleast_2d atleast_3d"
    ),
    "unsqueeze": Call(how=lambda f, x: f(x, 1)),
    "expand": Call(how=lambda f, x: f(x, (2, 3, 4))),
    "expand_as": Call("v x"),
    "view_as": Call("x z"),
    "flip": Call(how=lambda f, x: f(x, (0, 1))),
    "roll": Call(how=lambda f, x: f(x, 2, 1)),
    **_each("repeat tile", "x", lambda f, x: f(x, (2, 1))),
    **_each("cat stack hstack vstack dstack column_stack", "x z", _list),
    **_each("block_diag broadcast_tensors", "x v"),
    **_each("cartesian_prod meshgrid", "v w"),
    "split": Call(how=lambda f, x: f(x, 2, 1)),
    "tensor_split": Call(how=lambda f, x: f(x, 3, 1)),
    "chunk": Call(how=lambda f, x: f(x, 2, 1)),
    "unbind": Call(),
    "hsplit": Call(how=lambda f, x: f(x, 2)),
    "vsplit": Call(how=lambda f, x: f(x, [1])),
    "dsplit": Call("cube", lambda f, x: f(x, 2)),
    "split_with_sizes": Call(how=lambda f, x: f(x, [1, 3], 1)),
    "narrow": Call(how=lambda f, x: f(x, 1, 1, 2)),
    "select": Call(how=lambda f, x: f(x, 1, 2)),
    "unfold": Call(how=lambda f, x: f(x, 1, 2, 1)),
    "pad": Call(how=lambda f, x: f(x, (1, 2))),
    "pad_to": Call(how=lambda f, x: f(x, 5, None), theirs=""),
    "shrink_to": Call(how=lambda f, x: f(x, 2, None), theirs=""),
    "shrink": Call(how=lambda f, x: f(x, (None, (1, 3))), theirs=""),
    "diagonal": Call(),
    **_each("tril triu"),
    "diag": Call("v"),
    "diag_embed": Call("x"),
    "diagflat": Call("v"),
    "diagonal_scatter": Call("x w"),
    "select_scatter": Call("x w", lambda f, x, w: f(x, w, 1, 2)),
    "slice_scatter": Call("tall side", lambda f, x, s: f(x, s.reshape(2, 3), 0, 1, 3)),
    "rearrange": Call(how=lambda f, x: f(x, "h (b w) -> b (w h) 1", b=2), theirs=""),
    "im2col": Call("x4", lambda f, x: f(x, (3, 2), padding=1), "F.unfold"),
    "col2im": Call("columns", lambda f, x: f(x, (4, 5), (2, 2)), "F.fold"),
    "pixel_shuffle": Call("blocks", lambda f, x: f(x, 2)),
    "pixel_unshuffle": Call("x5", lambda f, x: f(x.reshape(1, 2, 8, 8), 2)),
    "channel_shuffle": Call("blocks", lambda f, x: f(x, 2)),
    "gather": Call("x pick", lambda f, x, i: f(x, 0, i)),
    "take_along_dim": Call("x pick", lambda f, x, i: f(x, i, 0)),
    "index_select": Call("x rows", lambda f, x, i: f(x, 0, i)),
    "take": Call("x flat"),
    "treadle.take": Call("x rows", lambda f, x, i: f(x, i, axis=0), ""),
    "treadle.take_along_axis": Call("x pick", lambda f, x, i: f(x, i, axis=0), ""),
    "repeat_interleave": Call(how=lambda f, x: f(x, 2, 1)),
    "treadle.repeat": Call("x counts", lambda f, x, n: f(x, n, axis=0), ""),
    "masked_select": Call("x mask"),
    "masked_scatter": Call("x mask z"),
    "treadle.expand_dims": Call(how=lambda f, x: f(x, axis=0), theirs=""),
    "treadle.squeeze": Call(how=lambda f, x: f(x[:, None], axis=1), theirs=""),
    "treadle.matrix_transpose": Call(theirs=""),
    "treadle.reshape": Call(how=lambda f, x: f(x, (2, 6))),
    "treadle.concat": Call("x z", _list),
    "treadle.broadcast_arrays": Call("x v", theirs="torch.broadcast_tensors"),
    "treadle.meshgrid": Call("v w", lambda f, v, w: f(v, w, indexing="xy")),
    "index_copy": Call("x two side", lambda f, x, i, s: f(x[:, :3], 0, i, s.reshape(2, 3))),
    "index_fill": Call("x rows", lambda f, x, i: f(x, 0, i, 1)),
    "index_put": Call("x ids z", lambda f, x, i, s: f(x, (i,), s)),
    "put": Call("x flat batch", lambda f, x, i, s: f(x, i, s[0, :2, :2])),
    "scatter": Call("x once z", lambda f, x, i, s: f(x, 0, i, s)),
    "embedding": Call("table words", lambda f, w, i: f(i, w), "F.embedding"),
    "linalg.matrix_transpose": Call(theirs=""),
    "linalg.diagonal": Call(),
}
REDUCTION = {
    **_each("sum prod mean nansum nanmean max min argmax argmin any all var std", "x", _of_rows),
    **_each("logsumexp count_nonzero", "x", _of_rows),
    **_each("var_mean std_mean aminmax", "x", lambda f, x: f(x, dim=1)),
    "norm": Call(how=lambda f, x: f(x, 2, 1)),
    "dist": Call("x y"),
    **_each("treadle.var treadle.std", "x", lambda f, x: f(x, axis=1)),
    **_each("cumsum cumprod cummax cummin", "x", _of_rows),
    "logcumsumexp": Call(how=lambda f, x: f(x, 1)),
    **_each("treadle.sum treadle.prod", "x", lambda f, x: f(x, axis=1)),
    **_each("treadle.cumulative_sum treadle.cumulative_prod", "x", lambda f, x: f(x, axis=1)),
    **_each("diff trapezoid cumulative_trapezoid"),
    "sum_to_size": Call(how=lambda f, x: f(x, (3, 1))),
    **_each("median nanmedian mode", "x", _of_rows),
    "kthvalue": Call(how=lambda f, x: f(x, 2, 1)),
    **_each("quantile nanquantile", "x", lambda f, x: f(x, 0.25, 1)),
    "trace": Call("square"),
    "linalg.trace": Call("square", theirs="torch.trace"),
    "histc": Call(how=lambda f, x: f(x, 4, -1, 1)),
    **_each("sort argsort", "x", lambda f, x: f(x, 1, True)),
    "msort": Call(),
    "topk": Call(how=lambda f, x: f(x, 2, 1)),
    **_each("treadle.sort treadle.argsort", "x", lambda f, x: f(x, axis=1)),
    "searchsorted": Call("sorted z"),
    "treadle.searchsorted": Call("sorted z"),
    "bucketize": Call("z sorted"),
    "isin": Call("x v"),
    "nonzero": Call(),
    "treadle.nonzero": Call(how=lambda f, x: f(x), theirs=""),
    "argwhere": Call(),
    **_each("unique unique_consecutive"),
    **_each("treadle.unique_values treadle.unique_counts treadle.unique_inverse"),
    **_each("treadle.unique_all"),
    "bincount": Call("c4", lambda f, x: f(x)),
    "one_hot": Call("c4", lambda f, x: f(x, 3)),
    "scatter_add": Call("x pick z", lambda f, x, i, s: f(x, 0, i, s)),
    "index_add": Call("x rows z", _written),
    "index_reduce": Call("x rows z", lambda f, x, i, s: f(x, 0, i, s, "amax")),
    "scatter_reduce": Call("x pick z", lambda f, x, i, s: f(x, 0, i, s, "prod")),
    "batch_statistics": Call("x4", theirs=""),
}
PRODUCTS = {
    **_each("matmul mm", "x m"),
    **_each("dot vdot", "v slopes"),
    "mv": Call("x v"),
    "bmm": Call("cube batch"),
    "outer": Call("v w"),
    "addmm": Call("side x m", lambda f, s, x, y: f(s, x, y, beta=2)),
    "addmv": Call("w x v"),
    "addbmm": Call("square cube batch"),
    "baddbmm": Call("square cube batch", lambda f, s, x, y: f(s.expand(2, 3, 3), x, y)),
    "addr": Call("x w v"),
    "tensordot": Call("x m", lambda f, x, y: f(x, y, 1)),
    "vecdot": Call("x z", theirs="linalg.vecdot"),
    **_each("inner kron", "x z"),
    "cross": Call("side definite", lambda f, x, y: f(x, y[:, :2], 0)),
    "linear": Call("x z v", lambda f, x, w, b: f(x, w, b[:3])),
    "einsum": Call("x m", lambda f, x, y: f("ij,jk->ik", x, y)),
    "linalg.matmul": Call("x m"),
    "linalg.outer": Call("v w", theirs="torch.outer"),
    "linalg.tensordot": Call("x m", lambda f, x, y: f(x, y, 1), "torch.tensordot"),
    "linalg.vecdot": Call("x z"),
    "linalg.cross": Call("square definite"),
    "linalg.multi_dot": Call("x m", _list),
    "conv1d": Call("x3 w3 w"),
    "conv2d": Call("x4 w4 w"),
    "conv3d": Call("x5 w5 c2"),
    "conv_transpose1d": Call("x3 t3"),
    "conv_transpose2d": Call("x4 t4"),
    "conv_transpose3d": Call("x5 t5"),
}
FOURIER = {
    **_each("fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fftshift fft.ifftshift"),
    **_each("fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.hfft2 fft.ihfft2"),
    **_each("fft.fftn fft.ifftn fft.rfftn fft.irfftn fft.hfftn fft.ihfftn"),
    **_each("fft.fftfreq fft.rfftfreq", "x", lambda f, x: f(4, dtype=x.dtype)),
    "stft": Call("long", lambda f, x: f(x, 4, 2, return_complex=True)),
    "istft": Call("definite", lambda f, x: f(x[:3] * 1j, 4, 2)),
    **_each(
        "treadle.bartlett_window treadle.blackman_window treadle.hamming_window",
        "x",
        lambda f, x: f(5, dtype=x.dtype),
    ),
    **_each("treadle.hann_window treadle.kaiser_window", "x", lambda f, x: f(5, dtype=x.dtype)),
}
MATRICES = {
    **_each("det slogdet inverse pinverse svd matrix_exp", "square"),
    **_each("linalg.inv linalg.inv_ex linalg.lu_factor linalg.lu_factor_ex linalg.lu", "square"),
    **_each("linalg.svdvals linalg.pinv linalg.matrix_rank linalg.cond", "square"),
    "linalg.svd": Call("square"),
    **_each("linalg.eig linalg.eigvals", "square", lambda f, x: f(x)),
    **_each("linalg.matrix_norm linalg.vector_norm linalg.norm", "square"),
    **_each("qr linalg.qr", "tall"),
    **_each("cholesky logdet linalg.cholesky_ex linalg.eigh linalg.eigvalsh", "definite"),
    **_each("matrix_power", "square", lambda f, x: f(x, 3)),
    **_each("linalg.solve linalg.solve_ex", "square side"),
    "linalg.lstsq": Call("tall m"),
    "linalg.lu_solve": Call("square ids side", lambda f, a, i, b: f(a, (0 * i + 3).int(), b)),
    "linalg.solve_triangular": Call("triangle side", lambda f, a, b: f(a, b, upper=False)),
    "triangular_solve": Call("side triangle", lambda f, b, a: f(b, a, upper=False)),
    "cholesky_solve": Call("side triangle"),
    **_each("orgqr linalg.householder_product", "tall w"),
    "linalg.tensorinv": Call("square", lambda f, x: f(x, 1)),
    "linalg.tensorsolve": Call("square w"),
    "linalg.vander": Call("v"),
    "cholesky_inverse": Call("triangle"),
}
NEURAL = {
    **_each("softmax log_softmax softmin", "x", _of_rows),
    "glu": Call(how=lambda f, x: f(x, 1)),
    "layer_norm": Call("x v slopes", lambda f, x, w, b: f(x, (4,), w, b)),
    "rms_norm": Call("x v", lambda f, x, w: f(x, (4,), w)),
    "batch_norm": Call("x4 d2 c2", theirs="F.batch_norm"),
    "group_norm": Call("x4", lambda f, x: f(x, 2)),
    "instance_norm": Call("x4"),
    "layernorm": Call("x", theirs=""),
    "batchnorm": Call("x4 c2 d2 c2 c2", theirs=""),
    "local_response_norm": Call("x4", lambda f, x: f(x, 2)),
    "normalize": Call(),
    **_each(
        "dropout feature_dropout alpha_dropout feature_alpha_dropout", "x3", lambda f, x: f(x, 0.0)
    ),
    "scaled_dot_product_attention": Call("x z y"),
    "gumbel_softmax": Call("x", lambda f, x: f(x, hard=True).sum(-1)),
    **_each("max_pool1d avg_pool1d", "x3", lambda f, x: f(x, 2)),
    **_each("max_pool2d avg_pool2d", "x4", lambda f, x: f(x, 2)),
    **_each("max_pool3d avg_pool3d", "x5", lambda f, x: f(x, 2)),
    "lp_pool1d": Call("x3", lambda f, x: f(x, 2, 2)),
    "lp_pool2d": Call("x4", lambda f, x: f(x, 2, 2)),
    "lp_pool3d": Call("x5", lambda f, x: f(x, 2, 2)),
    **_each("adaptive_max_pool1d adaptive_avg_pool1d", "x3", lambda f, x: f(x, 3)),
    **_each("adaptive_max_pool2d adaptive_avg_pool2d", "x4", lambda f, x: f(x, 2)),
    **_each("adaptive_max_pool3d adaptive_avg_pool3d", "x5", lambda f, x: f(x, 2)),
    "max_unpool1d": Call("pooled places", lambda f, x, i: f(x, i, 2)),
    "max_unpool2d": Call("pooled2 places2", lambda f, x, i: f(x, i, 2)),
    "max_unpool3d": Call("pooled3 places3", lambda f, x, i: f(x, i, 2)),
    "interpolate": Call("x3", lambda f, x: f(x, scale_factor=2, mode="linear")),
    "grid_sample": Call("x4 grid", lambda f, x, g: f(x, g, align_corners=False)),
    "affine_grid": Call("theta", lambda f, x: f(x, (1, 2, 3, 4), align_corners=False)),
    "embedding_bag": Call("table words", lambda f, w, i: f(i, w), "F.embedding_bag"),
}
LOSSES = {
    **_each("mse_loss l1_loss smooth_l1_loss huber_loss", "x z"),
    **_each("binary_cross_entropy", "q b"),
    **_each("binary_cross_entropy_with_logits multilabel_soft_margin_loss", "x b"),
    "nll_loss": Call("scores ids"),
    "cross_entropy": Call("scores ids"),
    "multi_margin_loss": Call("scores ids"),
    "sparse_categorical_crossentropy": Call("scores ids", theirs=""),
    "ctc_loss": Call("path labels", lambda f, x, t: f(x, t, (6, 5), (2, 1))),
    "poisson_nll_loss": Call("x p"),
    "gaussian_nll_loss": Call("x z p"),
    "kl_div": Call("x q"),
    **_each("cosine_similarity pairwise_distance cdist", "x y"),
    "margin_ranking_loss": Call("w o signs"),
    "hinge_embedding_loss": Call("w signs"),
    "cosine_embedding_loss": Call("x z signs"),
    "triplet_margin_loss": Call("x z y"),
    "soft_margin_loss": Call("w signs"),
}
CREATION = {
    **_each("zeros_like ones_like"),
    "full_like": Call(how=lambda f, x: f(x, 1)),
    "full": Call(how=lambda f, x: f((2,), 1, dtype=x.dtype)),
    **_each("zeros ones", "x", lambda f, x: f(2, 3, dtype=x.dtype)),
    "arange": Call(how=lambda f, x: f(1, 3, dtype=x.dtype)),
    "linspace": Call(how=lambda f, x: f(0, 4, 5, dtype=x.dtype)),
    "treadle.linspace": Call(how=lambda f, x: f(0, 4, 5, dtype=x.dtype)),
    "eye": Call(how=lambda f, x: f(3, dtype=x.dtype)),
    "treadle.eye": Call(how=lambda f, x: f(3, dtype=x.dtype)),
    "tri": Call(how=lambda f, x: f(3, dtype=x.dtype), theirs=""),
    **_each("tril_indices triu_indices", "x", lambda f, x: f(3, 3, dtype=x.dtype)),
    **_each("rand randn", "x", lambda f, x: f(2, 3, dtype=x.dtype)),
    **_each("uniform normal kaiming_uniform kaiming_normal glorot_uniform scaled_uniform", "x",
            lambda f, x: f(2, 3, dtype=x.dtype)),
    "randint": Call(how=lambda f, x: f(0, 2, (3,), dtype=x.dtype)),
    "randperm": Call(how=lambda f, x: f(2, dtype=x.dtype)),
    "bernoulli": Call("b"),
    "multinomial": Call("b", _of_rows),
    "logspace": Call(how=lambda f, x: f(0, 2, 3, dtype=x.dtype)),
    **_each("new_ones new_zeros", "x", lambda f, x: f(x, (2, 3))),
    "new_full": Call(how=lambda f, x: f(x, (2, 3), 1)),
    **_each("rand_like randn_like"),
    "randint_like": Call(how=lambda f, x: f(x, 0, 2)),
}  # fmt: skip
RARE = {
    **_each("i0", "x"),
    **_each("clamp_min clamp_max gcd lcm ldexp logaddexp2 rsub", "x y"),
    **_each("corrcoef cov frexp pdist", "x"),
    "combinations": Call("v"),
    "mvlgamma": Call("p", lambda f, x: f(x, 1)),
    "polygamma": Call("p", lambda f, x: f(x, 1), theirs=""),
    "renorm": Call(how=lambda f, x: f(x, 2, 0, 1)),
    "unravel_index": Call("x", lambda f, x: f(x, (2, 3)), theirs=""),
}
# what is drawn is not compared, but for its dtype
DRAWN = frozenset(
    (
        "rand",
        "randn",
        "uniform",
        "normal",
        "kaiming_uniform",
        "kaiming_normal",
        "glorot_uniform",
        "scaled_uniform",
        "rand_like",
        "randint",
        "randint_like",
        "randn_like",
        "randperm",
        "multinomial",
    )
)
CALLS: dict[str, Call] = {
    **ELEMENTWISE, **MOVEMENT, **REDUCTION, **PRODUCTS, **FOURIER,
    **MATRICES, **NEURAL, **LOSSES, **CREATION, **RARE
}  # fmt: skip


def public_names() -> dict[str, Public]:
    """Every public function once, by the name that it has in this table."""
    found: dict[str, Public] = {}
    seen: set[int] = set()
    places = {"": METHODS, "treadle.": NAMESPACE, "linalg.": LINALG, "fft.": FFT}
    for prefix, table in places.items():
        for name, entry in table.items():
            if entry.name == name and id(entry) not in seen:
                seen.add(id(entry))
                found[prefix + name] = entry
    return found


def ours(name: str) -> Function:
    """The function that users of treadle call."""
    place, _, short = name.rpartition(".")
    if place:
        return getattr(treadle if place == "treadle" else getattr(treadle, place), short)
    if METHODS[short].kind == "property":
        return lambda x: getattr(x, short)
    return getattr(Tensor, short)


def base(name: str, dtype: DType) -> np.ndarray:
    """The numbers of an operand, as they are in this dtype, in NumPy's dtype for it."""
    if name in FIXED:
        return FIXED[name]
    values = OPERANDS[name]
    if dtype.is_float:
        return values
    if dtype.kind == "b":
        return values > 0
    whole = np.rint(values * 2)
    return (np.abs(whole) if dtype.kind == "u" else whole).astype(dtype.storage)


def operands(name: str, dtype: DType) -> list[Tensor]:
    """The tensors of a call in a dtype."""
    made = []
    for each in CALLS[name].operands.split():
        array = base(each, dtype)
        made.append(Tensor(array) if each in FIXED else Tensor(array).cast(dtype))
    return made


def call(name: str, dtype: DType) -> list[Any]:
    """The results of a call in a dtype: tensors, or Python values."""
    return flat(CALLS[name].how(ours(name), *operands(name, dtype)))


def flat(result: Any) -> list[Any]:
    """The parts of a result."""
    if isinstance(result, tuple | list):
        return [part for each in result for part in flat(each)]
    return [result]
