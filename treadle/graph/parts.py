"""Complex numbers as pairs of real ones: how a pair is made, and how it is taken apart.

A tensor of complex64 or complex128 is a pair of tensors from the moment it stands in a graph:
COMPLEX(re, im). Whatever meets one does real operations on its parts at once (`complexes.py`), so
that schedules, kernels and backends never hear of complex numbers. Leaves are complex, and so are
the few operations that take a value as a whole; `pairs.py` gives them real memory.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.ir import ops
from treadle.ir.dtype import DType, complex64, complex128, float32, float64
from treadle.ir.node import Node

_WHOLE: dict[DType, DType] = {float32: complex64, float64: complex128}


def complex_of(re: Node, im: Node) -> Node:
    """The complex numbers of these parts, both float32 or both float64, and of one shape."""
    if re.op is ops.REAL and im.op is ops.IMAG and re.src == im.src:
        return re.src[0]
    return Node(ops.COMPLEX, _WHOLE[re.dtype], (re, im))


def real(x: Node) -> Node:
    """The real parts; a tensor that is not complex, as it is."""
    if x.dtype.kind != "c":
        return x
    if x.op is ops.COMPLEX:
        return x.src[0]
    return ops.STOP(real(x.src[0])) if x.op is ops.STOP else _part(ops.REAL, x)


def imag(x: Node) -> Node:
    """The imaginary parts of complex numbers."""
    if x.op is ops.COMPLEX:
        return x.src[1]
    return ops.STOP(imag(x.src[0])) if x.op is ops.STOP else _part(ops.IMAG, x)


def parts_of(x: Node) -> tuple[Node, ...]:
    """The real tensors that a tensor is made of: both parts, or itself."""
    return (real(x), imag(x)) if x.dtype.kind == "c" else (x,)


def _part(op: ops.Op, x: Node) -> Node:
    return Node(op, x.dtype.real, (x,))


def by_parts(function: Callable[..., Node], *xs: Node) -> Node:
    """What a function makes of the real parts, with what it makes of the imaginary parts: of a
    function that is linear with real factors, such as every movement of elements."""
    return complex_of(function(*map(real, xs)), function(*map(imag, xs)))
