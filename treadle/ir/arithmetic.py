"""Sums, products and quotients of integers in canonical form: the arithmetic of `index.py`.

Everything else imports `index.py`, whose page says what the form is. Here every constructor folds
as it builds; division needs products, sums need division (a quotient and its remainder give the
value back), and both need proofs about signs: so they stand together.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import lru_cache
from math import gcd
from typing import TypeVar, cast

from treadle.ir import ops
from treadle.ir.dtype import index as INDEX
from treadle.ir.node import Node, arg_nodes, remember, remember_below
from treadle.ir.spell import spell

Index = int | Node  # what every function here accepts
Terms = dict[Node, int]  # atom -> factor
Parts = tuple[tuple[int, Node], ...]  # the same as pairs, in structural order

_KEPT = 1024  # constants up to this size stay alive once made
_kept: dict[int, Node] = {}

F = TypeVar("F", bound=Callable[..., object])


def remembered(function: F) -> F:
    """The last few thousand results are looked up: the layers of a network have equal indices."""
    return cast(F, lru_cache(maxsize=4096)(function))


# ---- leaves and conversions ----------------------------------------------------------------------
def const(value: int) -> Node:
    """The CONST of dtype index with this value."""
    node = _kept.get(value)
    if node is None:
        value = operator.index(value)
        node = Node(ops.CONST, INDEX, (), value)
        if -_KEPT <= value <= _KEPT:
            _kept[value] = node
    return node


def range_(number: int, size: Index) -> Node:
    """Range `number` of a kernel: 0, 1 .. size-1. Of size 1 it is the constant 0."""
    size = dim(size)
    return const(0) if size == 1 else Node(ops.RANGE, INDEX, (), (number, size))


def variable(name: str, low: int, high: int) -> Node:
    """A run-time integer with low <= value <= high. If they are equal it is that constant.

    ValueError if low is greater than high.
    """
    if low > high:
        raise ValueError(f"variable {name}: its least value {low} is above its greatest {high}")
    return const(low) if low == high else Node(ops.VARIABLE, INDEX, (), (name, low, high))


def as_node(value: Index) -> Node:
    """The value as a node. TypeError if it is neither an integer nor a node of dtype index."""
    if isinstance(value, Node):
        if value.dtype is not INDEX:
            raise TypeError(f"an index or a dimension has dtype index, but this has {value.dtype}")
        return value
    return const(value)


def dim(value: Index) -> Index:
    """The value as it stands in a shape: an int when it is constant, else the node."""
    if isinstance(value, Node):
        return value.arg if value.op is ops.CONST else value
    return operator.index(value)


def as_int(value: Index) -> int:
    """The value of a constant. ValueError if it depends on a range or a variable."""
    value = dim(value)
    if isinstance(value, Node):
        raise ValueError(f"{spell(value)} is not a constant")
    return value


def bounds(value: Index) -> tuple[int, int]:
    """The least and the greatest value that it may have."""
    if isinstance(value, Node):
        return value.bounds or ops.UNBOUNDED
    return value, value


def variables(value: Index) -> list[Node]:
    """The VARIABLEs that it depends on, by name; those in sizes of ranges too."""
    return sorted(_variables(value), key=order) if isinstance(value, Node) else []


def _variables(value: Node) -> frozenset[Node]:
    if value.op is ops.VARIABLE:
        return frozenset((value,))
    memo = value.memo
    if memo is None or "variables" not in memo:
        return cast(frozenset[Node], remember_below(value, "variables", _variables_of_sources))
    return cast(frozenset[Node], memo["variables"])


def _variables_of_sources(node: Node) -> frozenset[Node]:
    below = [_variables(n) for n in (*node.src, *arg_nodes(node.arg))]
    return frozenset().union(*below)


# ---- sums and products ---------------------------------------------------------------------------
@remembered
def add(*values: Index) -> Node:
    """The sum of any number of values."""
    total: Terms = {}
    constant = 0
    for value in values:
        constant += _accumulate(total, value, 1)
    return _sum(constant, total)


@remembered
def sub(a: Index, b: Index) -> Node:
    """a - b."""
    total: Terms = {}
    constant = _accumulate(total, a, 1) + _accumulate(total, b, -1)
    return _sum(constant, total)


@remembered
def mul(a: Index, b: Index) -> Node:
    """a * b; products distribute over sums."""
    a, b = dim(a), dim(b)
    if isinstance(a, int):
        a, b = b, a
    total: Terms = {}
    if isinstance(b, int):
        return built(_accumulate(total, a, b), total) if b else const(0)
    constant_a, terms_a = terms(a)
    constant_b, terms_b = terms(b)
    for factor, atom in terms_b:
        if constant_a:
            total[atom] = constant_a * factor
    for factor, atom in terms_a:
        if constant_b:
            total[atom] = total.get(atom, 0) + constant_b * factor
        for other_factor, other in terms_b:
            monomial = _monomial((*_factors(atom), *_factors(other)))
            total[monomial] = total.get(monomial, 0) + factor * other_factor
    return _sum(constant_a * constant_b, total)


def product(values: Iterable[Index]) -> Index:
    """The product of a shape's dimensions, as a dimension: an int when constant."""
    constant = 1
    symbolic: Node | None = None
    for value in values:
        value = dim(value)
        if isinstance(value, int):
            constant *= value
        else:
            symbolic = value if symbolic is None else mul(symbolic, value)
    return constant if symbolic is None else dim(mul(symbolic, constant))


def terms(value: Index) -> tuple[int, Parts]:
    """(constant, ((factor, atom), ..)): value = constant + sum of factor * atom."""
    value = as_node(value)
    if value.op is ops.ISUM:
        return value.arg[0], tuple(zip(value.arg[1], value.src))
    if value.op is ops.CONST:
        return value.arg, ()
    return 0, ((1, value),)


def coefficient(value: Index, atom: Node) -> Index:
    """What `atom` is multiplied with in the value: the stride of a range. An int, or a node when
    symbolic (T in i*T + j). Uses of the atom inside a quotient, a maximum .. do not count."""
    found: list[Index] = []
    for factor, term in terms(value)[1]:
        others = _without(_factors(term), (atom,))
        if others is not None:
            found.append(mul(_monomial(others), factor))
    return dim(add(*found))


def split(value: Index, inner: int | Node) -> tuple[Node, Node]:
    """(outer, rest) with value = outer + rest, where `outer` has the constant and the terms that
    do not depend on `inner`: a RANGE, or a mask of ranges as in `node.free`."""
    mask = inner.free if isinstance(inner, Node) else inner
    value = as_node(value)
    if not value.free & mask:
        return value, const(0)
    constant, parts = terms(value)
    outer = {atom: factor for factor, atom in parts if not atom.free & mask}
    rest = {atom: factor for factor, atom in parts if atom.free & mask}
    return built(constant, outer), built(0, rest)


def _accumulate(total: Terms, value: Index, factor: int) -> int:
    """Adds the terms of value * factor to total; returns value's constant * factor."""
    if not isinstance(value, Node):
        return operator.index(value) * factor
    if value.op is ops.ISUM:
        constant, factors = value.arg
        for atom, own in zip(value.src, factors):
            total[atom] = total.get(atom, 0) + own * factor
        return cast(int, constant * factor)
    if value.op is ops.CONST:
        return cast(int, as_node(value).arg * factor)
    total[as_node(value)] = total.get(value, 0) + factor
    return 0


def _sum(constant: int, total: Terms) -> Node:
    """The canonical node of constant + total, which may hold zeros."""
    if 0 in total.values():
        total = {atom: factor for atom, factor in total.items() if factor}
    if len(total) > 1 and any(atom.op in _MAY_HOLD_REMAINDER for atom in total):
        folded = _folded_remainder(constant, total)
        if folded is not None:
            return folded
    return built(constant, total)


_MAY_HOLD_REMAINDER = (ops.IMOD, ops.IPROD)


def built(constant: int, total: Terms) -> Node:
    """The node of constant + total where nothing is left to fold."""
    if len(total) > 1:
        atoms = tuple(sorted(total, key=order))
        return Node(ops.ISUM, INDEX, atoms, (constant, tuple([total[a] for a in atoms])))
    for atom, factor in total.items():
        if factor == 1 and constant == 0:
            return atom
        return Node(ops.ISUM, INDEX, (atom,), (constant, (factor,)))
    return const(constant)


def order(atom: Node) -> tuple[int | str | bytes, ...]:
    """Sorts nodes by what they are: ranges by number, variables by name, others by digest."""
    memo = atom.memo
    if memo is not None and "order" in memo:
        return cast(tuple[int | str | bytes, ...], memo["order"])
    return cast(tuple[int | str | bytes, ...], remember(atom, "order", _structural_key))


def _structural_key(atom: Node) -> tuple[int | str | bytes, ...]:
    if atom.op is ops.RANGE:
        number, size = atom.arg
        return (0, number, -1, size.digest) if isinstance(size, Node) else (0, number, size)
    if atom.op is ops.VARIABLE:
        return (1, *atom.arg)
    return (2, atom.digest)


def _factors(atom: Node) -> tuple[Node, ...]:
    return atom.src if atom.op is ops.IPROD else (atom,)


def _monomial(factors: tuple[Node, ...]) -> Node:
    """The product of atoms, none of them a product or a sum."""
    if len(factors) < 2:
        return factors[0] if factors else const(1)
    return Node(ops.IPROD, INDEX, tuple(sorted(factors, key=order)))


def _without(factors: tuple[Node, ...], removed: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """The factors with some taken out; None if one of those is missing."""
    left = list(factors)
    for factor in removed:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def _folded_remainder(constant: int, total: Terms) -> Node | None:
    """The sum after one step of these, with the rest folded too; None if no step applies. M is any
    product of atoms.

    c*M*d*floor(x/d) + c*M*(x mod d)              = c*M*x
    c*M*d*(floor(x/d) mod e) + c*M*(x mod d)      = c*M*(x mod d*e)
    """
    for atom, factor in total.items():
        for remainder in _factors(atom):
            if remainder.op is not ops.IMOD:
                continue
            x, d = remainder.src
            if d.op is ops.CONST and factor * d.arg not in total.values():
                continue  # no quotient has the factor that it would need
            others = cast(tuple[Node, ...], _without(_factors(atom), (remainder,)))
            scale = mul(_monomial(others), factor)
            quotient = floordiv(x, d)
            multiple, parts = terms(mul(mul(quotient, d), scale))
            if parts and all(total.get(part) == f for f, part in parts):
                folded = {part for _, part in parts} | {atom}
                rest = {a: f for a, f in total.items() if a not in folded}
                return add(built(constant - multiple, rest), mul(x, scale))
            for digit in _remainders_of(quotient, total):
                higher = _monomial((*others, digit))
                if d.op is ops.CONST and total.get(higher) == factor * d.arg:
                    rest = {a: f for a, f in total.items() if a is not atom and a is not higher}
                    merged = mod(x, mul(d, digit.src[1]))
                    return add(built(constant, rest), mul(merged, scale))
    return None


def _remainders_of(x: Node, total: Terms) -> list[Node]:
    """Every (x mod e) that stands in the terms."""
    factors = [factor for atom in total for factor in _factors(atom)]
    return [factor for factor in factors if factor.op is ops.IMOD and factor.src[0] is x]


# ---- quotient and remainder ----------------------------------------------------------------------
@remembered
def floordiv(a: Index, b: Index) -> Node:
    """floor(a / b). A constant b may be negative; ZeroDivisionError if b is 0, ValueError if b is
    not constant and may be negative."""
    a, b = as_node(a), _divisor(b)
    if isinstance(b, Node):
        whole, x, d, scale, _ = _divided_by_symbol(a, b)
        return add(whole, _symbolic_quotient(x, b) if scale is None else floordiv(x, d))
    if b < 0:
        return floordiv(mul(a, -1), -b)
    whole, x, d, _, _ = _divided(a, b)
    return add(whole, _quotient(x, d))


@remembered
def mod(a: Index, b: Index) -> Node:
    """a - b * floor(a / b): the remainder with the sign of b. Errors as in `floordiv`."""
    a, b = as_node(a), _divisor(b)
    if isinstance(b, Node):
        _, x, d, scale, small = _divided_by_symbol(a, b)
        if scale is None:
            quotient = _symbolic_quotient(x, b)
            known = quotient.op is ops.CONST
            return sub(x, mul(quotient, b)) if known else Node(ops.IMOD, INDEX, (x, b))
        return add(mul(mod(x, d), scale), small)
    if b < 0:
        return mul(mod(mul(a, -1), -b), -1)
    _, x, d, factor, small = _divided(a, b)
    return add(mul(_remainder(x, d), factor), small)


def _divisor(b: Index) -> Index:
    b = dim(b)
    low, high = bounds(b)
    if b == 0:
        raise ZeroDivisionError("an index or a dimension is divided by 0")
    if isinstance(b, Node) and (low < 0 or high < 1):
        raise ValueError(f"cannot divide by {spell(b)}: it lies in {low}..{high}, not above 0")
    return b


@remembered
def _divided(a: Node, b: int) -> tuple[Node, Node, int, int, Node]:
    """(whole, x, d, scale, small) with d * scale = b, 0 <= small < scale and
    a = b * whole + scale * x + small. So

    floor(a / b) = whole + floor(x / d)        a mod b = scale * (x mod d) + small

    A factor gives its multiples of b to `whole`. What remains is split at the largest scale for
    which the terms that it does not divide are known, by their bounds, to stay within one multiple.
    """
    constant, parts = terms(a)
    times, constant = divmod(constant, b)
    whole: Terms = {}
    rest: Terms = {}
    for factor, atom in parts:
        multiple = factor // b if factor > 0 else -(-factor // b)
        if multiple:
            whole[atom] = multiple
        if factor != multiple * b:
            rest[atom] = factor - multiple * b
    for scale in sorted({b, *[gcd(factor, b) for factor in rest.values()]}, reverse=True):
        small = {atom: factor for atom, factor in rest.items() if factor % scale}
        low, high = _interval(constant, small)
        carry = low // scale
        if carry == high // scale:
            d = b // scale
            carried, inner = divmod(carry, d)
            x = {atom: factor // scale for atom, factor in rest.items() if factor % scale == 0}
            least = constant - carry * scale
            return _sum(times + carried, whole), _sum(inner, x), d, scale, _sum(least, small)
    return _sum(times, whole), _sum(constant, rest), b, 1, const(0)


def _interval(constant: int, total: Terms) -> tuple[int, int]:
    low = high = constant
    for atom, factor in total.items():
        least, greatest = bounds(atom)
        low += factor * (least if factor > 0 else greatest)
        high += factor * (greatest if factor > 0 else least)
    return low, high


def _quotient(x: Node, d: int) -> Node:
    """floor(x / d) where x is as `_divided` leaves it.

    floor((floor(y/e) + k) / d) = floor((y + k*e) / (d*e))
    floor((y mod d*e) / d)      = floor(y/d) mod e
    """
    if d == 1:
        return x
    constant, parts = terms(x)
    if not parts:
        return const(constant // d)
    factor, atom = parts[0]
    if len(parts) == 1 and factor == 1 and atom.op in (ops.IFLOOR, ops.IMOD):
        y, e = atom.src
        if atom.op is ops.IFLOOR:
            return floordiv(add(y, mul(e, constant)), mul(e, d))
        if constant == 0 and e.op is ops.CONST and e.arg % d == 0:
            return mod(floordiv(y, d), e.arg // d)
    return Node(ops.IFLOOR, INDEX, (x, const(d)))


def _remainder(x: Node, d: int) -> Node:
    """x mod d where x is as `_divided` leaves it. (y mod d*e) mod d = y mod d."""
    if d == 1:
        return const(0)
    if x.op is ops.IMOD:
        y, modulus = x.src
        if modulus.op is ops.CONST and modulus.arg % d == 0:
            return mod(y, d)
    elif any(atom.op is ops.IFLOOR for _, atom in terms(x)[1]):
        quotient = _quotient(x, d)  # merged with that of the atom, its bounds may decide
        if quotient.op is ops.CONST:
            return sub(x, quotient.arg * d)
    return const(x.arg % d) if x.op is ops.CONST else Node(ops.IMOD, INDEX, (x, const(d)))


def _divided_by_symbol(a: Node, b: Node) -> tuple[Node, Node, Index, Node | None, Node]:
    """(whole, x, d, scale, small) as `_divided` has them, for a divisor that is not constant; scale
    None stands for 1. The scales tried are what a term of the rest shares with all terms of b."""
    whole, rest = _polynomial_division(a, b)
    if _within(rest, b):
        return whole, const(0), 1, b, rest
    constant, parts = terms(b)
    scales: dict[tuple[Node, ...], int] = {}
    for factor, atom in terms(rest)[1]:
        common = gcd(factor, constant, *[f for f, _ in parts])
        atoms = () if constant else _shared_factors(atom, [other for _, other in parts])
        scales[atoms] = max(common, scales.get(atoms, 1))
    for atoms, common in sorted(scales.items(), key=lambda s: len(s[0]), reverse=True):
        scale = mul(_monomial(atoms), common)
        if scale is not const(1):
            x, small = _monomial_division(rest, atoms, common)
            if small is const(0) or _within(small, scale):
                return whole, x, dim(_monomial_division(b, atoms, common)[0]), scale, small
    return whole, rest, b, None, const(0)


def _polynomial_division(a: Node, b: Node) -> tuple[Node, Node]:
    """(whole, rest) with a = b * whole + rest: the division by the leading term of b. If b has
    more terms, it is done only if then 0 <= rest < b (else the rest would be no simpler than a)."""
    constant, parts = terms(b)
    factor, lead = max(parts, key=lambda part: (len(_factors(part[1])), order(part[1])))
    whole, rest = _monomial_division(a, _factors(lead), factor)
    if len(parts) == 1 and constant == 0:
        return whole, rest
    rest = sub(a, mul(whole, b))
    return (whole, rest) if _within(rest, b) else (const(0), a)


def _monomial_division(a: Node, atoms: tuple[Node, ...], factor: int) -> tuple[Node, Node]:
    """(whole, rest) with a = factor * product(atoms) * whole + rest: the terms it divides, and the
    others."""
    constant, parts = terms(a)
    multiple, constant = (0, constant) if atoms else divmod(constant, factor)
    whole: Terms = {}
    rest: Terms = {}
    for own_factor, atom in parts:
        others = _without(_factors(atom), atoms)
        if others is None or own_factor % factor:
            rest[atom] = own_factor
        elif others:
            whole[_monomial(others)] = own_factor // factor
        else:
            multiple += own_factor // factor
    return _sum(multiple, whole), _sum(constant, rest)


def _shared_factors(atom: Node, others: list[Node]) -> tuple[Node, ...]:
    """The factors, never negative, that the atom has in common with all the others."""
    shared: tuple[Node, ...] = ()
    for factor in _factors(atom):
        trial = (*shared, factor)
        divides_all = all(_without(_factors(other), trial) is not None for other in others)
        if divides_all and bounds(factor)[0] >= 0:
            shared = trial
    return shared


def _symbolic_quotient(x: Node, b: Node) -> Node:
    """floor(x / b), where floor(floor(y/e) / b) = floor(y / (e*b))."""
    if x.op is ops.IFLOOR:
        return floordiv(x.src[0], mul(x.src[1], b))
    return Node(ops.IFLOOR, INDEX, (x, b))


# ---- proofs --------------------------------------------------------------------------------------
def _within(x: Node, size: Index) -> bool:
    """Whether 0 <= x < size is certain."""
    return never_negative(x) and is_negative(sub(x, size))


def is_negative(value: Node) -> bool:
    """Whether value < 0 is certain."""
    low, high = bounds(value)
    if high < 0 or low >= 0 or not _variables(value):
        return high < 0
    return never_negative(sub(-1, value))


def never_negative(value: Node) -> bool:
    """Whether value >= 0 is certain."""
    low, high = bounds(value)
    if low >= 0 or high < 0 or not _variables(value):
        return low >= 0
    return cast(bool, remember(value, "never negative", _is_proved))


def _is_proved(value: Node) -> bool:
    """Whether value >= 0 by its bounds, after every range (then every variable) in which it is
    linear, with a factor of known sign, has been put at the end where the value is least."""
    atoms = {factor for _, atom in terms(value)[1] for factor in _factors(atom)}
    ends = sorted((a for a in atoms if a.op in (ops.RANGE, ops.VARIABLE)), key=order)
    for _ in range(2):  # sizes of ranges bring in variables
        for leaf in ends:
            slope, rest = _monomial_division(value, (leaf,), 1)
            least, greatest = bounds(slope)
            if (least >= 0 or greatest <= 0) and not (_occurs(leaf, slope) or _occurs(leaf, rest)):
                value = add(rest, mul(slope, _end(leaf, least >= 0)))
                if bounds(value)[0] >= 0:
                    return True
        ends = variables(value)
    return False


def _occurs(leaf: Node, value: Node) -> bool:
    return leaf in _variables(value) if leaf.op is ops.VARIABLE else bool(leaf.free & value.free)


def _end(leaf: Node, first: bool) -> Index:
    """The first or the last value of a RANGE or a VARIABLE."""
    if leaf.op is ops.VARIABLE:
        return cast(int, leaf.arg[1 if first else 2])
    return 0 if first else sub(leaf.arg[1], 1)
