"""Every transform against JAX, in float64, on functions that are written in both.

JAX is no dependency: without it these tests are skipped. CONTRIBUTING.md says how to run them: in
an environment of their own, with `pip install -e . "jax[cpu]" pytest`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import treadle
from treadle import Tensor

jax = pytest.importorskip("jax", reason="parity with JAX needs JAX: see CONTRIBUTING.md")
pytestmark = pytest.mark.full
jax.config.update("jax_enable_x64", True)
jnp, lax = jax.numpy, jax.lax

RANDOM = np.random.default_rng(47)
X = RANDOM.uniform(0.3, 1.7, (3, 4))
V = RANDOM.standard_normal((3, 4))
W = RANDOM.standard_normal((4, 4))
U = RANDOM.standard_normal((3, 4))
TAPS = RANDOM.standard_normal((2, 3, 2))  # (out, in, taps) over the rows of X as channels
PICK = np.array([2, 0, 2, 1])
CLASSES = np.array([1, 3, 0])
KINKS = np.array([[1.0, 0.4, 1.3, 0.0], [0.6, 1.0, 0.0, 1.2], [0.0, 1.5, 0.7, 1.0]])


class Pair(NamedTuple):
    """A function of one tensor, in treadle and in JAX, and where it is looked at."""

    ours: Callable[[Any], Any]
    theirs: Callable[[Any], Any]
    at: np.ndarray = X


def attention(x: Tensor) -> Tensor:
    scores = x @ Tensor(W) @ x.transpose(0, 1) / 2.0
    return scores.softmax(-1) @ x


def jax_attention(x: Any) -> Any:
    return jax.nn.softmax(x @ W @ x.T / 2.0, axis=-1) @ x


def layer_norm(x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / ((centred * centred).mean(-1, keepdim=True) + 1e-5).sqrt()


def jax_layer_norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def convolution(x: Tensor) -> Tensor:
    return x[None].conv1d(Tensor(TAPS))[0]


def jax_convolution(x: Any) -> Any:
    return lax.conv_general_dilated(x[None], TAPS, (1,), "VALID")[0]


def recurrence(x: Tensor) -> Tensor:
    def step(h: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        h = (h @ Tensor(W) + row).tanh()
        return h, h * row

    last, each = treadle.scan(step, x[0] * 0, x)
    return each + last


def jax_recurrence(x: Any) -> Any:
    def step(h: Any, row: Any) -> tuple[Any, Any]:
        h = jnp.tanh(h @ W + row)
        return h, h * row

    last, each = lax.scan(step, x[0] * 0, x)
    return each + last


def branch(x: Tensor) -> Tensor:
    return treadle.cond(x.sum() > 6, lambda x: x.sin() * x, lambda x: x.exp(), x)


def jax_branch(x: Any) -> Any:
    return lax.cond(x.sum() > 6, lambda x: jnp.sin(x) * x, jnp.exp, x)


def cross_entropy(x: Tensor) -> Tensor:
    return (x * 3).cross_entropy(Tensor(CLASSES), reduction="none")


def jax_cross_entropy(x: Any) -> Any:
    return -jax.nn.log_softmax(x * 3)[jnp.arange(3), CLASSES]


FUNCTIONS: dict[str, Pair] = {
    "chain": Pair(
        lambda x: (x.sin() * x.exp() + x.log()) / (x.sqrt() + 1),
        lambda x: (jnp.sin(x) * jnp.exp(x) + jnp.log(x)) / (jnp.sqrt(x) + 1),
    ),
    "powers": Pair(lambda x: x**x + x**3 - x**-0.5, lambda x: x**x + x**3 - x**-0.5),
    "saturating": Pair(
        lambda x: x.tanh() + x.sigmoid() * x.erf(),
        lambda x: jnp.tanh(x) + jax.nn.sigmoid(x) * jax.scipy.special.erf(x),
    ),
    "softmax": Pair(lambda x: x.softmax(-1), lambda x: jax.nn.softmax(x, axis=-1)),
    "logsumexp": Pair(lambda x: x.logsumexp(1), lambda x: jax.scipy.special.logsumexp(x, axis=1)),
    "matmul chain": Pair(
        lambda x: (x @ Tensor(W)).tanh() @ Tensor(W) @ x.transpose(0, 1),
        lambda x: jnp.tanh(x @ W) @ W @ x.T,
    ),
    "convolution": Pair(convolution, jax_convolution),
    "attention": Pair(attention, jax_attention),
    "layer norm": Pair(layer_norm, jax_layer_norm),
    "gather": Pair(lambda x: x[Tensor(PICK)] ** 2, lambda x: x[PICK] ** 2),
    "cumsum": Pair(lambda x: (x * x).cumsum(1), lambda x: jnp.cumsum(x * x, axis=1)),
    "scan": Pair(recurrence, jax_recurrence),
    "cond": Pair(branch, jax_branch),
    "where at kinks": Pair(
        lambda x: treadle.where(x > 1, x * x, x.sin()) + treadle.where(x == 0, 2 * x, x**3),
        lambda x: jnp.where(x > 1, x * x, jnp.sin(x)) + jnp.where(x == 0, 2 * x, x**3),
        KINKS,
    ),
    "norm": Pair(
        lambda x: (x * x).sum(1).sqrt() + (x * x * x).sum(1) ** (1 / 3),
        lambda x: jnp.sqrt((x * x).sum(1)) + (x * x * x).sum(1) ** (1 / 3),
    ),
    "cross entropy": Pair(cross_entropy, jax_cross_entropy),
}


def squares(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of the squares of a function, which is a number."""

    def total(x: Any) -> Any:
        y = f(x)
        return (y * y).sum()

    return total


def same(found: Any, want: Any, what: str = "") -> None:
    want = np.asarray(want)
    assert found.dtype is treadle.float64
    scale = float(np.abs(want).max(initial=0.0))  # below it only what cancels is compared
    np.testing.assert_allclose(
        found.detach().numpy(), want, rtol=1e-9, atol=1e-12 * scale, err_msg=what
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_jax(name: str) -> None:
    pair = FUNCTIONS[name]
    f, g = pair.ours, pair.theirs
    total, jax_total = squares(f), squares(g)
    at = pair.at
    x, v = Tensor(at), Tensor(V)
    for found, want in zip(treadle.jvp(f, (x,), (v,)), jax.jvp(g, (at,), (V,)), strict=True):
        same(found, want, "jvp")
    y, pullback = treadle.vjp(f, x)
    z, jax_pullback = jax.vjp(g, at)
    same(y, z, "value")
    same(pullback(y.cos())[0], jax_pullback(jnp.cos(z))[0], "vjp")
    same(treadle.grad(total)(x), jax.grad(jax_total)(at), "grad")
    same(treadle.grad(treadle.checkpoint(total))(x), jax.grad(jax_total)(at), "checkpoint")
    same(treadle.jacfwd(f)(x), jax.jacfwd(g)(at), "jacfwd")
    same(treadle.jacrev(f)(x), jax.jacrev(g)(at), "jacrev")
    same(treadle.hessian(total)(x), jax.hessian(jax_total)(at), "hessian")
    product = jax.jvp(jax.grad(jax_total), (at,), (V,))[1]
    same(treadle.hvp(total, (x,), (v,))[0], product, "hvp")
    stacked = np.stack([at, at * 0.75, at * 1.25])
    same(treadle.vmap(f)(Tensor(stacked)), jax.vmap(g)(stacked), "vmap")
    each = jax.vmap(jax.grad(jax_total))(stacked)
    same(treadle.vmap(treadle.grad(total))(Tensor(stacked)), each, "vmap of grad")
    same(treadle.jit(treadle.grad(total))(x), jax.jit(jax.grad(jax_total))(at), "jit of grad")


@pytest.mark.parametrize("name", ["chain", "powers", "softmax", "attention", "scan", "norm"])
def test_third_derivatives(name: str) -> None:
    def along(library: Any, total: Callable[[Any], Any], x: Any, v: Any) -> Any:
        """The third derivative along v, twice forward over reverse."""

        def once(x: Any) -> Any:
            return library.jvp(library.grad(total), (x,), (v,))[1]

        return library.jvp(once, (x,), (v,))[1]

    pair = FUNCTIONS[name]
    found = along(treadle, squares(pair.ours), Tensor(X), Tensor(V))
    same(found, along(jax, squares(pair.theirs), X, V))


def rooted(library: Any, x: Any) -> Any:
    """Newton's steps to the square root, as many as it takes."""
    loop = treadle.while_loop if library is treadle else lax.while_loop
    return loop(lambda y: abs(y * y - x).sum() > 1e-3, lambda y: (y + x / y) / 2, x * 0 + 1.0)


def test_while_loop_forwards() -> None:
    def ours(x: Any) -> Any:
        return rooted(treadle, x)

    def theirs(x: Any) -> Any:
        return rooted(jax, x)

    found, want = treadle.jvp(ours, (Tensor(X),), (Tensor(V),)), jax.jvp(theirs, (X,), (V,))
    same(found[0], want[0])
    same(found[1], want[1])
    same(treadle.jacfwd(ours)(Tensor(X)), jax.jacfwd(theirs)(X))
    same(treadle.vmap(ours)(Tensor(X)), jax.vmap(theirs)(X))


def test_scan_in_all_its_inputs() -> None:
    """Backwards through a scan that runs from the end, by its start, its inputs and a constant."""

    def ours(h: Any, rows: Any, w: Any) -> Any:
        last, each = treadle.scan(
            lambda h, row: ((h @ w + row).sin(), h * row), h, rows, reverse=True
        )
        return (last * each).sum()

    def theirs(h: Any, rows: Any, w: Any) -> Any:
        last, each = lax.scan(lambda h, row: (jnp.sin(h @ w + row), h * row), h, rows, reverse=True)
        return (last * each).sum()

    given = (X[0], U, W)
    wanted = (0, 1, 2)
    tensors = [Tensor(array) for array in given]
    found, want = treadle.grad(ours, wanted)(*tensors), jax.grad(theirs, wanted)(*given)
    for number, (one, other) in enumerate(zip(found, want, strict=True)):
        same(one, other, f"argument {number}")


def test_custom_vjp() -> None:
    """A derivative that is not that of the function: it is clipped."""
    ours = treadle.custom_vjp(lambda x: x.sin())
    ours.defvjp(lambda x: (x.sin(), x), lambda x, g: ((x.cos() * g).clamp(-0.5, 0.5),))
    theirs = jax.custom_vjp(jnp.sin)
    theirs.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jnp.clip(jnp.cos(x) * g, -0.5, 0.5),))
    total, jax_total = squares(ours), squares(theirs)
    same(treadle.grad(total)(Tensor(X)), jax.grad(jax_total)(X))
    same(treadle.vmap(treadle.grad(total))(Tensor(X)), jax.vmap(jax.grad(jax_total))(X))
    same(treadle.jacrev(ours)(Tensor(X)), jax.jacrev(theirs)(X))


def test_custom_jvp() -> None:
    """A derivative that is not that of the function: it is three times as large."""
    ours = treadle.custom_jvp(lambda x: x.sin())
    ours.defjvp(lambda xs, ts: (xs[0].sin(), 3 * xs[0].cos() * ts[0]))
    theirs = jax.custom_jvp(jnp.sin)
    theirs.defjvp(lambda xs, ts: (jnp.sin(xs[0]), 3 * jnp.cos(xs[0]) * ts[0]))
    total, jax_total = squares(ours), squares(theirs)
    same(treadle.jvp(ours, (Tensor(X),), (Tensor(V),))[1], jax.jvp(theirs, (X,), (V,))[1])
    same(treadle.grad(total)(Tensor(X)), jax.grad(jax_total)(X))


def test_second_derivative_of_a_custom_jvp() -> None:
    """The rule is differentiated, too. (Of a rule that is not the derivative of its function the
    second derivatives differ: JAX takes the value from the rule, treadle from the function.)"""
    ours = treadle.custom_jvp(lambda x: x.sin())
    ours.defjvp(lambda xs, ts: (xs[0].sin(), xs[0].cos() * ts[0]))
    theirs = jax.custom_jvp(jnp.sin)
    theirs.defjvp(lambda xs, ts: (jnp.sin(xs[0]), jnp.cos(xs[0]) * ts[0]))
    total, jax_total = squares(ours), squares(theirs)
    same(treadle.hessian(total)(Tensor(X)), jax.hessian(jax_total)(X))
