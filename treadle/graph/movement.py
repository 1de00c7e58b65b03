"""Functions that move elements: reshape and its kin, joining and splitting, padding, triangles.

None of them copies by itself: a movement is folded into the reads of whatever follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    alu,
    cast,
    const,
    expand,
    flip,
    iota,
    normalize_axes,
    normalize_axis,
    pad,
    permute,
    reshape,
    shrink,
    update,
    where,
    window_pair,
)
from treadle.graph.public import public
from treadle.graph.shapes import Dim, as_shape, text
from treadle.ir import ops
from treadle.ir.dtype import DType, bool_, int32, int64, promote
from treadle.ir.node import Node, Shape

_MANY = 8  # from so many parts on, `cat` stores each part into the result instead of choosing


# ---- shape ---------------------------------------------------------------------------------------
@public("reshape", source="PyTorch")
def reshape_method(x: Node, *shape: Any) -> Node:
    """The elements in row-major order in another shape, given as sizes or as one tuple; one size
    may be -1. Never shares memory in a way that a write could show.

    >>> Tensor([1, 2, 3, 4, 5, 6]).reshape(2, -1)
    Tensor([[1, 2, 3],
            [4, 5, 6]])
    """
    return reshape(x, as_shape(*shape))


@public("flatten", source="PyTorch")
def flatten(x: Node, start_dim: int = 0, end_dim: int = -1) -> Node:
    """The dimensions from `start_dim` to `end_dim` merged into one; a 0-d tensor becomes 1-d.

    >>> Tensor.ones(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    rank = len(x.shape)
    first = normalize_axis(start_dim, rank, "start_dim")
    last = normalize_axis(end_dim, rank, "end_dim")
    if first > last:
        raise ValueError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    merged = shapes.total(x.shape[first : last + 1])
    return reshape(x, (*x.shape[:first], merged, *x.shape[last + 1 :]))


@public("unflatten", source="PyTorch")
def unflatten(x: Node, dim: int, sizes: Sequence[Dim]) -> Node:
    """One dimension split into several of the given sizes, of which one may be -1.

    >>> Tensor.ones(2, 6).unflatten(1, (2, 3)).shape
    (2, 2, 3)
    """
    axis = normalize_axis(dim, len(x.shape))
    parts = as_shape(*sizes)
    if -1 in parts:
        known = shapes.total([size for size in parts if size != -1])
        if parts.count(-1) > 1 or known == 0:
            raise ValueError(f"unflatten: the sizes {text(parts)} leave more than one unknown")
        rest = shapes.divide(x.shape[axis], known)
        parts = tuple([rest if size == -1 else size for size in parts])
    if not shapes.same(shapes.total(parts), x.shape[axis]):
        raise ValueError(
            f"unflatten: a dimension of size {shapes.dim_text(x.shape[axis])} does not split into "
            f"{text(sizes)}"
        )
    return reshape(x, (*x.shape[:axis], *parts, *x.shape[axis + 1 :]))


@public("permute", source="PyTorch", aliases=("permute_dims",), namespace=True)
def permute_method(x: Node, *dims: Any) -> Node:
    """The dimensions in another order: dimension `dims[i]` becomes dimension i.

    >>> Tensor.ones(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    return permute(x, as_shape(*dims))


@public("transpose", source="PyTorch", aliases=("swapaxes",))
def transpose(x: Node, dim0: int, dim1: int) -> Node:
    """Two dimensions exchanged.

    >>> Tensor.ones(2, 3, 4).transpose(0, 2).shape
    (4, 3, 2)
    """
    rank = len(x.shape)
    a, b = normalize_axis(dim0, rank, "dim0"), normalize_axis(dim1, rank, "dim1")
    order = list(range(rank))
    if rank:
        order[a], order[b] = order[b], order[a]
    return permute(x, order)


@public("movedim", source="PyTorch", aliases=("moveaxis",), namespace=True)
def movedim(x: Node, source: Any, destination: Any) -> Node:
    """Dimensions moved to other places; the others keep their order.

    >>> Tensor.ones(2, 3, 4).movedim(0, -1).shape
    (3, 4, 2)
    """
    rank = len(x.shape)
    froms, tos = (
        axes if isinstance(axes, (tuple, list)) else (axes,) for axes in (source, destination)
    )
    moved = [normalize_axis(axis, rank, "source") for axis in froms]
    places = [normalize_axis(axis, rank, "destination") for axis in tos]
    if len(moved) != len(places) or len(set(moved)) < len(moved) or len(set(places)) < len(places):
        raise ValueError(
            f"movedim: {source} and {destination} are not as many different dimensions"
        )
    if not rank:
        return x
    order = [axis for axis in range(rank) if axis not in moved]
    for place, axis in sorted(zip(places, moved)):
        order.insert(place, axis)
    return permute(x, order)


@public("T", source="PyTorch", kind="property")
def reversed_dims(x: Node) -> Node:
    """The dimensions in reverse order: of a matrix, its transpose.

    >>> Tensor([[1, 2, 3], [4, 5, 6]]).T
    Tensor([[1, 4],
            [2, 5],
            [3, 6]])
    """
    return permute(x, tuple(range(len(x.shape)))[::-1])


@public("mT", source="PyTorch", kind="property")
def matrix_transpose(x: Node) -> Node:
    """The last two dimensions exchanged. ValueError below two dimensions.

    >>> Tensor.ones(5, 2, 3).mT.shape
    (5, 3, 2)
    """
    if len(x.shape) < 2:
        raise ValueError(f"mT needs two dimensions or more, not the shape {text(x.shape)}")
    return transpose(x, -2, -1)


@public("H", source="PyTorch", kind="property")
def hermitian(x: Node) -> Node:
    """The conjugate transpose of a matrix, which for real numbers is the transpose. ValueError
    unless there are two dimensions, or none.

    >>> Tensor([[1, 2], [3, 4]]).H.tolist()
    [[1, 3], [2, 4]]
    """
    if len(x.shape) not in (0, 2):
        raise ValueError(f"H is of a matrix, not of the shape {text(x.shape)}: use mH")
    return reversed_dims(x)


@public("mH", source="PyTorch", kind="property")
def matrix_hermitian(x: Node) -> Node:
    """The conjugate transposes of the matrices in the last two dimensions; of real numbers: mT.
    ValueError below two dimensions.

    >>> treadle.ones(5, 2, 3).mH.shape
    (5, 3, 2)
    """
    if len(x.shape) < 2:
        raise ValueError(f"mH needs two dimensions or more, not the shape {text(x.shape)}")
    return matrix_transpose(x)


@public("adjoint", source="PyTorch")
def adjoint(x: Node) -> Node:
    """The conjugate transposes of the matrices in the last two dimensions: `mH`.

    >>> Tensor([[1.0, 2.0]]).adjoint().tolist()
    [[1.0], [2.0]]
    """
    return matrix_hermitian(x)


@public("squeeze", source="PyTorch")
def squeeze(x: Node, dim: Any = None) -> Node:
    """Without the dimensions of size 1: all of them, or those of `dim` (an int or several) that
    have size 1.

    >>> Tensor.ones(2, 1, 3).squeeze(1).shape
    (2, 3)
    """
    axes = normalize_axes(dim, len(x.shape))
    left = [size for axis, size in enumerate(x.shape) if axis not in axes or size != 1]
    return reshape(x, tuple(left))


@public("unsqueeze", source="PyTorch")
def unsqueeze(x: Node, dim: int) -> Node:
    """With a dimension of size 1 more, at `dim` of the result.

    >>> Tensor([1, 2]).unsqueeze(1)
    Tensor([[1],
            [2]])
    """
    axis = normalize_axis(dim, len(x.shape), new=True)
    return reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


@public("expand", source="PyTorch", aliases=("broadcast_to",), namespace=True)
def expand_method(x: Node, *shape: Any) -> Node:
    """Stretched to a shape: a size of 1 becomes any size, -1 keeps one, new ones stand in front.

    >>> Tensor([[1], [2]]).expand(-1, 3)
    Tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return expand(x, as_shape(*shape))


@public("expand_as", source="PyTorch")
def expand_as(x: Node, other: Node) -> Node:
    """Stretched to the shape of `other`.

    >>> Tensor([1, 2]).expand_as(Tensor.ones(2, 2))
    Tensor([[1, 2],
            [1, 2]])
    """
    return expand(x, other.shape)


# ---- order ---------------------------------------------------------------------------------------
@public("flip", source="PyTorch", namespace=True)
def flip_method(x: Node, *dims: Any) -> Node:
    """In reverse order along the given dimensions (none given: all).

    >>> Tensor([1, 2, 3]).flip(0)
    Tensor([3, 2, 1])
    """
    return flip(x, as_shape(*dims) if dims and dims != (None,) else None)


@public("roll", source="PyTorch", namespace=True)
def roll(x: Node, shifts: Any, dims: Any = None) -> Node:
    """Moved by `shifts` places along `dims` (one number: along each), what leaves at the end
    entering at the start. Without `dims` the tensor is rolled as if it were flat.

    >>> Tensor([1, 2, 3]).roll(1)
    Tensor([3, 1, 2])
    """
    if dims is None:
        flat = reshape(x, (shapes.total(x.shape),))
        return reshape(roll(flat, shifts, 0), x.shape)
    axes = dims if isinstance(dims, (tuple, list)) else (dims,)
    amounts = shifts if isinstance(shifts, (tuple, list)) else (shifts,) * len(axes)
    if len(amounts) != len(axes):
        raise ValueError(f"roll: {len(amounts)} shifts for {len(axes)} dims")
    for amount, dim in zip(amounts, axes):
        axis = normalize_axis(dim, len(x.shape))
        size = x.shape[axis]
        if not isinstance(size, int):
            raise ValueError("roll: the dimension's size is not known; use slices and cat")
        shift = shapes.as_int(amount, "a shift") % size if size else 0
        if shift:
            x = cat([narrow(x, axis, size - shift, size), narrow(x, axis, 0, size - shift)], axis)
    return x


def narrow(x: Node, axis: int, start: Dim, stop: Dim, inside: bool = False) -> Node:
    """The elements from `start` up to `stop` along one axis (`inside`: as for `shrink`)."""
    regions: list[tuple[Dim, Dim]] = [(0, size) for size in x.shape]
    regions[axis] = (start, stop)
    return shrink(x, regions, inside)


@public("repeat", source="PyTorch")
def repeat(x: Node, *repeats: Any) -> Node:
    """The whole tensor repeated, `repeats[i]` times along dimension i; more numbers than dimensions
    add dimensions in front.

    >>> Tensor([1, 2]).repeat(2)
    Tensor([1, 2, 1, 2])
    """
    counts = as_shape(*repeats)
    missing = len(counts) - len(x.shape)
    if missing < 0:
        raise ValueError(
            f"repeat: {len(counts)} numbers for a tensor of shape {x.shape}: give one for each of "
            f"its {len(x.shape)} dimensions"
        )
    shapes.check_sizes(counts, "repeat")
    sizes = (1,) * missing + x.shape
    once = tuple([s for size in sizes for s in (1, size)])
    stretched = tuple([s for count, size in zip(counts, sizes) for s in (count, size)])
    result = tuple([shapes.multiply(count, size) for count, size in zip(counts, sizes)])
    return reshape(expand(reshape(x, once), stretched), result)


@public("tile", source="PyTorch", namespace=True)
def tile(x: Node, *repeats: Any) -> Node:
    """As `repeat`, but fewer numbers than dimensions are for the last dimensions.

    >>> Tensor([1, 2]).tile(2, 1)
    Tensor([[1, 2],
            [1, 2]])
    """
    counts = as_shape(*repeats)
    return repeat(x, (1,) * (len(x.shape) - len(counts)) + counts)


# ---- join and split ------------------------------------------------------------------------------
def listed(tensors: tuple[Any, ...], dim: Any, name: str) -> tuple[list[Node], Any]:
    """The tensors and dim of calls like `cat([a, b], 1)`, `cat(a, b, dim=1)`, `a.cat(b, dim=1)`."""
    found: list[Node] = []
    rest = list(tensors)
    is_behind_list = False
    while rest and isinstance(rest[0], (Node, tuple, list)):
        if is_behind_list and shapes.is_number(rest[0]):
            break  # it is the dim
        part = rest.pop(0)
        is_behind_list = not isinstance(part, Node)
        found.extend(part if is_behind_list else [part])
    if len(rest) > 1 or (rest and dim is not None):
        raise TypeError(f"{name} takes tensors and one dim, not {shapes.words(rest)} as well")
    if not found:
        raise ValueError(f"{name} needs at least one tensor")
    for part in found:
        if not isinstance(part, Node):
            raise TypeError(f"{name} takes tensors, not {shapes.words(part)}")
    return found, (rest[0] if rest else 0 if dim is None else dim)


@public("cat", source="PyTorch", aliases=("concat", "concatenate"))
def cat(*tensors: Any, dim: int | None = None) -> Node:
    """Tensors joined along a dimension (0 unless given); their other sizes are equal. Takes a list
    or several tensors; dtypes are promoted.

    >>> Tensor.cat([Tensor([1, 2]), Tensor([3])])
    Tensor([1, 2, 3])
    """
    parts, at = listed(tensors, dim, "cat")
    first = next((part for part in parts if part.shape != (0,)), parts[0])
    if not first.shape:
        raise ValueError("cat: 0-d tensors cannot be joined; use stack")
    axis = normalize_axis(at, len(first.shape))
    dtype = first.dtype
    for part in parts:
        dtype = promote(dtype, part.dtype)
        if part.shape == (0,):  # PyTorch lets it stand for nothing, whatever the others' shapes
            continue
        agree = len(part.shape) == len(first.shape)
        for number, (a, b) in enumerate(zip(part.shape, first.shape)):
            agree = agree and (number == axis or shapes.same(a, b))
        if not agree:
            raise ValueError(
                f"cat: the shapes {text(first.shape)} and {text(part.shape)} differ in more than "
                f"dimension {axis}"
            )
    solid = [cast(part, dtype) for part in parts if part.shape != (0,)]
    if len(solid) < 2:
        return solid[0] if solid else cast(first, dtype)
    return _store_parts(solid, axis) if len(solid) > _MANY else _choose_part(solid, axis)


def _offsets(parts: list[Node], axis: int) -> list[Dim]:
    """Where each part begins, and the size of all."""
    offsets: list[Dim] = [0]
    for part in parts:
        offsets.append(shapes.add(offsets[-1], part.shape[axis]))
    return offsets


def _choose_part(parts: list[Node], axis: int) -> Node:
    """Few parts: each element chooses the part that it is in, and the choice fuses with what
    follows. (A sum of padded parts would be shorter, but makes -0.0 to 0.0.)"""
    offsets = _offsets(parts, axis)
    size = offsets[-1]
    column = (size,) + (1,) * (len(parts[0].shape) - axis - 1)
    placed = []
    for part, start, end in zip(parts, offsets, offsets[1:]):
        amounts: list[tuple[Dim, Dim]] = [(0, 0)] * len(part.shape)
        amounts[axis] = (start, shapes.subtract(size, end))
        placed.append(pad(part, amounts))
    result = placed[0]
    for part, start in zip(placed[1:], offsets[1:]):
        before = pad(const(True, bool_, (start,)), [(0, shapes.subtract(size, start))])
        result = where(reshape(before, column), result, part)
    return result


def _store_parts(parts: list[Node], axis: int) -> Node:
    """Many parts: each is stored into its region of the result, so that the work for an element
    does not grow with their number."""
    offsets = _offsets(parts, axis)
    result = const(0, parts[0].dtype, _with_size(parts[0].shape, axis, offsets[-1]))
    for part, start in zip(parts, offsets):
        region: list[tuple[Dim, int]] = [(0, 1)] * len(part.shape)
        region[axis] = (start, 1)
        result = update(result, part, region)
    return result


def _with_size(shape: Shape, axis: int, size: Dim) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


@public("stack", source="PyTorch", namespace=True)
def stack(*tensors: Any, dim: int | None = None) -> Node:
    """Tensors of one shape joined along a new dimension (the first unless given).

    >>> Tensor.stack([Tensor([1, 2]), Tensor([3, 4])])
    Tensor([[1, 2],
            [3, 4]])
    """
    parts, at = listed(tensors, dim, "stack")
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            raise ValueError(
                f"stack: the shapes {text(parts[0].shape)} and {text(part.shape)} differ"
            )
    axis = normalize_axis(at, len(parts[0].shape), new=True)
    return cat([unsqueeze(part, axis) for part in parts], dim=axis)


@public("split", source="PyTorch", namespace=True)
def split(x: Node, split_size: Any, dim: int = 0) -> tuple[Node, ...]:
    """The tensor in parts along a dimension: of `split_size` each (the last may be smaller), or of
    the sizes in a list, which add up to the dimension's.

    >>> Tensor([1, 2, 3]).split(2)
    (Tensor([1, 2]), Tensor([3]))
    """
    axis, size = _known_size(x, dim, "split")
    if isinstance(split_size, (tuple, list)):
        sizes = [shapes.as_int(part, "a size") for part in split_size]
        if sum(sizes) != size or min(sizes, default=0) < 0:
            raise ValueError(f"split: the sizes {sizes} do not add up to {size}")
    else:
        step = shapes.as_int(split_size, "split_size")
        if step < 1 and (size or step < 0):
            raise ValueError(f"split: split_size must be 1 or more, not {step}")
        sizes = [min(step, size - start) for start in range(0, size, step or 1)] or [0]
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    return tuple([narrow(x, axis, end - part, end) for part, end in zip(sizes, ends)])


@public("chunk", source="PyTorch", namespace=True)
def chunk(x: Node, chunks: int, dim: int = 0) -> tuple[Node, ...]:
    """The tensor in (at most) `chunks` parts of equal size along a dimension, the last perhaps
    smaller.

    >>> Tensor([1, 2, 3, 4, 5]).chunk(2)
    (Tensor([1, 2, 3]), Tensor([4, 5]))
    """
    if shapes.as_int(chunks, "chunks") < 1:
        raise ValueError(f"chunk: chunks must be 1 or more, not {chunks}")
    _, size = _known_size(x, dim, "chunk")
    return split(x, -(-size // chunks) if size else [0] * chunks, dim)


@public("unbind", source="PyTorch", aliases=("unstack",), namespace=True)
def unbind(x: Node, dim: int = 0) -> tuple[Node, ...]:
    """The slices along a dimension, without it.

    >>> Tensor([[1, 2], [3, 4]]).unbind()
    (Tensor([1, 2]), Tensor([3, 4]))
    """
    axis, size = _known_size(x, dim, "unbind")
    left = (*x.shape[:axis], *x.shape[axis + 1 :])
    return tuple([reshape(narrow(x, axis, n, n + 1), left) for n in range(size)])


def _known_size(x: Node, dim: int, name: str) -> tuple[int, int]:
    """The axis and its size. ValueError for a 0-d tensor and for a symbolic size."""
    if not x.shape:
        raise ValueError(f"{name}: a 0-d tensor has no dimension to divide")
    axis = normalize_axis(dim, len(x.shape))
    size = x.shape[axis]
    if not isinstance(size, int):
        raise ValueError(
            f"{name}: dimension {axis} has the size {shapes.dim_text(size)}, so the number of "
            "parts is not known here: take parts with slices"
        )
    return axis, size


# ---- padding -------------------------------------------------------------------------------------
@public("pad", source="PyTorch")
def pad_method(
    x: Node, pad: Any, mode: str = "constant", value: bool | int | float | None = None
) -> Node:
    """With elements added at the ends of dimensions. `pad` is PyTorch's flat list, (low, high) of
    the last dimension first; or a tuple of pairs, one per dimension, the first dimension first.
    Negative amounts remove elements.

    mode: "constant" (filled with `value`, or 0), "reflect" (mirrored at the border element),
    "replicate" (the border element) or "circular" (from the other end). Elements are removed
    first; of "reflect" and "replicate" last, so that what one end removes the other may repeat.

    >>> Tensor([1, 2]).pad((1, 2))
    Tensor([0, 1, 2, 0, 0])
    """
    pairs = _pairs(pad, len(x.shape))
    if mode == "constant":
        return pad_with(_cropped(x, pairs), _added(pairs), 0 if value is None else value)
    if mode not in _BORDERS:
        raise ValueError(f"pad: mode is 'constant', {', '.join(map(repr, _BORDERS))}, not {mode!r}")
    if value:
        raise ValueError(f"pad: value={value} is for mode='constant', not for {mode!r}")
    if mode == "circular":
        return _bordered(_cropped(x, pairs), _added(pairs), mode)
    return _cropped(_bordered(x, _added(pairs), mode), pairs)


def _added(pairs: Sequence[tuple[Dim, Dim]]) -> list[tuple[Dim, Dim]]:
    return [(shapes.greatest(0, low), shapes.greatest(0, high)) for low, high in pairs]


def _cropped(x: Node, pairs: Sequence[tuple[Dim, Dim]]) -> Node:
    """Without what negative amounts remove. ValueError if there is not so much."""
    kept = [
        (shapes.greatest(0, shapes.subtract(0, low)), shapes.add(size, shapes.least(0, high)))
        for (low, high), size in zip(pairs, x.shape)
    ]
    for axis, (start, stop) in enumerate(kept):
        if shapes.at_most(start, stop) is False:
            raise ValueError(
                f"pad: {text(pairs[axis])} takes more than dimension {axis} of {text(x.shape)} has"
            )
    return shrink(x, kept)


def _bordered(x: Node, added: Sequence[tuple[Dim, Dim]], mode: str) -> Node:
    """With elements of x itself added at the ends of dimensions, one dimension after the other."""
    for axis, (low, high) in enumerate(added):
        if low == 0 and high == 0:
            continue
        size = x.shape[axis]
        if not all(isinstance(n, int) for n in (low, high, size)):
            raise ValueError(f"pad: mode={mode!r} needs sizes that are known; use mode='constant'")
        x = cat(_BORDERS[mode](x, axis, low, high), dim=axis)
    return x


pad_with = pad


def _pairs(amounts: Any, rank: int) -> list[tuple[Dim, Dim]]:
    """What the user gave as `pad`, as one (low, high) per dimension, the first dimension first."""
    if not isinstance(amounts, (tuple, list)):
        raise TypeError(f"pad: give a list of amounts or pairs, not {shapes.words(amounts)}")
    if amounts and isinstance(amounts[0], (tuple, list)):
        if len(amounts) != rank or any(len(pair) != 2 for pair in amounts):
            raise ValueError(f"pad: {len(amounts)} pairs for a tensor of {rank} dimensions")
        return [(shapes.as_dim(low), shapes.as_dim(high)) for low, high in amounts]
    flat = [shapes.as_dim(amount) for amount in amounts]
    if len(flat) % 2 or len(flat) > 2 * rank:
        raise ValueError(
            f"pad: {len(flat)} amounts for a tensor of {rank} dimensions; give (low, high) of the "
            "last dimension, then of the one before, and so on"
        )
    last_first = list(zip(flat[0::2], flat[1::2]))
    return [(0, 0)] * (rank - len(last_first)) + last_first[::-1]


def _reflected(x: Node, axis: int, low: int, high: int) -> list[Node]:
    size = x.shape[axis]
    if low >= size or high >= size:
        raise ValueError(f"pad: 'reflect' adds less than the size {size}, not {(low, high)}")
    before, after = narrow(x, axis, 1, low + 1), narrow(x, axis, size - 1 - high, size - 1)
    return [flip(before, axis), x, flip(after, axis)]


def _replicated(x: Node, axis: int, low: int, high: int) -> list[Node]:
    size = x.shape[axis]
    if size == 0:
        raise ValueError("pad: 'replicate' needs an element at the border, and there is none")
    first, last = narrow(x, axis, 0, 1), narrow(x, axis, size - 1, size)
    before = expand(first, _with_size(x.shape, axis, low))
    return [before, x, expand(last, _with_size(x.shape, axis, high))]


def _wrapped(x: Node, axis: int, low: int, high: int) -> list[Node]:
    size = x.shape[axis]
    if low > size or high > size:
        raise ValueError(f"pad: 'circular' adds at most the size {size}, not {(low, high)}")
    return [narrow(x, axis, size - low, size), x, narrow(x, axis, 0, high)]


_BORDERS: dict[str, Callable[[Node, int, int, int], list[Node]]] = {
    "reflect": _reflected,
    "replicate": _replicated,
    "circular": _wrapped,
}


@public("shrink", source="tinygrad")
def shrink_method(x: Node, regions: Sequence[tuple[Dim, Dim] | None]) -> Node:
    """The elements from `start` up to `stop`, a pair per dimension; None keeps a dimension.

    >>> Tensor([1, 2, 3, 4]).shrink([(1, 3)])
    Tensor([2, 3])
    """
    return shrink(x, [(0, size) if r is None else r for r, size in zip(regions, x.shape)])


# ---- diagonals and triangles ---------------------------------------------------------------------
@public("diagonal", source="PyTorch")
def diagonal(x: Node, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Node:
    """The diagonal of two dimensions as a new last dimension; offset > 0 above, < 0 below it.

    >>> Tensor([[1, 2], [3, 4]]).diagonal()
    Tensor([1, 4])
    """
    rank = len(x.shape)
    if rank < 2:
        raise ValueError(f"diagonal needs two dimensions or more, not the shape {text(x.shape)}")
    rows, columns = normalize_axis(dim1, rank, "dim1"), normalize_axis(dim2, rank, "dim2")
    if rows == columns:
        raise ValueError(f"diagonal: dim1 and dim2 are both dimension {rows}")
    offset = shapes.as_int(offset, "offset")
    x = movedim(x, (rows, columns), (rank - 2, rank - 1))
    height, width = x.shape[-2:]
    down, right = max(0, -offset), max(0, offset)
    length = shapes.least(shapes.subtract(height, down), shapes.subtract(width, right))
    length = shapes.greatest(0, length)
    before = x.shape[:-2]
    if length == 0:
        return reshape(shrink(x, [*((0, size) for size in before), (0, 0), (0, 0)]), (*before, 0))
    region = [(down, shapes.add(down, length)), (right, shapes.add(right, length))]
    square = shrink(x, [*((0, size) for size in before), *region])
    # the one window of the square whose element k is [k, k]
    return reshape(window_pair(square, rank - 2, 1, 1, 1), (*before, length))


def _index_type(*sizes: Dim) -> DType:
    """The integer type in which positions are compared: 32 bits (more lanes) if they fit."""
    return int32 if all(shapes.bounds(size)[1] < 2**31 for size in sizes) else int64


def on_or_below(height: Dim, width: Dim, diagonal: int) -> Node:
    """A bool matrix: whether column <= row + diagonal."""
    dtype = _index_type(height, width, shapes.add(height, abs(diagonal)))
    row = reshape(iota(height, dtype), (height, 1))
    return alu(ops.LE, reshape(iota(width, dtype), (1, width)), alu(ops.ADD, row, diagonal))


def _matrix(x: Node, name: str) -> tuple[Dim, Dim]:
    if len(x.shape) < 2:
        raise ValueError(f"{name} needs two dimensions or more, not the shape {text(x.shape)}")
    return x.shape[-2], x.shape[-1]


@public("tril", source="PyTorch", namespace=True)
def tril(x: Node, diagonal: int = 0) -> Node:
    """The last two dimensions with 0 above the given diagonal.

    >>> Tensor([[1, 2], [3, 4]]).tril()
    Tensor([[1, 0],
            [3, 4]])
    """
    below = on_or_below(*_matrix(x, "tril"), shapes.as_int(diagonal, "diagonal"))
    return where(below, x, const(0, x.dtype))


@public("triu", source="PyTorch", namespace=True)
def triu(x: Node, diagonal: int = 0) -> Node:
    """The last two dimensions with 0 below the given diagonal.

    >>> Tensor([[1, 2], [3, 4]]).triu()
    Tensor([[1, 2],
            [0, 4]])
    """
    below = on_or_below(*_matrix(x, "triu"), shapes.as_int(diagonal, "diagonal") - 1)
    return where(below, const(0, x.dtype), x)
