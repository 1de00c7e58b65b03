"""Selecting by truth: where, masked_select, nonzero, and where a mask holds.

How many elements a mask selects is known only when the mask is computed. So these functions either
take the number (`size=`), or have the face run what the mask depends on: `read`, a function that it
gives to every public name of the kind "reads". What is selected is found by its *rank*: a running
count of the mask, which each selected element writes its own position at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    Operand,
    alu,
    broadcast,
    cast,
    const,
    constant_of,
    dim_value,
    expand,
    gather,
    iota,
    node_of,
    reduce,
    reshape,
    scatter,
    where,
)
from treadle.graph.elementwise import add, le, lt, ne, sub
from treadle.graph.movement import narrow, stack
from treadle.graph.public import public
from treadle.graph.running import of_monoid, running
from treadle.graph.shapes import Dim, text
from treadle.ir import ops
from treadle.ir.dtype import bool_, int32, int64
from treadle.ir.node import Node, Shape

# read(what, number, *nodes): runs a node of shape () and others, in one program. Gives its value as
# an int, and the others as leaves. `what` says in an error of `jit` what cannot be captured.
Read = Callable[..., tuple[int, tuple[Node, ...]]]

SIZED = "of the size that values decide (masked_select(mask, size=n) has a size of its own)"


# ---- where a mask holds --------------------------------------------------------------------------
def ranks(mask: Node) -> Node:
    """How many elements of a 1-d mask hold up to and including each."""
    count = int32 if shapes.bounds(mask.shape[0])[1] < 2**31 else int64
    return running((cast(mask, count),), 0, of_monoid("add", count))[0]


def total(mask: Node) -> Node:
    """How many elements of a mask hold: int64 of shape ()."""
    return reduce("add", cast(mask, int64))


def places(mask: Node, rank: Node, count: Dim) -> Node:
    """The positions of the first `count` elements that hold in a 1-d mask with its `ranks`, int64;
    0 where there are not as many. What is not selected writes to a place past the end."""
    if count == 0:
        return const(0, int64, (0,))
    beyond = dim_value(count, rank.dtype)
    slot = where(alu(ops.AND, mask, le(rank, beyond)), sub(rank, 1), beyond)
    base = const(0, int64, (shapes.add(count, 1),))
    return narrow(scatter(base, slot, iota(mask.shape[0], int64), 0), 0, 0, count)


def chosen(mask: Node, size: Any, read: Read, what: str) -> tuple[Node, Node | None]:
    """(positions, whether each is one): where a mask of any shape holds, in its flattened form.

    With a `size` there are as many positions, and the second result tells which are of elements
    that hold; else there are as many as the mask has, which are all so: None.
    """
    flat = reshape(mask, (shapes.total(mask.shape),))
    if size is not None:
        count = shapes.as_dim(size)
        shapes.check_sizes((count,), what)
        present = lt(iota(count, int64), total(flat))
        return places(flat, ranks(flat), count), present
    known = constant_of(flat)
    if known is not None:
        return iota(flat.shape[0] if known.value else 0, int64), None
    count, (stored, rank) = read(
        f"{what}, whose result is {SIZED},", total(flat), flat, ranks(flat)
    )
    return places(stored, rank, count), None


def check_mask(mask: Any, name: str) -> Node:
    """TypeError if a mask is not one of bools."""
    if not isinstance(mask, Node) or mask.dtype is not bool_:
        raise TypeError(f"{name}: the mask must be bool, not {shapes.words(mask)}: write mask != 0")
    return mask


def coordinates(positions: Node, shape: Shape) -> list[Node]:
    """Flat positions in a tensor of a shape, as one index per dimension."""
    found = []
    for axis, size in enumerate(shape):
        inner = shapes.total(shape[axis + 1 :])
        quotient = positions if inner == 1 else alu(ops.IDIV, positions, dim_value(inner, int64))
        found.append(alu(ops.MOD, quotient, dim_value(size, int64)) if axis else quotient)
    return found


# ---- public names --------------------------------------------------------------------------------
@public("masked_select", source="PyTorch", kind="reads")
def masked_select(
    x: Node, mask: Node, *, size: Any = None, fill_value: Operand = 0, read: Read
) -> Node:
    """The elements where the bool `mask` holds, in order, as one dimension; the two broadcast.

    Their number is read, so what the mask depends on runs now. With `size` nothing is read, also
    inside `jit`: the result has that size, elements that are too many are left out, and
    `fill_value` stands for those that are missing.

    >>> x = Tensor([1, 2, 3, 4])
    >>> x.masked_select(x > 2), x.masked_select(x > 2, size=3)
    (Tensor([3, 4]), Tensor([3, 4, 0]))
    """
    x, mask = broadcast(x, check_mask(mask, "masked_select"), name="masked_select")
    positions, present = chosen(mask, size, read, "masked_select")
    flat = reshape(x, (shapes.total(x.shape),))
    if shapes.is_empty(flat.shape):
        nothing = reduce("add", flat)  # through which derivatives flow
        return expand(add(nothing, _filling(fill_value, x)), positions.shape)
    found = gather(flat, positions, 0)
    return found if present is None else where(present, found, _filling(fill_value, x))


def _filling(value: Operand, x: Node) -> Node:
    return cast(value, x.dtype) if isinstance(value, Node) else const(value, x.dtype)


@public("nonzero", source="PyTorch", kind="reads", gradient="int")
def nonzero(
    x: Node, *, as_tuple: bool = False, size: Any = None, fill_value: int = 0, read: Read
) -> Any:
    """The indices of the elements that are not 0, int64, a row for each; as_tuple: a tensor of
    indices for each dimension instead. `size` and `fill_value` are as in `masked_select`.

    >>> Tensor([[0, 5], [6, 0]]).nonzero()
    Tensor([[0, 1],
            [1, 0]])
    """
    shape = x.shape if x.shape or not as_tuple else (1,)
    positions, present = chosen(ne(x, 0), size, read, "nonzero")
    columns = coordinates(positions, shape)
    if present is not None:
        columns = [where(present, column, fill_value) for column in columns]
    if as_tuple:
        return tuple(columns)
    return stack(columns, dim=1) if columns else const(0, int64, (positions.shape[0], 0))


@public("nonzero", source="Array API", method=False, namespace=True, kind="reads", gradient="int")
def nonzero_of_standard(x: Node, /, *, read: Read) -> tuple[Node, ...]:
    """The indices of the elements that are not 0: a tensor of int64 for each dimension. ValueError
    for a 0-d tensor.

    >>> treadle.nonzero(Tensor([[0, 1], [2, 0]]))
    (Tensor([0, 1]), Tensor([1, 0]))
    """
    if not x.shape:
        raise ValueError("nonzero: a 0-d tensor has no indices; reshape it to (1,)")
    return _as_tuple(x, read)


def _as_tuple(x: Node, read: Read) -> tuple[Node, ...]:
    found: tuple[Node, ...] = nonzero(x, as_tuple=True, read=read)
    return found


@public("argwhere", source="PyTorch", kind="reads", gradient="int")
def argwhere(x: Node, *, read: Read) -> Node:
    """The indices of the elements that are not 0, int64, a row for each.

    >>> Tensor([0, 5, 6]).argwhere()
    Tensor([[1],
            [2]])
    """
    found: Node = nonzero(x, read=read)
    return found


@public("where", source="Array API", method=False, namespace=True, kind="reads")
def choose(
    condition: Operand, x1: Operand = None, x2: Operand = None, *, read: Read
) -> Node | tuple[Node, ...]:
    """x1 where the condition (bool) holds, else x2; of a condition alone, where it holds: a
    tensor of indices for each dimension, as `nonzero` gives them.

    >>> treadle.where(Tensor([True, False]), 1, 2)
    Tensor([1, 2])
    """
    if x1 is None and x2 is None:
        return _as_tuple(node_of(condition), read)
    if x1 is None or x2 is None:
        raise TypeError("where: give the values of both cases, or of none")
    return where(condition, x1, x2)


@public("where", source="PyTorch")
def where_method(x: Operand, first: Operand, second: Operand) -> Node:
    """`condition.where(x, y)` of a bool tensor; `x.where(condition, y)` of any other: x where the
    condition holds, else y. TypeError if both could be the condition.

    >>> Tensor([1, -2]).where(Tensor([True, False]), 0)
    Tensor([1, 0])
    """
    itself = node_of(x).dtype is bool_
    given = isinstance(first, Node) and first.dtype is bool_
    if itself and given:
        raise TypeError("where: two bool tensors: write treadle.where(condition, x, y)")
    return where(first, x, second) if given else where(x, first, second)


@public("masked_scatter", source="PyTorch")
def masked_scatter(x: Node, mask: Node, source: Node) -> Node:
    """x with the elements where the bool `mask` holds replaced, in order, by the first of `source`;
    x and the mask broadcast, the dtypes agree. IndexError when it runs if `source` has too few.

    >>> Tensor([1, 2, 3]).masked_scatter(Tensor([True, False, True]), Tensor([7, 8, 9]))
    Tensor([7, 2, 8])
    """
    if source.dtype is not x.dtype:
        raise TypeError(
            f"masked_scatter: source is {source.dtype} and the tensor is {x.dtype}; cast one"
        )
    x, mask = broadcast(x, check_mask(mask, "masked_scatter"), name="masked_scatter")
    holds = reshape(mask, (shapes.total(x.shape),))
    values = spread_values(reshape(source, (shapes.total(source.shape),)), holds, 0, False)
    return where(reshape(holds, x.shape), reshape(values, x.shape), x)


def spread_values(values: Node, mask: Node, axis: int, all_of_them: bool) -> Node:
    """Values that stand side by side along an axis, each at the place where the 1-d mask holds for
    the first, second .. time, for `where`. An IndexError when it runs if there are too few; with
    `all_of_them` also if there are too many."""
    rank = ranks(mask)
    count = values.shape[axis]
    enough = const(True, bool_)
    if all_of_them:
        enough = alu(ops.EQ, total(mask), dim_value(count, int64))
    index = where(mask, where(enough, sub(rank, 1), const(-1, rank.dtype)), const(0, rank.dtype))
    if count == 0:  # there is nothing to read where the mask holds nowhere
        values = const(0, values.dtype, (*values.shape[:axis], 1, *values.shape[axis + 1 :]))
        index = where(mask, const(-1, rank.dtype), const(0, rank.dtype))
    others = [*values.shape[:axis], mask.shape[0], *values.shape[axis + 1 :]]
    column = (mask.shape[0],) + (1,) * (len(values.shape) - axis - 1)
    return gather(values, expand(reshape(index, column), others), axis)


def check_shapes(mask: Node, covered: Sequence[Dim], shape: Shape) -> None:
    """IndexError if a mask has not the sizes of the dimensions that it stands for."""
    fits = len(mask.shape) == len(covered)
    if not fits or not all(shapes.same(a, b) for a, b in zip(mask.shape, covered)):
        raise IndexError(
            f"a mask of shape {text(mask.shape)} does not match a tensor of shape {text(shape)}"
        )
