"""Which public names are for complex numbers: the tables by which the face decides.

A name in `WORKS` does to complex numbers what its definition says, because the builders do. One in
`OF_COMPLEX` has another definition for them, made from that for real numbers. `ORDERED` means
nothing for them. Whatever is in none of these is refused: nothing is computed of half a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.extras import load
from treadle.graph.public import Public
from treadle.ir.dtype import DType
from treadle.ir.node import Node

Function = Callable[..., Any]

# fmt: off
WORKS = frozenset((
    # elementwise
    "add", "sub", "mul", "abs", "eq", "ne", "isclose", "allclose", "neg", "positive", "square",
    "reciprocal", "where", "lerp", "masked_fill", "addcmul", "addcdiv", "logical_and",
    "logical_not", "logical_or", "logical_xor",
    "complex", "conj", "real", "imag", "view_as_real", "view_as_complex", "is_complex", "isreal",
    "is_floating_point", "is_signed", "is_same_size", "is_contiguous", "type_as",
    "angle", "sgn",
    # sums and products
    "sum", "mean", "prod", "all", "any", "count_nonzero", "trace", "cumsum", "cumprod", "diff",
    "cumulative_sum", "cumulative_prod", "trapezoid", "cumulative_trapezoid", "equal", "dot", "mv",
    "mm", "bmm", "matmul", "outer", "inner", "einsum", "tensordot", "kron", "cross", "linear",
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "sin", "cos", "tan", "tanh", "atan",
    "addmm", "addmv", "addr", "addbmm", "baddbmm",
    # linear algebra
    "multi_dot", "matrix_power", "matrix_exp", "det", "slogdet", "logdet", "inv", "inv_ex",
    "inverse", "solve", "solve_ex", "solve_triangular", "triangular_solve", "cholesky",
    "cholesky_ex", "cholesky_solve", "cholesky_inverse", "lu", "lu_factor", "lu_factor_ex",
    "lu_solve", "qr", "eigh", "eigvalsh", "eig", "eigvals", "svd", "svdvals", "pinv", "pinverse",
    "matrix_rank", "lstsq", "cond", "norm", "vector_norm", "matrix_norm", "dist", "tensorinv",
    "tensorsolve", "vander", "householder_product", "orgqr",
    # what moves elements, or chooses them
    "T", "cat", "concat", "chunk", "diagonal", "expand", "expand_as", "flatten", "flip", "mT",
    "movedim", "pad", "permute", "repeat", "reshape", "roll", "shrink", "split", "squeeze", "stack",
    "tile", "transpose", "tril", "triu", "unbind", "unflatten", "unsqueeze", "atleast_1d",
    "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_tensors", "cartesian_prod",
    "column_stack", "dsplit", "dstack", "fliplr", "flipud", "hsplit", "hstack", "meshgrid",
    "narrow", "pad_to", "ravel", "rot90", "select", "shrink_to", "split_with_sizes", "sum_to_size",
    "swapdims", "t", "tensor_split", "unfold", "view", "view_as", "vsplit", "vstack", "rearrange",
    "block_diag", "diag", "diag_embed", "diagflat", "diagonal_scatter", "select_scatter",
    "slice_scatter", "channel_shuffle", "pixel_shuffle", "pixel_unshuffle", "repeat_interleave",
    "expand_dims", "matrix_transpose", "take_along_axis", "gather", "index_select", "scatter",
    "scatter_add", "take_along_dim", "index_add", "index_copy", "index_fill", "index_put", "put",
    "take", "argwhere", "masked_scatter", "masked_select", "nonzero",
    "unique", "unique_consecutive", "unique_values", "unique_counts", "unique_inverse",
    "unique_all",
    # spectra in time
    "stft", "istft",
    # from nothing
    "full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "eye",
))
ORDERED = frozenset((
    "lt", "le", "gt", "ge", "max", "min", "maximum", "minimum", "fmax", "fmin", "aminmax", "argmax",
    "argmin", "sort", "argsort", "msort", "topk", "kthvalue", "median", "nanmedian",
    "mode", "quantile", "nanquantile", "searchsorted", "bucketize", "clamp", "clip", "floor",
    "ceil", "trunc", "frac", "floor_divide", "remainder", "fmod", "cummax", "cummin",
    "signbit", "copysign", "nextafter", "heaviside", "relu", "relu6", "isposinf", "isneginf",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift",
    "bitwise_right_shift", "atan2", "hypot", "histc", "bincount", "deg2rad", "rad2deg",
))
# fmt: on


# name -> where its definition for complex numbers is, below `treadle.graph`. What ends in "()"
# makes it from the definition for real ones.
OF_COMPLEX = {
    "sign": "complex_functions.sgn",
    "div": "complex_functions.quotient()",
    "pow": "complex_functions.power",
    "nan_to_num": "complex_functions.each_part()",
    "round": "complex_functions.each_part()",
    "linspace": "complex_functions.line_of_parts()",
    "vdot": "complex_functions.conjugated()",
    "vecdot": "complex_functions.conjugated()",
    "H": "complex_functions.conjugated()",
    "mH": "complex_functions.conjugated()",
    "adjoint": "complex_functions.conjugated()",
    "float_power": "complex_functions.double_power",
    "isnan": "complex_functions.in_either()",
    "isinf": "complex_functions.in_either()",
    "isfinite": "complex_functions.in_both()",
    "var": "complex_functions.added_spread()",
    "std": "complex_functions.joined_spread()",
    "var_mean": "complex_functions.VAR_MEAN()",
    "std_mean": "complex_functions.STD_MEAN()",
    "im2col": "complex_functions.each_part()",
    "col2im": "complex_functions.each_part()",
    **{
        f"conv{kind}{n}d": "complex_functions.convolved()"
        for kind in ("", "_transpose")
        for n in (1, 2, 3)
    },
    "rand": "complex_functions.UNIFORM()",
    "randn": "complex_functions.NORMAL()",
    # elementary functions that are no operations of their own
    "log10": "analytic.LOG10",
    "rsqrt": "analytic.RSQRT",
    "sigmoid": "analytic.SIGMOID",
    "sinh": "angles.SINH",
    "cosh": "angles.COSH",
    "asinh": "angles.ASINH",
    "acosh": "angles.ACOSH",
    "atanh": "angles.ATANH",
    "asin": "angles.ASIN",
    "acos": "angles.ACOS",
}


def meets_complex(value: Any) -> bool:
    """Whether an argument is complex, or holds something that is."""
    if isinstance(value, Node):
        return bool(value.dtype.kind == "c")
    if isinstance(value, tuple | list):
        return any(map(meets_complex, value))
    if isinstance(value, dict):
        return any(map(meets_complex, value.values()))
    return isinstance(value, complex) or (isinstance(value, DType) and value.is_complex)


def for_complex(entry: Public) -> Function:
    """What the function of a public name is of complex numbers."""
    name = f"linalg.{entry.name}" if entry.tables == ("linalg",) else entry.name
    place = OF_COMPLEX.get(name) or OF_COMPLEX.get(entry.name)
    if place is None:
        known = entry.name in WORKS or "fft" in entry.tables
        return entry.function if known else _refusal(name, entry.name)
    module, _, name = place.removesuffix("()").rpartition(".")
    found: Function = getattr(load(f"{__package__}.{module}"), name)
    return found(entry.function) if place.endswith("()") else found


def _refusal(where: str, name: str) -> Function:
    """TypeError for what means nothing of complex numbers, else NotImplementedError."""

    def run(*args: Any, **named: Any) -> Any:
        if name in ORDERED:
            raise TypeError(
                f"{where} is for real numbers, not for complex ones, which have no order: take "
                "abs(x), x.real or x.imag"
            )
        raise NotImplementedError(
            f"{where} is not there for complex numbers: give it float32 or float64, such as "
            "x.real, x.imag or abs(x)"
        )

    return run
