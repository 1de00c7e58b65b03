"""Products of several axes: einsum, tensordot, and what can be said by them.

Every sum of products of two tensors becomes one matrix product: axes that both have and that stay
are a batch, axes of one alone that stay are its rows or columns, axes that both have and that go
are summed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import shapes
from treadle.graph.build import (
    Operand,
    cast,
    expand,
    normalize_axis,
    operands,
    permute,
    reduce,
    reshape,
    where,
)
from treadle.graph.elementwise import add, mul, sub
from treadle.graph.linear import bmm, contract, dot, mv, outer
from treadle.graph.movement import diagonal, roll
from treadle.graph.public import public
from treadle.graph.reduction import sum_, summed_type
from treadle.graph.shapes import Axes, Dim, text
from treadle.ir.dtype import bool_
from treadle.ir.node import Node, Shape

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# what stands for a letter in a list
_NUMBERS: dict[Any, str] = {**dict(enumerate(_LETTERS)), ...: "..."}


# ---- einsum --------------------------------------------------------------------------------------
class _Term:
    """A tensor whose axes have letters."""

    def __init__(self, node: Node, letters: str) -> None:
        self.node = node
        self.letters = letters

    def sizes(self, letters: str) -> Shape:
        return tuple([self.node.shape[self.letters.index(each)] for each in letters])

    def ordered(self, letters: str) -> Node:
        """The tensor with its axes in this order; letters that it lacks get axes of size 1."""
        own = [each for each in letters if each in self.letters]
        moved = permute(self.node, tuple([self.letters.index(each) for each in own]))
        sizes = iter(moved.shape)
        return reshape(
            moved, tuple([next(sizes) if each in self.letters else 1 for each in letters])
        )

    def without(self, letters: str) -> _Term:
        """Summed over these letters."""
        if not letters:
            return self
        axes = tuple([self.letters.index(each) for each in letters])
        left = "".join([each for each in self.letters if each not in letters])
        return _Term(reduce("add", self.node, axes), left)


def _parse(equation: str, terms: Sequence[Node]) -> tuple[list[str], str]:
    """The letters of each operand and of the result. Ellipses become letters that the equation does
    not use, counted from the right."""
    compact = equation.replace(" ", "")
    left, arrow, right = compact.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(terms):
        raise ValueError(
            f"einsum: the equation {equation!r} is for {len(inputs)} tensors, and {len(terms)} are "
            "given"
        )
    free = [each for each in _LETTERS if each not in compact]
    longest = 0
    found = []
    for written, term in zip(inputs, terms):
        plain = written.replace("...", "", 1)
        if not all(each in _LETTERS for each in plain):
            raise ValueError(f"einsum: {written!r} in {equation!r} is not letters and one '...'")
        spare = len(term.shape) - len(plain)
        if spare < 0 or (spare and "..." not in written):
            raise ValueError(
                f"einsum: {written!r} in {equation!r} names {len(plain)} dimensions of a tensor of "
                f"shape {text(term.shape)}"
            )
        longest = max(longest, spare if "..." in written else 0)
        found.append(written.replace("...", "".join(free[:spare][::-1])))
    dots = "".join(free[:longest][::-1])
    if arrow:
        result = right.replace("...", dots, 1)
    else:
        used = "".join(found)
        once = sorted({each for each in used if used.count(each) == 1 and each not in dots})
        result = dots + "".join(once)
    for each in result:
        if each not in _LETTERS or result.count(each) > 1 or each not in "".join([*found, dots]):
            raise ValueError(
                f"einsum: {each!r} in the result of {equation!r} must stand there once, and in an "
                "operand"
            )
    return found, result


def _diagonals(node: Node, letters: str, equation: str) -> _Term:
    """A tensor in which a letter that stood twice stands once, for the diagonal."""
    for each in dict.fromkeys(letters):
        while letters.count(each) > 1:
            first = letters.index(each)
            second = letters.index(each, first + 1)
            if not shapes.same(node.shape[first], node.shape[second]):
                raise ValueError(
                    f"einsum: {each!r} in {equation!r} stands for two sizes of a tensor of shape "
                    f"{text(node.shape)}"
                )
            node = diagonal(node, 0, first, second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + each
    return _Term(node, letters)


def _stretched(terms: list[_Term], equation: str) -> list[_Term]:
    """The terms with every axis of size 1 at its letter's size."""
    sizes: dict[str, Dim] = {}
    for term in terms:
        for letter, size in zip(term.letters, term.node.shape):
            known = sizes.setdefault(letter, size)
            if known == 1:
                sizes[letter] = size
            elif size != 1 and not shapes.same(known, size):
                raise ValueError(
                    f"einsum: {letter!r} in {equation!r} stands for the sizes "
                    f"{shapes.dim_text(known)} and {shapes.dim_text(size)}"
                )
    return [
        _Term(expand(term.node, tuple([sizes[each] for each in term.letters])), term.letters)
        for term in terms
    ]


def _multiplied(a: _Term, b: _Term, kept: str) -> _Term:
    """The product of two terms, summed over what is not in `kept`."""
    a = a.without("".join([each for each in a.letters if each not in kept + b.letters]))
    b = b.without("".join([each for each in b.letters if each not in kept + a.letters]))
    both = [each for each in a.letters if each in b.letters]
    batch = "".join([each for each in both if each in kept])
    summed = "".join([each for each in both if each not in kept])
    rows = "".join([each for each in a.letters if each not in both])
    columns = "".join([each for each in b.letters if each not in both])
    if not summed:
        letters = batch + rows + columns
        return _Term(mul(a.ordered(letters), b.ordered(letters)), letters)
    count = (shapes.total(a.sizes(summed)),)
    left = reshape(
        a.ordered(batch + rows + summed),
        (*a.sizes(batch), shapes.total(a.sizes(rows)), *count),
    )
    right = reshape(
        b.ordered(batch + columns + summed),
        (*b.sizes(batch), shapes.total(b.sizes(columns)), *count),
    )
    sizes = (*a.sizes(batch), *a.sizes(rows), *b.sizes(columns))
    return _Term(reshape(contract(left, right), sizes), batch + rows + columns)


def _from_lists(terms: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation, and the tensors, of tensors with lists of numbers behind them."""
    count = len(terms) // 2
    tensors, lists = terms[: 2 * count : 2], [*terms[1::2], *terms[2 * count :]]
    words = []
    for numbers in lists:
        known = list(_NUMBERS)  # a list, so that what has no hash is merely not in it
        if not isinstance(numbers, (list, tuple)) or any(n not in known for n in numbers):
            raise TypeError(
                "einsum: write an equation and then its tensors, 'ij,jk->ik', x, y; or x, [0, 1], "
                f"y, [1, 2], [0, 2] with numbers from 0 to 51, not {shapes.words(numbers)}"
            )
        words.append("".join([_NUMBERS[n] for n in numbers]))
    return "->".join([",".join(words[:count]), *words[count:]]), tensors


@public("einsum", source="PyTorch", namespace=True, kind="creates")
def einsum(equation: Any, *tensors: Any) -> Node:
    """The sum of products that an equation names: `einsum("bij,bjk->bik", x, y)`.

    Letters are axes; one that the result lacks is summed over; twice in one operand, it is the
    diagonal; "..." stands for the remaining axes, which broadcast. Without "->" the result has the
    letters that stand once, in alphabetical order, after "...". Tensors are multiplied from left to
    right, each pair as one matrix product. Source: Einstein's convention, as in NumPy and PyTorch.
    Letters may be numbers from 0 to 51, in lists: `einsum(x, [0, 1], y, [1, 2], [0, 2])`.

    >>> Tensor.einsum("ij,ij->i", Tensor([[1, 2], [3, 4]]), Tensor([[1, 1], [2, 2]]))
    Tensor([ 3, 14])
    """
    if not isinstance(equation, str):
        equation, tensors = _from_lists((equation, *tensors))
    listed = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
    terms = list(tensors[0] if listed else tensors)
    if not terms:
        raise TypeError("einsum: write an equation and then its tensors: einsum('ij,jk->ik', x, y)")
    nodes = list(operands(*terms))
    dtype = nodes[0].dtype
    if dtype.is_float:  # rounded once, at the result
        nodes = [cast(node, dtype.accumulator) for node in nodes]
    letters, result = _parse(equation, nodes)
    found = _stretched(
        [_diagonals(node, own, equation) for node, own in zip(nodes, letters)], equation
    )
    total = found[0]
    for number, term in enumerate(found[1:], 1):
        later = "".join([each.letters for each in found[number + 1 :]])
        total = _multiplied(total, term, result + later)
    rest = "".join([each for each in total.letters if each not in result])
    if rest and dtype.is_int:  # a plain sum, in the type of `sum`
        dtype = summed_type(dtype)
        total = _Term(cast(total.node, dtype), total.letters)
    total = total.without(rest)
    return cast(permute(total.node, tuple([total.letters.index(each) for each in result])), dtype)


# ---- others --------------------------------------------------------------------------------------
def _fitted(x: Node, axis: int, size: Dim) -> Node:
    """An axis of size 1 stretched to a size."""
    if x.shape[axis] != 1:
        return x
    return expand(x, (*x.shape[:axis], size, *x.shape[axis + 1 :]))


@public("tensordot", source="PyTorch", namespace=True)
def tensordot(x: Node, other: Node, dims: Axes = 2) -> Node:
    """The sum over pairs of axes of a product: `dims` pairs the last n axes of x with the first n
    of `other`, or lists the axes of each: `([1, 2], [0, 1])`. An axis of size 1 stretches.

    >>> Tensor.ones(2, 3, 4).tensordot(Tensor.ones(3, 4, 5), dims=2).shape
    (2, 5)
    """
    a, b = operands(x, other)
    if isinstance(dims, int):
        if not 0 <= dims <= min(len(a.shape), len(b.shape)):
            raise ValueError(
                f"tensordot: dims={dims} for shapes {text(a.shape)} and {text(b.shape)}"
            )
        pairs: Any = range(len(a.shape) - dims, len(a.shape)), range(dims)
    else:
        pairs = [[each] if isinstance(each, int) else list(each) for each in dims]
    if len(pairs) != 2 or len(pairs[0]) != len(pairs[1]):
        raise ValueError(f"tensordot: dims={dims!r} does not pair the axes of two tensors")
    first = [normalize_axis(each, len(a.shape)) for each in pairs[0]]
    second = [normalize_axis(each, len(b.shape)) for each in pairs[1]]
    for one, two in zip(first, second):
        if 1 in (a.shape[one], b.shape[two]):
            a, b = _fitted(a, one, b.shape[two]), _fitted(b, two, a.shape[one])
        elif not shapes.same(a.shape[one], b.shape[two]):
            raise ValueError(
                f"tensordot: dimension {one} of {text(a.shape)} and {two} of {text(b.shape)} are "
                "not of one size"
            )
    rows = [axis for axis in range(len(a.shape)) if axis not in first]
    columns = [axis for axis in range(len(b.shape)) if axis not in second]
    own, others = ([node.shape[axis] for axis in axes] for node, axes in ((a, rows), (b, columns)))
    count = shapes.total([a.shape[axis] for axis in first])
    left = reshape(permute(a, (*rows, *first)), (shapes.total(own), count))
    right = reshape(permute(b, (*columns, *second)), (shapes.total(others), count))
    return reshape(contract(left, right), (*own, *others))


@public("vecdot", source="Array API", namespace=True)
def vecdot(x: Node, y: Node, *, dim: int = -1) -> Node:
    """The sum along one axis of the product; the other axes broadcast.

    >>> treadle.vecdot(Tensor([[1, 2], [3, 4]]), Tensor([10, 1]))
    Tensor([12, 34])
    """
    a, b = operands(x, y)
    wide = a.dtype.accumulator
    return cast(reduce("add", mul(cast(a, wide), cast(b, wide)), dim), a.dtype)


@public("inner", source="PyTorch")
def inner(x: Node, other: Node) -> Node:
    """The sum over the last axes of both; with a 0-d tensor, the product.

    >>> Tensor([[1, 2], [3, 4]]).inner(Tensor([10, 1]))
    Tensor([12, 34])
    """
    a, b = operands(x, other)
    if not a.shape or not b.shape:
        return mul(a, b)
    return tensordot(a, b, ([-1], [-1]))


@public("vdot", source="PyTorch")
def vdot(x: Node, other: Node) -> Node:
    """The sum of the products of two vectors.

    >>> Tensor([1, 2]).vdot(Tensor([3, 4]))
    Tensor(11)
    """
    return dot(x, other)


@public("kron", source="PyTorch")
def kron(x: Node, other: Node) -> Node:
    """The Kronecker product: every element of x times the whole of `other`.

    >>> Tensor([1, 2]).kron(Tensor([10, 1]))
    Tensor([10,  1, 20,  2])
    """
    a, b = operands(x, other)
    rank = max(len(a.shape), len(b.shape))
    a = reshape(a, (1,) * (rank - len(a.shape)) + a.shape)
    b = reshape(b, (1,) * (rank - len(b.shape)) + b.shape)
    first = tuple([size for each in a.shape for size in (each, 1)])
    second = tuple([size for each in b.shape for size in (1, each)])
    sizes = tuple([shapes.multiply(m, n) for m, n in zip(a.shape, b.shape)])
    return reshape(mul(reshape(a, first), reshape(b, second)), sizes)


@public("cross", source="PyTorch")
def cross(x: Node, other: Node, dim: int | None = None) -> Node:
    """The vector product along an axis of size 3; the first such axis unless `dim` is given.

    >>> Tensor([1, 0, 0]).cross(Tensor([0, 1, 0]))
    Tensor([0, 0, 1])
    """
    a, b = operands(x, other)
    shape = mul(a, b).shape
    a, b = expand(a, shape), expand(b, shape)
    if dim is None:
        threes = [axis for axis, size in enumerate(shape) if size == 3]
        if not threes:
            raise ValueError(f"cross: no dimension of shape {text(shape)} has the size 3")
        axis = threes[0]
    else:
        axis = normalize_axis(dim, len(shape))
    if shape[axis] != 3:
        raise ValueError(f"cross: dimension {axis} of shape {text(shape)} must have the size 3")
    forth = mul(roll(a, -1, axis), roll(b, -2, axis))
    return sub(forth, mul(roll(a, -2, axis), roll(b, -1, axis)))


def _scaled(x: Operand, product: Node, beta: Any, alpha: Any) -> Node:
    """beta * x + alpha * product; of integers and bools the factors are, too."""
    if not product.dtype.is_inexact:
        kind = bool if product.dtype is bool_ else int
        beta, alpha = kind(beta), kind(alpha)
    scaled = product if alpha == 1 else mul(product, alpha)
    if beta == 0:  # x does not count, not even where it is NaN
        return where(True, scaled, x)
    return add(x if beta == 1 else mul(x, beta), scaled)


@public("addmv", source="PyTorch")
def addmv(x: Node, mat: Node, vec: Node, *, beta: Any = 1, alpha: Any = 1) -> Node:
    """beta * x + alpha * (mat @ vec); with beta=0, x is not read.

    >>> Tensor([1, 1]).addmv(Tensor([[1, 2], [3, 4]]), Tensor([10, 1]))
    Tensor([13, 35])
    """
    return _scaled(x, mv(mat, vec), beta, alpha)


@public("baddbmm", source="PyTorch")
def baddbmm(x: Node, batch1: Node, batch2: Node, *, beta: Any = 1, alpha: Any = 1) -> Node:
    """beta * x + alpha * (batch1 @ batch2), for batches of matrices; with beta=0, x is not read.

    >>> Tensor.ones(5, 2, 2).baddbmm(Tensor.ones(5, 2, 3), Tensor.ones(5, 3, 2)).shape
    (5, 2, 2)
    """
    return _scaled(x, bmm(batch1, batch2), beta, alpha)


@public("addbmm", source="PyTorch")
def addbmm(x: Node, batch1: Node, batch2: Node, *, beta: Any = 1, alpha: Any = 1) -> Node:
    """beta * x + alpha * the sum over the batch of batch1 @ batch2; with beta=0, x is not read.

    >>> Tensor.ones(2, 2).addbmm(Tensor.ones(5, 2, 3), Tensor.ones(5, 3, 2))
    Tensor([[16., 16.],
            [16., 16.]])
    """
    wide = batch1.dtype.accumulator
    product = reduce("add", bmm(cast(batch1, wide), cast(batch2, wide)), 0)
    return _scaled(x, cast(product, batch1.dtype), beta, alpha)


@public("addr", source="PyTorch")
def addr(x: Node, vec1: Node, vec2: Node, *, beta: Any = 1, alpha: Any = 1) -> Node:
    """beta * x + alpha * outer(vec1, vec2); with beta=0, x is not read.

    >>> Tensor.ones(2, 2).addr(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
    Tensor([[4., 5.],
            [7., 9.]])
    """
    return _scaled(x, outer(vec1, vec2), beta, alpha)


@public("trace", source="PyTorch")
def trace(x: Node) -> Node:
    """The sum of the diagonal of a matrix; integers and bools are summed in int64.

    >>> Tensor([[1, 2], [3, 4]]).trace()
    Tensor(5)
    """
    if len(x.shape) != 2:
        raise ValueError(f"trace is for a matrix, not for shape {text(x.shape)}")
    return sum_(diagonal(x))
