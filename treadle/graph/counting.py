"""Counting and grouping: unique, bincount, histc, one_hot, repeat_interleave, multinomial.

Where the size of a result depends on values, it is read (`masks.py` says how), unless an argument
gives it.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from treadle.graph import shapes
from treadle.graph.build import (
    Operand,
    alu,
    cast,
    const,
    dim_value,
    expand,
    gather,
    iota,
    node_of,
    normalize_axis,
    permute,
    reduce,
    reshape,
    scatter,
    where,
)
from treadle.graph.elementwise import add, div, eq, ge, le, logical_not, lt, mul, sub
from treadle.graph.functions import log1p
from treadle.graph.masks import Read, places, ranks, total
from treadle.graph.movement import movedim, narrow, stack
from treadle.graph.ordering import key_of, order, place_along, position_type
from treadle.graph.parts import parts_of
from treadle.graph.public import public
from treadle.graph.random import rand
from treadle.graph.reduction import any_
from treadle.graph.running import cumsum
from treadle.graph.scan import scan
from treadle.graph.shapes import Dim, text
from treadle.graph.sorting import is_new, searchsorted, topk
from treadle.ir import ops
from treadle.ir.dtype import bool_, float32, float64, int64
from treadle.ir.node import Node

X = TypeVar("X")

_OF_VALUES = "whose result is of a size that values decide,"


# ---- unique --------------------------------------------------------------------------------------
@public("unique", source="PyTorch", kind="reads", gradient="no")
def unique(
    x: Node,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    read: Read,
) -> Any:
    """The different elements in ascending order (whatever `sorted` says), or along `dim` the
    different slices; with return_inverse also, for each element, which of them it is, and with
    return_counts how often each stands, int64. Every NaN is different.

    >>> Tensor([3, 1, 3]).unique(return_counts=True)
    (Tensor([1, 3]), Tensor([1, 2]))
    """
    rows = _slices(x, dim)
    ordered = _order_of_rows(rows)
    return _grouped(x, rows, ordered, dim, (return_inverse, return_counts), "unique", read)


@public("unique_consecutive", source="PyTorch", kind="reads", gradient="no")
def unique_consecutive(
    x: Node,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    read: Read,
) -> Any:
    """As `unique`, of runs: elements (or slices) that equal the one before them are left out.

    >>> Tensor([1, 1, 2, 1]).unique_consecutive()
    Tensor([1, 2, 1])
    """
    rows = _slices(x, dim)
    wanted = (return_inverse, return_counts)
    return _grouped(x, rows, None, dim, wanted, "unique_consecutive", read)


def _slices(x: Node, dim: int | None) -> Node:
    """What is compared, as the rows of a matrix: elements, or slices along a dimension."""
    if dim is None:
        return reshape(x, (shapes.total(x.shape), 1))
    if not x.shape:
        raise ValueError("unique: a 0-d tensor has no dimension to compare slices along")
    moved = movedim(x, dim, 0)
    return reshape(moved, (moved.shape[0], shapes.total(moved.shape[1:])))


def _order_of_rows(rows: Node) -> Node:
    """The rows of a matrix in lexicographic order (of complex numbers the real part comes first):
    sorted, stably, by each column, the last one first; a loop over the columns."""
    parts = [key_of(part) for part in parts_of(rows)]
    keys = reshape(
        stack(parts, dim=-1), (rows.shape[0], shapes.multiply(rows.shape[1], len(parts)))
    )
    count, width = keys.shape
    start = iota(count, position_type(count))
    if width == 1:
        return order(reshape(keys, (count,)))

    def by_column(places_: Node, column: Node) -> tuple[Node, tuple[()]]:
        return gather(places_, order(gather(column, places_, 0)), 0), ()

    columns = permute(keys, (1, 0))
    found: Node = scan(by_column, start, columns, reverse=True)[0]
    return found


def _grouped(
    x: Node,
    rows: Node,
    ordered: Node | None,
    dim: int | None,
    wanted: tuple[bool, bool],
    name: str,
    read: Read,
) -> Any:
    """The first row of each group of equal neighbours, in an order; and the inverse and the counts
    if they are wanted."""
    size, width = rows.shape
    place = iota(size, int64) if ordered is None else cast(ordered, int64)
    column = expand(reshape(place, (size, 1)), rows.shape)
    moved = rows if ordered is None else gather(rows, column, 0)
    first = reduce("or", is_new(moved, 0), 1) if width else lt(iota(size, int64), 1)
    count, (first, rank, place) = read(
        f"{name}, {_OF_VALUES}", total(first), first, ranks(first), place
    )
    starts = places(first, rank, count)
    chosen = gather(place, starts, 0)
    across = expand(reshape(chosen, (count, 1)), (count, width))
    values = gather(rows, across, 0) if count else narrow(rows, 0, 0, 0)
    if dim is None:
        result = reshape(values, (count,))
    else:
        axis = normalize_axis(dim, len(x.shape))
        others = [n for number, n in enumerate(x.shape) if number != axis]
        result = movedim(reshape(values, (count, *others)), 0, axis)
    found = [result]
    if wanted[0]:
        group = sub(cast(rank, int64), 1)
        inverse = place_along(place, group) if shapes.at_most(1, size) else group
        found.append(reshape(inverse, x.shape) if dim is None else inverse)
    if wanted[1]:
        ends = scatter_end(starts, size, count)
        found.append(sub(ends, starts))
    return tuple(found) if len(found) > 1 else result


def scatter_end(starts: Node, size: Dim, count: int) -> Node:
    """Where the groups that begin at `starts` end: where the next begins, the last at `size`."""
    if count == 0:
        return starts
    following = gather(starts, alu(ops.MIN, add(iota(count, int64), 1), count - 1), 0)
    return where(lt(iota(count, int64), count - 1), following, dim_value(size, int64))


class UniqueAllResult(NamedTuple, Generic[X]):
    """Different elements, where each stands first, which each element is, how often each stands."""

    values: X
    indices: X
    inverse_indices: X
    counts: X


class UniqueCountsResult(NamedTuple, Generic[X]):
    """Different elements, and how often each stands."""

    values: X
    counts: X


class UniqueInverseResult(NamedTuple, Generic[X]):
    """Different elements, and which of them each element is."""

    values: X
    inverse_indices: X


@public(
    "unique_values", source="Array API", method=False, namespace=True, kind="reads", gradient="no"
)
def unique_values(x: Node, /, *, read: Read) -> Node:
    """The different elements in ascending order. Every NaN is different."""
    found: Node = unique(x, True, read=read)
    return found


@public(
    "unique_counts", source="Array API", method=False, namespace=True, kind="reads", gradient="no"
)
def unique_counts(x: Node, /, *, read: Read) -> UniqueCountsResult[Node]:
    """The different elements in ascending order, and how often each stands. Every NaN is
    different."""
    return UniqueCountsResult(*unique(x, True, False, True, read=read))


@public(
    "unique_inverse", source="Array API", method=False, namespace=True, kind="reads", gradient="no"
)
def unique_inverse(x: Node, /, *, read: Read) -> UniqueInverseResult[Node]:
    """The different elements in ascending order, and which of them each element is. Every NaN is
    different."""
    return UniqueInverseResult(*unique(x, True, True, read=read))


@public("unique_all", source="Array API", method=False, namespace=True, kind="reads", gradient="no")
def unique_all(x: Node, /, *, read: Read) -> UniqueAllResult[Node]:
    """The different elements in ascending order, where each stands first, which of them each
    element is, and how often each stands. Every NaN is different."""
    values, groups, numbers = unique(x, True, True, True, read=read)
    flat = reshape(groups, (shapes.total(groups.shape),))
    size = flat.shape[0]
    base = dim_value(size, int64)
    first = scatter(expand(base, numbers.shape), flat, iota(size, int64), 0, "min")
    return UniqueAllResult(values, first, groups, numbers)


# ---- counts --------------------------------------------------------------------------------------
def _largest(x: Node, name: str, read: Read) -> int:
    """1 + the greatest of the integers x, at least 0: how many kinds there are."""
    if shapes.is_empty(x.shape):
        return 0
    greatest = reduce("max", cast(x, int64))
    return max(0, read(f"{name}, {_OF_VALUES}", add(greatest, 1))[0])


@public("isin", source="PyTorch", gradient="int")
def isin(
    x: Node, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False
) -> Node:
    """Whether each element is one of `test_elements`; with `invert` whether it is none of them.
    assume_unique: changes nothing, every element is compared with every other.

    >>> Tensor([1, 2, 3]).isin(Tensor([1, 3]))
    Tensor([ True, False,  True])
    """
    tests = node_of(test_elements)
    row = reshape(tests, (shapes.total(tests.shape),))
    found = any_(eq(reshape(x, (*x.shape, 1)), row), -1)
    return logical_not(found) if invert else found


@public("bincount", source="PyTorch", kind="reads", gradient="no")
def bincount(x: Node, weights: Node | None = None, minlength: int = 0, *, read: Read) -> Node:
    """How often each of 0, 1, 2 .. stands in a row of integers, int64, up to the greatest and at
    least `minlength` of them; with weights the sum of those, in their dtype (of integers:
    float64). An integer below 0 is an IndexError when it runs. The greatest is read: inside `jit`
    write `zeros(n).index_add(..)`.

    >>> Tensor([1, 1, 3]).bincount()
    Tensor([0, 2, 0, 1])
    """
    if not (x.dtype.is_int or x.dtype is bool_):
        raise TypeError(f"bincount: counts integers, not {x.dtype}: cast the tensor first")
    if len(x.shape) != 1:
        raise ValueError(f"bincount: takes a row of integers, not {shapes.words(x)}")
    minlength = shapes.as_int(minlength, "minlength")
    if minlength < 0:
        raise ValueError(f"bincount: minlength is 0 or more, not {minlength}")
    if weights is not None and not shapes.same_shape(weights.shape, x.shape):
        raise ValueError(
            f"bincount: the weights have the shape {text(weights.shape)}, not {text(x.shape)}"
        )
    count = max(minlength, _largest(x, "bincount", read))
    if weights is None:
        values = const(1, int64, x.shape)
    else:
        values = weights if weights.dtype.is_float else cast(weights, float64)
    if shapes.is_empty(x.shape):
        return const(0, values.dtype, (count,))
    return scatter(const(0, values.dtype, (max(1, count),)), cast(x, int64), values, 0, "add")


@public("histc", source="PyTorch", gradient="no")
def histc(x: Node, bins: int = 100, min: int | float = 0, max: int | float = 0) -> Node:
    """How many elements lie in each of `bins` equal parts of min..max, in the dtype of x; min ==
    max means from the least to the greatest element. What lies outside, and NaN, is not counted.

    >>> Tensor([1.0, 2.0, 2.5]).histc(bins=3, min=0, max=3)
    Tensor([0., 1., 2.])
    """
    if shapes.as_int(bins, "bins") < 1:
        raise ValueError(f"histc: bins is 1 or more, not {bins}")
    if max < min:
        raise ValueError(f"histc: max must not be below min: {max} < {min}")
    wide = x.dtype.accumulator if x.dtype.is_float else float32
    flat = cast(reshape(x, (shapes.total(x.shape),)), wide)
    if shapes.is_empty(flat.shape):
        return const(0, x.dtype, (bins,))
    low, high = const(float(min), wide), const(float(max), wide)
    if min == max:
        low, high = (reduce("min", flat), reduce("max", flat)) if min == 0 else (low, high)
        same = eq(low, high)
        low, high = where(same, sub(low, 1), low), where(same, add(high, 1), high)
    inside = alu(ops.AND, ge(flat, low), le(flat, high))
    part = cast(div(mul(sub(flat, low), bins), sub(high, low)), int64)
    place = where(inside, alu(ops.MAX, alu(ops.MIN, part, bins - 1), 0), bins)
    counts = scatter(const(0, int64, (bins + 1,)), place, const(1, int64, flat.shape), 0, "add")
    return cast(narrow(counts, 0, 0, bins), x.dtype)


@public("one_hot", source="PyTorch", gradient="int", kind="reads")
def one_hot(x: Node, num_classes: int = -1, *, read: Read) -> Node:
    """A vector of `num_classes` for each class id, with 1 at its place, int64, as a new last
    dimension. IndexError when it runs if an id is not one of 0 .. num_classes - 1. -1: as many
    classes as the greatest id needs, which is read.

    >>> Tensor([0, 2]).one_hot(3)
    Tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if not x.dtype.is_int:
        raise TypeError(f"one_hot: class ids are integers, not {x.dtype}")
    classes = shapes.as_dim(num_classes)
    if isinstance(classes, int) and classes == -1:
        classes = _largest(x, "one_hot", read)
    if shapes.at_most(1, classes) is not True:
        raise ValueError(
            f"one_hot: num_classes={num_classes}: give the number of classes, 1 or more, or -1 "
            "where an id says how many"
        )
    ids, rank = cast(x, int64), len(x.shape)
    column = reshape(ids, (*ids.shape, 1))
    zeros = const(0, int64, (*ids.shape, classes))
    return scatter(zeros, column, const(1, int64, column.shape), rank)


# ---- repetition ----------------------------------------------------------------------------------
@public("repeat_interleave", source="PyTorch", kind="reads")
def repeat_interleave(
    x: Node, repeats: Any, dim: int | None = None, *, output_size: Any = None, read: Read
) -> Node:
    """Each element (without `dim`, of the flattened tensor) or slice along `dim` repeated:
    `repeats` times, or as often as the element of a tensor `repeats` says, whose sum is read unless
    it is given as `output_size`.

    >>> Tensor([1, 2]).repeat_interleave(2), Tensor([1, 2]).repeat_interleave(Tensor([0, 3]))
    (Tensor([1, 1, 2, 2]), Tensor([2, 2, 2]))
    """
    if dim is None or not x.shape:
        x = reshape(x, (shapes.total(x.shape),))
    axis = normalize_axis(0 if dim is None else dim, len(x.shape))
    before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    if not isinstance(repeats, Node):
        times = shapes.as_dim(repeats)
        shapes.check_sizes((times,), "repeat_interleave")
        wide = expand(reshape(x, (*before, size, 1, *after)), (*before, size, times, *after))
        return reshape(wide, (*before, shapes.multiply(size, times), *after))
    if len(repeats.shape) > 1 or not repeats.dtype.is_int:
        raise ValueError(
            f"repeat_interleave: repeats is an int or a row of them, not {shapes.words(repeats)}"
        )
    counts = cast(expand(repeats, (size,)), int64)
    upto = cumsum(counts, 0)
    if output_size is None:
        number = where(lt(reduce("min", counts), 0), -1, reduce("add", counts))
        output_size, (upto,) = read(f"repeat_interleave, {_OF_VALUES}", number, upto)
        if output_size < 0:
            raise ValueError("repeat_interleave: a number of repeats is below 0")
    length = shapes.as_dim(output_size)
    index = searchsorted(upto, iota(length, int64), right=True)
    column = reshape(index, (length,) + (1,) * len(after))
    return gather(x, expand(column, (*before, length, *after)), axis)


# ---- draws ---------------------------------------------------------------------------------------
@public("multinomial", source="PyTorch", gradient="int", kind="keyed")
def multinomial(x: Node, num_samples: int, replacement: bool = False, *, random_key: Any) -> Node:
    """Indices drawn with the probabilities that a row (or each row of a matrix) gives, which need
    not add up to 1: int64, `num_samples` of them as the last dimension. Without replacement an
    index is drawn once; IndexError when it runs if too few have a probability above 0.

    >>> Tensor([0.0, 1.0, 0.0]).multinomial(1)
    Tensor([1])
    """
    if not x.dtype.is_float:
        raise TypeError(f"multinomial: probabilities are floats, not {x.dtype}: cast them first")
    if len(x.shape) not in (1, 2):
        raise ValueError(f"multinomial: takes a row or a matrix of floats, not {shapes.words(x)}")
    num_samples = shapes.as_int(num_samples, "num_samples")
    size = x.shape[-1]
    if num_samples < 1 or (not replacement and shapes.at_most(num_samples, size) is not True):
        raise ValueError(
            f"multinomial: cannot draw {num_samples} of {shapes.dim_text(size)} without replacement"
        )
    key = random_key() if callable(random_key) else random_key
    weights = cast(x, x.dtype.accumulator)
    if replacement:
        upto = cumsum(weights, -1)
        whole = narrow(upto, len(x.shape) - 1, shapes.subtract(size, 1), size)
        draws = mul(rand(key, (*x.shape[:-1], num_samples), dtype=weights.dtype), whole)
        return searchsorted(upto, draws, right=True)
    # the least of exponential variables with these rates are such a draw
    waiting = log1p(mul(rand(key, x.shape, dtype=weights.dtype), -1))
    score = where(le(weights, 0), float("-inf"), div(waiting, weights))
    best, found = topk(score, num_samples, -1)
    valid = where(eq(best, float("-inf")), -1, found)
    numbers = expand(iota(size, int64), x.shape)
    return gather(numbers, valid, len(x.shape) - 1)


@public("bernoulli", source="PyTorch", gradient="no", kind="keyed")
def bernoulli(
    x: Operand,
    p: Operand = None,
    *,
    size: Any = None,
    dtype: Any = None,
    random_key: Any,
) -> Node:
    """1 with the probability that each element of x gives (or p, for all), else 0; of the shape and
    dtype of x. For a probability that is a number give `size`.

    >>> Tensor([0.0, 1.0]).bernoulli()
    Tensor([0., 1.])
    """
    given = node_of(x)
    chance = given if p is None else node_of(p)
    wide = chance.dtype.accumulator if chance.dtype.is_float else float32
    result = dtype or (given.dtype if given.dtype.is_float or p is not None else float32)
    shape = (
        shapes.check_sizes(shapes.as_shape(size), "bernoulli") if size is not None else given.shape
    )
    key = random_key() if callable(random_key) else random_key
    drawn = cast(lt(rand(key, shape, dtype=wide), cast(chance, wide)), result)
    return where(True, drawn, cast(chance, result))
