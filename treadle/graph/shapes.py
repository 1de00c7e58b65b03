"""Shapes, axes and broadcasting: the arithmetic of dimensions, and its errors in the user's words.

A dimension is an int, or a node of dtype `index` (symbolic, made from a bound variable). What is
asked of a symbolic dimension is decided by its bounds, or raises ValueError.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treadle.ir import index
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node, Shape
from treadle.ir.ops import CONST

Dim = Any  # int | Node of dtype index
Axes = Any  # an int, or a sequence of ints
SIZE = "a size is an int or a Variable"


# ---- dimensions ----------------------------------------------------------------------------------
class TensorForSize(TypeError):
    """An int is the value of `node`, an integer tensor of shape (). The face reads it."""

    def __init__(self, node: Node, wanted: str) -> None:
        super().__init__(f"{wanted}, not a tensor: read it with .item() first")
        self.node = node


def is_number(value: Any) -> bool:
    """Whether something is an integer tensor of shape ()."""
    return isinstance(value, Node) and value.dtype.is_int and value.shape == ()


def _int_of(node: Node, wanted: str) -> int:
    """The value of an integer tensor of shape (): that of a constant, else TensorForSize.
    TypeError, which says what is wanted, for any other."""
    if not is_number(node):
        raise TypeError(f"{wanted}, not {words(node)}")
    if node.op is not CONST:
        raise TensorForSize(node, wanted)
    return int(node.value)


def as_dim(value: Any) -> Dim:
    """One size as the user wrote it: an int (or what has `__index__`), or a symbolic dimension."""
    if type(value) is int:
        return value
    if isinstance(value, Node):
        if value.dtype is INDEX:
            return index.dim(value)
        return _int_of(value, SIZE)
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{SIZE}, not {words(value)}") from None


def as_shape(*sizes: Any) -> Shape:
    """A shape given as `(2, 3)`, `[2, 3]`, or as the separate arguments `2, 3`."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    for size in sizes:
        if type(size) is not int:
            return tuple([as_dim(s) for s in sizes])
    return sizes


def check_sizes(shape: Shape, name: str) -> Shape:
    """The shape, after a check that no size is below 0."""
    for size in shape:
        if size < 0 if type(size) is int else at_most(0, size) is False:
            raise ValueError(f"{name}: the shape {text(shape)} has a negative size")
    return shape


def add(a: Dim, b: Dim) -> Dim:
    """a + b."""
    if type(a) is int and type(b) is int:
        return a + b
    return index.dim(index.add(a, b))


def subtract(a: Dim, b: Dim) -> Dim:
    """a - b."""
    if type(a) is int and type(b) is int:
        return a - b
    return index.dim(index.sub(a, b))


def multiply(a: Dim, b: Dim) -> Dim:
    """a * b."""
    if type(a) is int and type(b) is int:
        return a * b
    return index.dim(index.mul(a, b))


def divide(a: Dim, b: Dim) -> Dim:
    """a / b rounded down, for b > 0."""
    if type(a) is int and type(b) is int:
        return a // b
    return index.dim(index.floordiv(a, b))


def divide_up(a: Dim, b: Dim) -> Dim:
    """a / b rounded up, for b > 0."""
    return divide(add(a, subtract(b, 1)), b)


def least(a: Dim, b: Dim) -> Dim:
    """The smaller of two dimensions."""
    if type(a) is int and type(b) is int:
        return min(a, b)
    return index.dim(index.minimum(a, b))


def greatest(a: Dim, b: Dim) -> Dim:
    """The greater of two dimensions."""
    if type(a) is int and type(b) is int:
        return max(a, b)
    return index.dim(index.maximum(a, b))


def total(shape: Iterable[Dim]) -> Dim:
    """The number of elements of a shape."""
    product: Dim = 1
    for size in shape:
        product = multiply(product, size)
    return product


def check_places(shape: Shape, axis: int, indices: Shape, name: str) -> int:
    """The axis, after a check that there are no indices into one that has no element."""
    if shape[axis] == 0 and at_most(1, total(indices)) is True:
        raise IndexError(
            f"{name}: every index is out of range: dimension {axis} of a tensor of shape "
            f"{text(shape)} has no element"
        )
    return axis


def same(a: Dim, b: Dim) -> bool:
    """Whether two dimensions are equal. ValueError if their bounds cannot decide it."""
    if a is b:
        return True
    if type(a) is int and type(b) is int:
        return a == b
    return index.same(a, b)


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are equal. ValueError if the bounds of a size cannot decide it."""
    return a == b or (len(a) == len(b) and all(map(same, a, b)))


def at_most(a: Dim, b: Dim) -> bool | None:
    """Whether a <= b; None if the bounds of a symbolic dimension cannot decide it."""
    if type(a) is int and type(b) is int:
        return a <= b
    decided = index.le(a, b)
    return bool(decided.value) if decided.op is CONST else None


def bounds(dim: Dim) -> tuple[int, int]:
    """The least and the greatest value of a dimension."""
    low, high = (dim, dim) if type(dim) is int else dim.bounds
    return low, high


def is_empty(shape: Shape) -> bool:
    """Whether a shape has no elements, as far as that is known."""
    return 0 in shape


def text(shape: Sequence[Dim]) -> str:
    """A shape as a message shows it: `(2, T, 3)`."""
    words = [dim_text(size) for size in shape]
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


def dim_text(dim: Dim) -> str:
    """A dimension as a message shows it: `3`, `T`, `2*T + 1`."""
    return index.spell(dim)


def words(value: Any) -> str:
    """What was given where something else was wanted, as a message shows it: `2.5`, `'a'`, `a
    tensor of float32 (2, 3)`, `the symbolic size T`."""
    if isinstance(value, Node):
        if value.dtype is INDEX:
            return f"the symbolic size {dim_text(value)}"
        return f"a tensor of {value.dtype} {text(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {', '.join(map(words, value)) or 'nothing'}"
    return repr(value)


def plain(value: Any) -> Any:
    """NumPy's scalars, alone or in a tuple or a list, as Python's numbers."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)) and any(isinstance(part, np.generic) for part in value):
        return type(value)(map(plain, value))
    return value


def as_int(value: Any, name: str) -> int:
    """An argument that is an int, has `__index__`, or is an integer tensor of shape (). TypeError
    names it if it is none of these."""
    if isinstance(value, Node) and value.dtype is not INDEX:
        return _int_of(value, f"{name} must be an int")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {words(value)}") from None


# ---- axes ----------------------------------------------------------------------------------------
def normalize_axis(axis: Any, ndim: int, name: str = "dim", new: bool = False) -> int:
    """An axis counted from 0. IndexError if a tensor of `ndim` dimensions has none such; a 0-d
    tensor is taken to have one, as in PyTorch. new: the place of a dimension to be added."""
    number = as_int(axis, name)
    count = ndim + 1 if new else ndim or 1
    if not -count <= number < count:
        allowed = f"{-count} to {count - 1}"
        raise IndexError(f"{name}={number} is out of range for a {ndim}-d tensor: use {allowed}")
    return number % count


def normalize_axes(axes: Any, ndim: int, name: str = "dim") -> tuple[int, ...]:
    """Axes given as None (all), an int, or a sequence of ints, counted from 0 and sorted.

    IndexError for an axis that does not exist, ValueError for one that is given twice.
    """
    if axes is None:
        return tuple(range(ndim))
    if not isinstance(axes, (tuple, list)):
        return (normalize_axis(axes, ndim, name),)[:ndim]
    found = sorted([normalize_axis(axis, ndim, name) for axis in axes])
    if len(set(found)) < len(found):
        raise ValueError(f"{name}={tuple(axes)} names the same dimension twice")
    return tuple(found[:ndim])


# ---- broadcasting --------------------------------------------------------------------------------
def broadcast_shapes(*shapes: Shape, name: str = "broadcast") -> Shape:
    """The common shape of several, by NumPy's rule: aligned at the last axis, 1 stretches.

    ValueError naming both shapes if they do not fit.
    """
    result = shapes[0]
    for shape in shapes[1:]:
        if shape != result:
            result = _broadcast_two(result, shape, name)
    return result


def _broadcast_two(a: Shape, b: Shape, name: str) -> Shape:
    if not b:
        return a
    given = a, b
    if len(a) < len(b):
        a = (1,) * (len(b) - len(a)) + a
    elif len(b) < len(a):
        b = (1,) * (len(a) - len(b)) + b
    sizes = []
    for axis, (x, y) in enumerate(zip(a, b)):
        if x is y or y == 1:
            sizes.append(x)
        elif x == 1:
            sizes.append(y)
        elif same(x, y):
            sizes.append(x)
        else:
            raise ValueError(
                f"{name}: shapes {text(given[0])} and {text(given[1])} do not broadcast: "
                f"{dim_text(x)} against {dim_text(y)} in dimension {axis - len(a)}"
            )
    return tuple(sizes)


def infer_size(old: Shape, new: Shape) -> Shape:
    """The shape `new` with its -1, if it has one, replaced by what makes it as large as `old`."""
    if -1 not in new:
        return check_sizes(new, "reshape")
    known = total([size for size in new if size != -1])
    everything = total(old)
    if new.count(-1) > 1:
        raise ValueError(f"reshape: only one size may be -1, not {text(new)}")
    if known == 0:
        raise ValueError(f"reshape: -1 in {text(new)} could be any size: give it as a number")
    missing = divide(everything, known)
    if not same(multiply(missing, known), everything):
        raise ValueError(f"reshape: {text(old)} does not divide into {text(new)}")
    return check_sizes(tuple([missing if size == -1 else size for size in new]), "reshape")
