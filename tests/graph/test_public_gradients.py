"""Every public function that says it has a gradient, against finite differences to second order."""

import numpy as np
import pytest
from gradcheck import check, leaf
from transformcheck import check_batched, check_forward

from treadle.backend.interp.graph import evaluate
from treadle.graph import (  # noqa: F401  (importing them fills the table)
    counting,
    creation,
    einops,
    elementwise,
    functions,
    indexing,
    linear,
    masks,
    movement,
    random,
    reduction,
    running,
    selection,
    sorting,
)
from treadle.graph.build import ones_like
from treadle.graph.grad import gradients
from treadle.graph.indexing import getitem, setitem
from treadle.graph.public import METHODS

OWN = ("creation", "elementwise", "functions", "linear", "movement", "reduction", "selection")
RANDOM = np.random.default_rng(11)
X = RANDOM.uniform(0.5, 2.0, (3, 4))
Y = RANDOM.uniform(0.5, 2.0, (3, 4))
S = X * np.array([1.0, -1.0, 1.0, -1.0])
PICK = np.array([[0, 2, 1, 1], [2, 0, 0, 1]])
MASK = X > 1.0

# name -> the arrays, and what to call with the function and their nodes
CASES = {
    "add": ((S, Y[:, :1]), lambda f, x, y: f(x, y, alpha=3)),
    "sub": ((S, Y), lambda f, x, y: f(x, y)),
    "mul": ((S, Y[0]), lambda f, x, y: f(x, y)),
    "div": ((S, Y), lambda f, x, y: f(x, y)),
    "remainder": ((S * 3, Y), lambda f, x, y: f(x, y)),
    "fmod": ((S * 3, Y), lambda f, x, y: f(x, y)),
    "neg": ((S,), lambda f, x: f(x)),
    "abs": ((S,), lambda f, x: f(x)),
    "pow": ((X, S), lambda f, x, y: f(x, y)),
    "dist": ((X, Y), lambda f, x, y: f(x, y)),
    "maximum": ((X, Y), lambda f, x, y: f(x, y)),
    "minimum": ((X, Y), lambda f, x, y: f(x, y)),
    "clamp": ((S, Y), lambda f, x, y: f(x, -1.0, y)),
    "clamp_max": ((S, Y), lambda f, x, y: f(x, y)),
    "clamp_min": ((S, Y), lambda f, x, y: f(x, y)),
    "rsub": ((S, Y), lambda f, x, y: f(x, y)),
    "where": ((S, Y, MASK), lambda f, x, y, m: f(x, m, y)),
    "masked_fill": ((S, MASK), lambda f, x, m: f(x, m, 2.0)),
    "lerp": ((S, Y, X - 0.7), lambda f, x, y, w: f(x, y, w)),
    "gelu": ((S,), lambda f, x: METHODS["add"].function(f(x), f(x, approximate="tanh"))),
    "reshape": ((S,), lambda f, x: f(x, 2, 6)),
    "view": ((S,), lambda f, x: f(x, 2, 6)),
    "unflatten": ((S,), lambda f, x: f(x, 1, (2, 2))),
    "permute": ((S,), lambda f, x: f(x, 1, 0)),
    "transpose": ((S,), lambda f, x: f(x, 0, 1)),
    "movedim": ((S,), lambda f, x: f(x, 0, 1)),
    "unsqueeze": ((S,), lambda f, x: f(x, 1)),
    "expand": ((S,), lambda f, x: f(x, 2, 3, 4)),
    "expand_as": ((S[:, :1], Y), lambda f, x, y: f(x, y)),
    "roll": ((S,), lambda f, x: f(x, 1, 1)),
    "repeat": ((S,), lambda f, x: f(x, 2, 1)),
    "tile": ((S,), lambda f, x: f(x, 2)),
    "cat": ((S, Y), lambda f, x, y: f([x, y, x] * 4, dim=1)),
    "stack": ((S, Y), lambda f, x, y: f(x, y, dim=1)),
    "split": ((S,), lambda f, x: f(x, 3, 1)[0]),
    "chunk": ((S,), lambda f, x: f(x, 2)[1]),
    "unbind": ((S,), lambda f, x: f(x)[2]),
    "pad": ((S,), lambda f, x: f(x, [1, 1, 0, 2], "reflect")),
    "shrink": ((S,), lambda f, x: f(x, (None, (1, 3)))),
    "std": ((S,), lambda f, x: f(x, 1)),
    "std_mean": ((S,), lambda f, x: f(x, 1)[0]),
    "var_mean": ((S,), lambda f, x: f(x, 1)[1]),
    "aminmax": ((S,), lambda f, x: f(x, dim=1)[1]),
    "cumsum": ((S,), lambda f, x: f(x, 1)),
    "gather": ((S, PICK), lambda f, x, i: f(x, 0, i)),
    "take_along_dim": ((S, PICK), lambda f, x, i: f(x, i, 0)),
    "index_select": ((S, PICK[0]), lambda f, x, i: f(x, 0, i)),
    "scatter": ((S, PICK[:1], Y), lambda f, x, i, y: f(x, 0, i, y)),
    "scatter_add": ((S, PICK, Y), lambda f, x, i, y: f(x, 0, i, y)),
    "matmul": ((S, Y.T.copy()), lambda f, x, y: f(x, y)),
    "dot": ((S[0], Y[0]), lambda f, x, y: f(x, y)),
    "mv": ((S, Y[0]), lambda f, x, y: f(x, y)),
    "mm": ((S, Y.T.copy()), lambda f, x, y: f(x, y)),
    "bmm": ((S[None], Y.T[None].copy()), lambda f, x, y: f(x, y)),
    "outer": ((S[0], Y[0]), lambda f, x, y: f(x, y)),
    "addmm": ((S[:, :3], S, Y.T.copy()), lambda f, x, a, c: f(x, a, c, beta=2, alpha=3)),
}
CONSTANT = ("zeros_like", "ones_like", "full_like")  # do not depend on the values
POSITIVE = ("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "reciprocal")


DIFFERENTIABLE = [
    name
    for name, entry in METHODS.items()
    if entry.gradient == "yes"
    and entry.name == name
    and entry.kind in ("method", "property")
    and entry.function.__module__.rpartition(".")[2] in OWN
    and name not in CONSTANT
]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    function = METHODS[name].function
    arrays, call = CASES.get(name, ((X if name in POSITIVE else S,), lambda f, x: f(x)))
    wanted = [i for i, array in enumerate(arrays) if array.dtype == np.float64]
    if name == "expand_as":
        wanted = [0]
    check(lambda *nodes: call(function, *nodes), *arrays, wanted=wanted, tolerance=1e-5)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_forward_mode_and_batches(name):
    """Tangents to second order, and many examples at once."""
    function = METHODS[name].function
    arrays, call = CASES.get(name, ((X if name in POSITIVE else S,), lambda f, x: f(x)))
    f = lambda *nodes: call(function, *nodes)  # noqa: E731
    check_forward(f, arrays)
    check_batched(f, arrays)


@pytest.mark.parametrize("power", [2, 3, -1, -2, 0.5, -0.5, 1.7])
def test_gradients_of_known_powers(power):
    check(lambda x: METHODS["pow"].function(x, power), X, tolerance=1e-5)


@pytest.mark.parametrize("name", ["relu", "sigmoid", "silu", "sinh", "cosh", "logsumexp", "clamp"])
def test_gradients_stay_finite_far_out(name):
    function = METHODS[name].function
    x = np.array([-300.0, -30.0, -1e-3, 30.0, 300.0])
    limits = (-1000.0, 1000.0) if name == "clamp" else ()
    scale = 0.03 if name in ("sinh", "cosh") else 1.0
    check(lambda t: function(t, *limits), x * scale, order=1, tolerance=1e-4)


@pytest.mark.parametrize(
    ("name", "slope"),
    [("relu", 0.0), ("sigmoid", 0.25), ("silu", 0.5), ("gelu", 0.5), ("sinh", 1.0)],
)
def test_slopes_at_zero(name, slope):
    x = leaf(0, np.array([0.0, -0.0]))
    y = METHODS[name].function(x)
    (derived,) = gradients([y], [ones_like(y)], [x])
    (value,) = evaluate([derived], {x: np.array([0.0, -0.0])})
    np.testing.assert_allclose(value, [slope, slope], rtol=1e-15)


KEYS = [1, slice(None, None, -2), (slice(None), 2), (..., None), (slice(1, 3), slice(0, 4, 3))]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_gradients_of_indexing(key):
    check(lambda x: getitem(x, key), S)
    value = np.cos(S[key])
    check(lambda x, v: setitem(x, key, v), S, value)


def test_gradients_of_indexing_by_tensors():
    check(lambda x, i: getitem(x, i), S, PICK, wanted=[0])
    check(lambda x, i: getitem(x, (i, i)), S, PICK, wanted=[0])
    check(lambda x, i, v: setitem(x, i, v), S, np.array([2, 0]), Y[:2], wanted=[0, 2])
    check(lambda x, m, v: setitem(x, m, v), S, MASK, np.array([0.3]), wanted=[0, 2])
