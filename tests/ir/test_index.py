"""The index algebra: canonical, right on every value, and decided where bounds decide."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.ir import index, ops
from treadle.ir.dtype import bool_, float32
from treadle.ir.dtype import index as INDEX
from treadle.ir.index import add, both, eq, floordiv, le, lt, mod, mul, range_, spell, sub
from treadle.ir.node import Node

T = index.variable("T", 1, 9)
S = index.variable("S", 0, 6)
R0, R1, R2 = range_(0, 12), range_(1, 5), range_(2, 8)
RT, RS = range_(3, T), range_(4, add(S, 2))

LEAVES = {"T": T, "S": S, "R0": R0, "R1": R1, "R2": R2, "RT": RT, "RS": RS}
DIVISORS = {
    "T": T,
    "2*T": mul(T, 2),
    "T+1": add(T, 1),
    "S+2": add(S, 2),
    "T*(S+1)": mul(T, add(S, 1)),
}


@st.composite
def bindings(draw):
    """Values of the leaves: every range below its size."""
    t, s = draw(st.integers(1, 9)), draw(st.integers(0, 6))
    limits = {"R0": 12, "R1": 5, "R2": 8, "RT": t, "RS": s + 2}
    return {"T": t, "S": s} | {name: draw(st.integers(0, n - 1)) for name, n in limits.items()}


# A tree is a leaf's name, an int, or (operation, tree, ..): built both as a node and as a number.
OPERATIONS = {
    "add": (add, lambda a, b: a + b),
    "sub": (sub, lambda a, b: a - b),
    "mul": (mul, lambda a, b: a * b),
    "maximum": (index.maximum, max),
    "minimum": (index.minimum, min),
    "floordiv": (floordiv, lambda a, b: a // b),
    "mod": (mod, lambda a, b: a % b),
}
CONDITIONS = {
    "lt": (lt, lambda a, b: a < b),
    "le": (le, lambda a, b: a <= b),
    "eq": (eq, lambda a, b: a == b),
}
leaves = st.sampled_from(sorted(LEAVES)) | st.integers(-20, 40)
constant_divisors = st.integers(1, 24) | st.integers(-8, -1)


def grown(trees):
    divided = st.tuples(st.sampled_from(["floordiv", "mod"]), trees)
    return (
        st.tuples(st.sampled_from(["add", "sub", "mul", "maximum", "minimum"]), trees, trees)
        | st.tuples(st.just("mul"), trees, st.integers(-9, 16))
        | st.tuples(divided, constant_divisors).map(lambda p: (*p[0], p[1]))
        | st.tuples(divided, st.sampled_from(sorted(DIVISORS))).map(lambda p: (*p[0], p[1]))
    )


trees = st.recursive(leaves, grown, max_leaves=9)


def as_node(tree):
    if isinstance(tree, tuple):
        return OPERATIONS[tree[0]][0](*map(as_node, tree[1:]))
    return LEAVES.get(tree, DIVISORS.get(tree, tree))


def as_number(tree, values):
    if isinstance(tree, tuple):
        return OPERATIONS[tree[0]][1](*(as_number(part, values) for part in tree[1:]))
    if isinstance(tree, str):
        return eval(tree, {}, values)
    return tree


def bound(values):
    return {LEAVES[name]: value for name, value in values.items()}


@settings(deadline=None, max_examples=400)
@given(trees, st.lists(bindings(), min_size=3, max_size=3))
def test_every_constructor_agrees_with_arithmetic(tree, samples):
    node = index.as_node(as_node(tree))
    low, high = index.bounds(node)
    for values in samples:
        expected = as_number(tree, values)
        assert index.evaluate(node, bound(values)) == expected, spell(node)
        assert low <= expected <= high, spell(node)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(sorted(CONDITIONS)), trees, trees, st.lists(bindings(), min_size=3, max_size=3)
)
def test_conditions_agree_with_arithmetic(name, a, b, samples):
    build, compare = CONDITIONS[name]
    node = build(as_node(a), as_node(b))
    assert node.dtype is bool_
    for values in samples:
        expected = compare(as_number(a, values), as_number(b, values))
        assert index.evaluate(node, bound(values)) == expected, spell(node)


# ---- canonical form ------------------------------------------------------------------------------
ring = {"add", "sub", "mul"}
polynomials = st.recursive(
    leaves, lambda t: st.tuples(st.sampled_from(sorted(ring)), t, t), max_leaves=8
)


def swapped(tree):
    """An equal polynomial, written another way round."""
    if not isinstance(tree, tuple):
        return tree
    name, a, b = tree
    a, b = swapped(a), swapped(b)
    if name == "sub":
        return ("add", ("mul", b, -1), a)
    if name == "mul" and isinstance(a, tuple) and a[0] == "add":
        return ("add", ("mul", b, a[2]), ("mul", a[1], b))
    return (name, b, a)


@settings(deadline=None, max_examples=300)
@given(polynomials)
def test_equal_polynomials_are_the_same_node(tree):
    assert index.as_node(as_node(swapped(tree))) is index.as_node(as_node(tree))


@settings(deadline=None, max_examples=300)
@given(trees, constant_divisors | st.sampled_from(sorted(DIVISORS)))
def test_quotient_and_remainder_give_the_value_back(tree, divisor):
    x, d = as_node(tree), as_node(divisor)
    assert add(mul(floordiv(x, d), d), mod(x, d)) is index.as_node(x)


@settings(deadline=None, max_examples=200)
@given(trees, trees, st.lists(bindings(), min_size=2, max_size=2))
def test_same_never_errs(a, b, samples):
    try:
        verdict = index.same(as_node(a), as_node(b))
    except ValueError:
        return
    assert all(verdict == (as_number(a, v) == as_number(b, v)) for v in samples)


def test_shapes_that_are_met():
    assert floordiv(mul(mul(S, T), 64), 64) is mul(T, S)
    assert mul(add(S, 1), T) is add(mul(S, T), T)
    square = mul(add(T, 1), add(T, 1))
    assert sub(square, mul(T, T)) is add(T, T, 1)
    convolution = add(floordiv(sub(add(T, 2), 3), 1), 1)
    assert convolution is T
    assert floordiv(add(mul(T, 2), -1), 2) is sub(T, 1)
    assert mod(floordiv(R0, 4), 3) is floordiv(R0, 4)  # R0 < 12
    assert floordiv(add(R0, 1), 13) is index.const(0)


def test_merged_ranges_split_again():
    flat = add(mul(R0, 40), mul(R1, 8), R2)
    assert floordiv(flat, 40) is R0
    assert floordiv(mod(flat, 40), 8) is R1
    assert mod(floordiv(flat, 8), 5) is R1
    assert mod(flat, 8) is R2


def test_merged_symbolic_ranges_split_again():
    size = mul(T, 64)
    inner = range_(5, 64)
    flat = add(mul(R0, size), mul(RT, 64), inner)
    assert floordiv(flat, size) is R0
    assert mod(flat, size) is add(mul(RT, 64), inner)
    assert floordiv(floordiv(flat, 64), T) is R0
    assert mod(floordiv(flat, 64), T) is RT
    assert mod(flat, 64) is inner


def test_a_range_over_a_product_is_really_divided():
    flat = range_(5, mul(S, T))
    quotient = floordiv(flat, T)
    assert quotient.op is ops.IFLOOR
    assert add(mul(quotient, T), mod(flat, T)) is flat


def test_division_by_a_sum():
    longer = add(T, 1)
    row = range_(5, longer)
    flat = add(mul(R0, mul(longer, 8)), mul(row, 8), R2)
    assert floordiv(flat, mul(longer, 8)) is R0
    assert floordiv(floordiv(flat, 8), longer) is R0
    assert mod(floordiv(flat, 8), longer) is row


def test_unequal_groups_cancel_what_they_share():
    flat = add(mul(R0, T), RT)
    assert floordiv(flat, mul(T, 4)) is floordiv(R0, 4)
    assert mod(flat, mul(T, 4)) is add(mul(mod(R0, 4), T), RT)


def test_mixed_radix_digits_give_the_number_back():
    assert add(mul(mod(floordiv(T, 2), 2), 2), mod(T, 2)) is mod(T, 4)
    assert floordiv(mod(T, 6), 2) is mod(floordiv(T, 2), 3)
    assert mod(mod(T, 6), 3) is mod(T, 3)
    assert floordiv(floordiv(T, 2), 3) is floordiv(T, 6)


def test_conditions_have_one_form():
    assert lt(add(R0, 1), 5) is lt(R0, 4)
    assert le(mul(R0, 3), 10) is lt(R0, 4)
    assert le(2, R0) is lt(1, R0)
    assert lt(sub(3, R0), 0) is lt(3, R0)
    assert eq(add(mul(R0, 2), 2), mul(R1, 4)) is eq(mul(R1, 2), add(R0, 1))
    assert eq(mul(R0, 2), add(mul(R1, 2), 1)) is index.FALSE
    assert lt(R0, 12) is index.TRUE
    assert lt(RT, T) is index.TRUE
    assert le(add(T, -1), RT).op is ops.LT
    assert lt(add(RT, T), mul(T, 2)) is index.TRUE


def test_conditions_together():
    first, second = lt(R0, 4), lt(1, R1)
    assert both() is index.TRUE
    assert both(index.TRUE, first) is first
    assert both(first, index.FALSE) is index.FALSE
    assert both(first, both(second, first)) is both(second, first)


def test_same_decides_or_raises_in_words():
    assert index.same(4, 4)
    assert not index.same(4, 5)
    assert index.same(add(T, 1), add(1, T))
    assert not index.same(T, add(T, 1))
    assert not index.same(T, 10)
    with pytest.raises(ValueError, match=r"cannot decide whether the dimensions T and S \+ 1"):
        index.same(T, add(S, 1))


def test_dimensions_are_ints_when_constant():
    assert index.dim(sub(add(T, 3), T)) == 3
    assert type(index.dim(index.const(3))) is int
    assert index.dim(T) is T
    assert index.as_int(sub(add(T, 3), T)) == 3
    with pytest.raises(ValueError, match="T is not a constant"):
        index.as_int(T)
    assert index.product((2, T, 3)) is mul(T, 6)
    assert index.product((2, 3)) == 6
    assert index.product(()) == 1


def test_what_is_refused():
    with pytest.raises(TypeError):
        add(T, 1.5)
    with pytest.raises(TypeError, match="dtype index, but this has float32"):
        add(T, Node(ops.CONST, float32, (), 0))
    with pytest.raises(ZeroDivisionError):
        floordiv(T, 0)
    with pytest.raises(ValueError, match=r"cannot divide by T - 3: it lies in -2\.\.6"):
        mod(R0, sub(T, 3))
    with pytest.raises(ValueError, match="least value 3 is above its greatest 2"):
        index.variable("N", 3, 2)


def test_constants_among_leaves():
    assert range_(7, 1) is index.const(0)
    assert index.variable("N", 4, 4) is index.const(4)


def test_terms_and_coefficients():
    value = add(mul(R0, 6), mul(R1, T), R2, 7)
    constant, parts = index.terms(value)
    assert constant == 7
    assert {atom: factor for factor, atom in parts} == {R0: 6, R2: 1, mul(R1, T): 1}
    assert index.coefficient(value, R0) == 6
    assert index.coefficient(value, R1) is T
    assert index.coefficient(value, RT) == 0
    assert index.coefficient(index.const(3), R0) == 0


def test_split_by_ranges():
    value = add(mul(R0, 6), mul(R1, T), R2, 7)
    assert index.split(value, R1) == (add(mul(R0, 6), R2, 7), mul(R1, T))
    assert index.split(value, R0.free | R2.free) == (add(mul(R1, T), 7), add(mul(R0, 6), R2))
    assert index.split(value, RT) == (value, index.const(0))


def test_variables_below():
    assert index.variables(add(RS, mul(T, 3))) == [S, T]
    assert index.variables(5) == []


def test_ranges_come_in_order_of_number():
    assert add(R2, R0, R1).src == (R0, R1, R2)
    assert add(T, S, R0).src == (R0, S, T)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (add(mul(T, 2), 1), "2*T + 1"),
        (sub(1, T), "-T + 1"),
        (sub(S, T), "S - T"),
        (floordiv(sub(T, 1), 2), "(T + 1)//2 - 1"),
        (mul(floordiv(T, 2), 2), "2*(T//2)"),
        (mod(T, mul(S, 2)), "T%(2*S)"),
        (index.maximum(T, S), "max(S, T)"),
        (mul(S, T), "S*T"),
        (lt(R0, T), "r0 < T"),
        (12, "12"),
    ],
)
def test_spelling(value, text):
    assert spell(value) == text or sorted(spell(value)) == sorted(text)


def test_evaluate_by_name_and_without_a_value():
    assert index.evaluate(add(mul(T, 2), S), {"T": 3, "S": 4}) == 10
    assert index.evaluate(add(mul(T, 2), R0), {T: 3, R0: 1}) == 7
    with pytest.raises(ValueError, match="2\\*T needs a value for T"):
        index.evaluate(mul(T, 2), {})
    check = Node(ops.CHECK, INDEX, (T, index.const(4)), 0)
    with pytest.raises(IndexError, match="index 7 is out of range for a dimension of size 4"):
        index.evaluate(check, {"T": 7})


# ---- substitution --------------------------------------------------------------------------------
@settings(deadline=None, max_examples=200)
@given(trees, trees, bindings())
def test_substitution_is_evaluation_of_the_replacement(tree, replacement, values):
    node = index.as_node(as_node(tree))
    new = index.substitute(node, {R0: as_node(replacement), R2: 3})
    inner = bound(values) | {R0: as_number(replacement, values), R2: 3}
    assert index.evaluate(new, bound(values)) == index.evaluate(node, inner)


def reduction():
    """sum over R1 of (load x[R0, R1]), and the same with a factor that depends on R0 only."""
    x = Node(ops.ARG, float32, (), (0, (12, 5)))
    load = Node(ops.LOAD, float32, (x, R0, R1), 2)
    return x, load, Node(ops.KREDUCE, float32, (load, R1), ("add", 1))


def test_substitution_leaves_bound_ranges_alone():
    x, load, total = reduction()
    both_uses = ops.ADD(load, total)
    new = index.substitute(both_uses, {R0: add(R2, 1), R1: range_(6, 5)})
    moved = Node(ops.LOAD, float32, (x, add(R2, 1), R1), 2)
    outside = Node(ops.LOAD, float32, (x, add(R2, 1), range_(6, 5)), 2)
    assert new is ops.ADD(outside, Node(ops.KREDUCE, float32, (moved, R1), ("add", 1)))
    assert index.substitute(total, {R1: R2}) is total


def test_substitution_refuses_capture():
    _, _, total = reduction()
    with pytest.raises(ValueError, match="r0 cannot be replaced by r1: a reduction around it"):
        index.substitute(total, {R0: R1})
    assert index.substitute(total, {R2: R1}) is total


def test_substitution_reaches_into_args():
    x = Node(ops.PLACEHOLDER, float32, (), (0, (T, 4)))
    y = Node(ops.RESHAPE, float32, (x,), (mul(T, 4),))
    new = index.substitute(y, {T: 3})
    assert new.shape == (12,)
    assert new.src[0].shape == (3, 4)
    assert type(new.shape[0]) is int


def test_substitution_folds_conditions():
    guard = both(lt(R0, 4), lt(R1, 2))
    assert index.substitute(guard, {R0: 2}) is lt(R1, 2)
    assert index.substitute(guard, {R0: 5}) is index.FALSE


def test_a_deep_value_is_no_matter():
    node = index.as_node(R0)
    for step in range(2000):
        node = index.maximum(node, add(range_(10 + step % 3, 50), step % 7))
        node = floordiv(add(node, T), 2)
    assert index.substitute(node, {R0: R2}) is not node
    values = {R0: 3, T: 2, **{range_(n, 50): 1 for n in (10, 11, 12)}}
    assert index.evaluate(node, values) >= 0
    assert len(spell(floordiv(R0, 5))) > 0


def test_results_do_not_depend_on_the_order_of_building():
    parts = [mul(R0, 3), mul(R1, T), floordiv(T, 2), mod(S, 3), index.maximum(T, S)]
    sums = {add(*order) for order in itertools.permutations(parts)}
    assert len(sums) == 1
