"""Products of several axes beside NumPy: random equations of einsum, dtypes, what does not fit."""

import numpy as np
import pytest
from arrays import run, same, tensor
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.graph import products
from treadle.graph.build import cast
from treadle.ir import index, ops
from treadle.ir.dtype import bfloat16, float16, float32, int8, int64
from treadle.ir.node import toposort

SIZES = {"a": 2, "b": 3, "c": 1, "d": 4}


def small(*shape):
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(np.float32)


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_einsum_on_random_equations(data):
    terms = data.draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=3))
    broadcast = [data.draw(st.sampled_from([(), (3,), (1,), (2, 1)])) for _ in terms]
    dotted = data.draw(st.booleans())
    shapes = []
    for term, extra in zip(terms, broadcast):
        shapes.append(((*extra,) if dotted else ()) + tuple(SIZES[letter] for letter in term))
    every = sorted(set("".join(terms)))
    left = ",".join(f"...{term}" if dotted else term for term in terms)
    equation = left
    if data.draw(st.booleans()):
        kept = data.draw(st.lists(st.sampled_from(every), unique=True)) if every else []
        equation += "->" + "..." * dotted + "".join(kept)
    arrays = [small(*shape) for shape in shapes]
    try:
        expected = np.einsum(equation, *[a.astype(np.float64) for a in arrays])
    except ValueError:  # extra dimensions that do not broadcast
        with pytest.raises(ValueError, match="einsum"):
            products.einsum(equation, *map(tensor, arrays))
        return
    found = run(products.einsum(equation, *map(tensor, arrays)))
    np.testing.assert_array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3)], "is for 2 tensors, and 1 are given"),
        ("ij->ik", [(2, 3)], "'k' in the result"),
        ("ij,jk", [(2, 3), (4, 5)], "'j' in .* stands for the sizes 3 and 4"),
        ("ijk", [(2, 3)], r"names 3 dimensions of a tensor of shape \(2, 3\)"),
        ("i?j", [(2, 3)], "is not letters"),
        ("ij->ii", [(2, 3)], "i"),
    ],
)
def test_einsum_says_what_does_not_fit(equation, shapes, message):
    with pytest.raises((ValueError, TypeError), match=f"einsum.*{message}"):
        products.einsum(equation, *[tensor(small(*shape)) for shape in shapes])


def test_a_matrix_product_stays_one():
    nodes = toposort(
        products.einsum("bij,bjk->bik", tensor(small(2, 3, 4)), tensor(small(2, 4, 3)))
    )
    (total,) = [node for node in nodes if node.op is ops.REDUCE]
    assert total.src[0].op is ops.MUL


@pytest.mark.parametrize("dims", [0, 1, 2, ([1], [0]), ([2, 1], [1, 0]), ([-1], [1])])
def test_tensordot(dims):
    b = {0: (2,), 1: (4, 2), 2: (3, 4, 2)}.get(dims) if isinstance(dims, int) else None
    if b is None:
        b = {1: (3, 5), 2: (3, 4)}[len(dims[0])] if dims[0] != [-1] else (2, 4)
    x, y = small(2, 3, 4), small(*b)
    same(products.tensordot(tensor(x), tensor(y), dims), np.tensordot(x, y, dims) + np.float32(0))


def test_tensordot_says_what_does_not_fit():
    with pytest.raises(ValueError, match=r"tensordot.*\(2, 3\).*\(4, 5\)"):
        products.tensordot(tensor(small(2, 3)), tensor(small(4, 5)), 1)


@pytest.mark.parametrize(
    ("a", "b"), [((3,), (3,)), ((2, 3), (4, 3)), ((2, 2, 3), (3,)), ((), (2, 3)), ((), ())]
)
def test_inner(a, b):
    x, y = small(*a), small(*b)
    same(products.inner(tensor(x), tensor(y)), np.asarray(np.inner(x, y)) + np.float32(0))


@pytest.mark.parametrize(
    ("a", "b"), [((2,), (3,)), ((2, 3), (3, 2)), ((2, 1, 2), (3, 2)), ((), (2,))]
)
def test_kron(a, b):
    x, y = small(*a), small(*b)
    same(products.kron(tensor(x), tensor(y)), np.kron(x, y))


def test_cross():
    x, y = small(4, 3), small(4, 3)[::-1].copy()
    same(products.cross(tensor(x), tensor(y)), np.cross(x, y))
    same(products.cross(tensor(x.T.copy()), tensor(y.T.copy()), 0), np.cross(x.T, y.T, axis=0))
    with pytest.raises(ValueError, match="cross"):
        products.cross(tensor(small(4, 2)), tensor(small(4, 2)))


def test_sums_with_a_product():
    m, v, w = small(2, 3), small(3), small(2)
    x, y = small(4, 2, 3), small(4, 3, 2)
    same(products.addmv(tensor(w), tensor(m), tensor(v), beta=2, alpha=3), 2 * w + 3 * (m @ v))
    same(products.addr(tensor(m), tensor(w), tensor(v)), m + np.outer(w, v))
    base = small(2, 2)
    same(products.baddbmm(tensor(base), tensor(x), tensor(y), beta=0.5), 0.5 * base + x @ y)
    same(products.addbmm(tensor(base), tensor(x), tensor(y)), base + (x @ y).sum(0))


def test_beta_zero_ignores_what_stands_there():
    x = np.full((2, 2), np.nan, np.float32)
    y = small(2, 2)
    for function in (products.baddbmm, products.addbmm):
        found = run(function(tensor(x), tensor(y[None]), tensor(y[None]), beta=0))
        assert not np.isnan(found).any()
    assert not np.isnan(run(products.addmv(tensor(x[0]), tensor(y), tensor(y[0]), beta=0))).any()


def test_dtypes():
    a, b = tensor([[1, 2]], int8), tensor([[3], [4]], int64)
    assert products.einsum("ij,jk", a, b).dtype is int64
    assert products.einsum("ij,jk", a, tensor(small(2, 2))).dtype is float32
    ones = np.ones((1, 4096))
    for dtype in (float16, bfloat16):  # computed in float32
        assert run(products.einsum("ij,kj->ik", tensor(ones, dtype), tensor(ones, dtype))) == 4096
        third = tensor([1.0 / 3.0], dtype)
        thrice = run(products.einsum("i,i,i->i", third, third, third))
        assert thrice == run(cast(tensor(run(third).astype(np.float32) ** 3), dtype))
    whole = tensor([[100, 100]], int8)
    same(products.einsum("ij->ji", whole), np.int8([[100], [100]]))
    same(products.einsum("ij->i", whole), np.int64([200]))


def test_symbolic_sizes():
    size = index.variable("T", 1, 8)
    a = small(5, 3)
    x = tensor(a, shape=(size, 3))
    same(products.einsum("ti,tj->ij", x, x), a.T @ a, T=5)
    same(products.einsum("ti,ti->t", x, x), (a * a).sum(1), T=5)
    same(products.einsum("ti->", x), np.asarray(a.sum()), T=5)
