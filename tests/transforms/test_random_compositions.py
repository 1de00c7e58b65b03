"""Transforms of transforms, nested at random, against loops and finite differences.

A *wrapper* makes a function of a vector from another one, in two ways: by transforms, and in NumPy
by loops and differences. So any nest of them has a value that no transform has computed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from treadle import (
    Tensor,
    checkpoint,
    cond,
    custom_jvp,
    custom_kernel,
    custom_vjp,
    float64,
    grad,
    hvp,
    jacobian,
    jit,
    jvp,
    scan,
    vjp,
    vmap,
    while_loop,
)

Array = np.ndarray
OfTensor = Callable[[Tensor], Tensor]
OfArray = Callable[[Array], Array]
NUMBERS = np.random.default_rng(5)
MATRIX = NUMBERS.standard_normal((3, 3)) / 2
WEIGHTS = np.array([0.7, -1.1, 0.4])
FACTORS = np.array([0.5, -0.8, 1.2, 0.3])
POINT = np.array([0.4, -0.7, 0.9])
STEP = 2e-3  # of the differences, whose error is its fourth power


@dataclass(frozen=True)
class Pair:
    """One function of a vector of three, of tensors and of arrays."""

    of_tensor: OfTensor
    of_array: OfArray


def tensor(array: Any) -> Tensor:
    return Tensor(array, dtype=float64)


@custom_kernel
def squares(k: Any, x: Any) -> Any:
    i = k.range(x.shape[0])
    return k.output(x[i] * x[i], i)


squared = custom_kernel(vjp=lambda given, _, g: (2 * given[0] * g,))(squares.function)


def changed_in_place(x: Tensor) -> Tensor:
    x[0] = x[1] * x[2]
    x *= 0.5
    return x.sin()


def changed_array(x: Array) -> Array:
    return np.sin(np.array([x[1] * x[2], x[1], x[2]]) / 2)


FUNCTIONS: dict[str, Pair] = {
    "sine": Pair(lambda x: x.sin() * x.flip(0), lambda x: np.sin(x) * x[::-1]),
    "layer": Pair(lambda x: (tensor(MATRIX) @ x).tanh(), lambda x: np.tanh(MATRIX @ x)),
    "softmax": Pair(lambda x: x.softmax(0) * x, lambda x: np.exp(x) / np.exp(x).sum() * x),
    "running": Pair(lambda x: x.cumsum(0).cos(), lambda x: np.cos(np.cumsum(x))),
    "picked": Pair(
        lambda x: x.sin()[Tensor([2, 0, 2])] * x.square().sum().tanh(),
        lambda x: np.sin(x)[[2, 0, 2]] * np.tanh((x * x).sum()),
    ),
    "kernel": Pair(lambda x: squared(x.sin()) / 2, lambda x: np.sin(x) ** 2 / 2),
    "in place": Pair(changed_in_place, changed_array),
}


# ---- wrappers ------------------------------------------------------------------------------------
def difference(f: OfArray, x: Array, v: Array) -> Array:
    """How f changes along v."""
    near = f(x + STEP * v) - f(x - STEP * v)
    far = f(x + 2 * STEP * v) - f(x - 2 * STEP * v)
    return (8 * near - far) / (12 * STEP)


def slopes(f: OfArray, x: Array) -> Array:
    """The Jacobian, a row for each element of x."""
    return np.stack([difference(f, x, unit) for unit in np.eye(3)])


def by_grad(f: Pair) -> Pair:
    return Pair(
        grad(lambda x: (f.of_tensor(x) * tensor(WEIGHTS)).sum()),
        lambda x: slopes(f.of_array, x) @ WEIGHTS,
    )


def by_jvp(f: Pair) -> Pair:
    return Pair(
        lambda x: jvp(f.of_tensor, (x,), (x.cos(),))[1],
        lambda x: difference(f.of_array, x, np.cos(x)),
    )


def by_vjp(f: Pair) -> Pair:
    return Pair(
        lambda x: vjp(f.of_tensor, x)[1](x.cos())[0],
        lambda x: slopes(f.of_array, x) @ np.cos(x),
    )


def by_jacobian(f: Pair, mode: str) -> Pair:
    return Pair(
        lambda x: jacobian(f.of_tensor, mode=mode)(x).sum(0),
        lambda x: slopes(f.of_array, x).sum(1),
    )


def by_hvp(f: Pair) -> Pair:
    def product(x: Tensor) -> Tensor:
        found: Tensor = hvp(lambda x: f.of_tensor(x).sum(), (x,), (tensor(WEIGHTS),))[0]
        return found

    def array(x: Array) -> Array:
        return difference(lambda x: slopes(f.of_array, x).sum(1), x, WEIGHTS)

    return Pair(product, array)


def by_vmap(f: Pair) -> Pair:
    """The factors are the examples, x is the same in all."""
    return Pair(
        lambda x: vmap(lambda x, by: f.of_tensor(x * by), (None, 0))(x, tensor(FACTORS)).mean(0),
        lambda x: sum(f.of_array(x * by) for by in FACTORS) / len(FACTORS),
    )


def by_vmap_of_columns(f: Pair) -> Pair:
    return Pair(
        lambda x: vmap(f.of_tensor, 1, 1)(x[:, None] * tensor(FACTORS))[:, 1],
        lambda x: f.of_array(x * FACTORS[1]),
    )


def by_scan(f: Pair) -> Pair:
    def loop(x: Array) -> Array:
        for by in FACTORS[:3]:
            x = x * 0.5 + by * f.of_array(x)
        return x

    return Pair(
        lambda x: scan(
            lambda carry, by: (carry * 0.5 + by * f.of_tensor(carry * 1), None),
            x,
            tensor(FACTORS[:3]),
        )[0],
        loop,
    )


def by_cond(f: Pair) -> Pair:
    return Pair(
        lambda x: cond(x.sum() > 0.1, f.of_tensor, lambda x: f.of_tensor(x * 0.5), x),
        lambda x: f.of_array(x if x.sum() > 0.1 else x * 0.5),
    )


def by_while_loop(f: Pair) -> Pair:
    """Two trips, whatever x is."""

    def loop(x: Tensor) -> Tensor:
        last: Tensor = while_loop(
            lambda state: state[0] < 2,
            lambda state: (state[0] + 1, f.of_tensor(state[1] * 0.9)),
            (Tensor(0), x),
        )[1]
        return last

    return Pair(loop, lambda x: f.of_array(f.of_array(x * 0.9) * 0.9))


def by_custom_vjp(f: Pair) -> Pair:
    own = custom_vjp(f.of_tensor)
    own.defvjp(lambda x: (f.of_tensor(x * 1), x), lambda x, g: (vjp(f.of_tensor, x)[1](g)[0],))
    return Pair(own, f.of_array)


def by_custom_jvp(f: Pair) -> Pair:
    own = custom_jvp(f.of_tensor)
    own.defjvp(lambda xs, ts: jvp(f.of_tensor, xs, ts))
    return Pair(own, f.of_array)


Wrapper = Callable[[Pair], Pair]
# by name: the wrapper, and how many differences deep it is
DERIVATIVES: dict[str, tuple[Wrapper, int]] = {
    "grad": (by_grad, 1),
    "jvp": (by_jvp, 1),
    "vjp": (by_vjp, 1),
    "jacrev": (lambda f: by_jacobian(f, "reverse"), 1),
    "jacfwd": (lambda f: by_jacobian(f, "forward"), 1),
    "hvp": (by_hvp, 2),
}
REVERSE = {"grad", "vjp", "jacrev", "hvp"}
OTHERS: dict[str, tuple[Wrapper, int]] = {
    "jit": (lambda f: Pair(jit(f.of_tensor), f.of_array), 0),
    "checkpoint": (lambda f: Pair(checkpoint(f.of_tensor), f.of_array), 0),
    "vmap": (by_vmap, 0),
    "columns": (by_vmap_of_columns, 0),
    "scan": (by_scan, 0),
    "cond": (by_cond, 0),
    "while_loop": (by_while_loop, 0),
    "custom_vjp": (by_custom_vjp, 0),
    "custom_jvp": (by_custom_jvp, 0),
}
WRAPPERS = DERIVATIVES | OTHERS
TRANSPOSING = REVERSE | {"custom_vjp"}  # the rule that is given there is a pullback


def nest(seed: int) -> tuple[str, ...]:
    """A function and the wrappers around it, innermost first, with at most two differences."""
    dice = random.Random(seed)
    names = [dice.choice(list(FUNCTIONS))]
    deep = 0
    for _ in range(dice.choice((2, 3, 3, 4))):
        name = dice.choice(list(WRAPPERS))
        if deep + WRAPPERS[name][1] > 2:
            name = dice.choice(list(OTHERS))
        if name in TRANSPOSING and "while_loop" in names:
            name = "vmap"  # such a loop has no derivative backwards
        deep += WRAPPERS[name][1]
        names.append(name)
    return tuple(names)


NESTS = {nest(seed): None for seed in range(100)}


@pytest.mark.parametrize("names", NESTS, ids=" < ".join)
def test_a_nest_of_transforms(names: tuple[str, ...]) -> None:
    pair = FUNCTIONS[names[0]]
    for name in names[1:]:
        pair = WRAPPERS[name][0](pair)
    x = tensor(POINT)
    found = pair.of_tensor(x).numpy()
    np.testing.assert_allclose(found, pair.of_array(POINT), rtol=1e-5, atol=1e-7)
