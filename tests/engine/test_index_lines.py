"""An index out of range inside the body of a loop is told with the line inside that body."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import Tensor, checkpoint, cond, grad, hessian, jit, jvp, scan, vmap, while_loop

X = np.array([1.0, 2.0, 3.0], np.float32)
INDICES = np.array([0, 1, 7])


def picked(x: Tensor, i: Tensor) -> Tensor:
    """The line that is to blame."""
    doubled = x * 2
    return doubled[i]


LINE = f"{__file__}:{picked.__code__.co_firstlineno + 3}"


def product(x: Tensor) -> Tensor:
    def step(c: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
        return c * picked(x, i), c

    return scan(step, Tensor(1.0), Tensor(INDICES))[0]


def chosen(x: Tensor, i: Tensor) -> Tensor:
    return cond(i > 1, lambda i: picked(x, i), lambda i: x.sum(), i)


def repeated(x: Tensor) -> Tensor:
    def body(carry: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        count, total = carry
        return count + 1, total + picked(x, count)

    return while_loop(lambda carry: carry[0] < 5, body, (Tensor(0), Tensor(0.0)))[1]


def nested(x: Tensor) -> Tensor:
    return scan(lambda c, i: (c + chosen(x, i), c), Tensor(0.0), Tensor(INDICES))[0]


FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "scan": product,
    "cond": lambda x: chosen(x, Tensor(7) + x.sum().cast("int64") * 0),
    "while_loop": repeated,
    "nested": nested,
    "vmap": lambda x: vmap(lambda i: picked(x, i))(Tensor(INDICES)),
    "vmap of cond": lambda x: vmap(lambda i: chosen(x, i))(Tensor(INDICES)),
    "vmap of scan": lambda x: vmap(product)(treadle.stack([x, x])),
    "vmap of while_loop": lambda x: vmap(repeated)(treadle.stack([x, x])),
    "grad of scan": grad(product),
    "grad of cond": grad(lambda x: chosen(x, Tensor(7) + x.sum().cast("int64") * 0)),
    "hessian of scan": hessian(product),
    "jvp of scan": lambda x: jvp(product, (x,), (x,))[1],
    "jvp of while_loop": lambda x: jvp(repeated, (x,), (x,))[1],
    "checkpoint": checkpoint(lambda x: picked(x.exp(), Tensor(INDICES)).sum()),
    "grad of checkpoint": grad(checkpoint(lambda x: picked(x.exp(), Tensor(INDICES)).sum())),
}


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_line_inside_the_body(name: str, captured: bool) -> None:
    function = jit(FUNCTIONS[name]) if captured else FUNCTIONS[name]
    with pytest.raises(IndexError) as caught:
        function(Tensor(X)).numpy()
    message = str(caught.value)
    assert message.startswith("x[..]: ")
    assert "for an axis of size 3" in message
    assert message.endswith(f"at {LINE}")


def test_equal_bodies_on_two_lines() -> None:
    """Their bodies are one node; each loop knows its own line."""
    x, indices = Tensor(X), Tensor(INDICES)
    first = scan(lambda c, i: (c + x[i], c), Tensor(0.0), indices)[0]
    line = line_here() - 1
    second = scan(lambda c, i: (c + x[i], c), first * 0, Tensor(np.array([1, 2])))[0]
    with pytest.raises(IndexError) as caught:
        first.numpy()
    assert str(caught.value).endswith(f"at {__file__}:{line}")
    with pytest.raises(IndexError) as caught:  # either may be the one
        second.numpy()
    assert str(caught.value).endswith(f"at {__file__}:{line} or {__file__}:{line + 2}")


def line_here() -> int:
    return sys._getframe(1).f_lineno


def test_a_good_call_after_a_bad_one() -> None:
    x = Tensor(X)

    @jit
    def f(indices: Tensor) -> Tensor:
        return scan(lambda c, i: (c + picked(x, i), c), Tensor(0.0), indices)[0]

    with pytest.raises(IndexError, match="test_index_lines"):
        f(Tensor(INDICES)).numpy()
    assert f(Tensor([0, 1, 2])).item() == 12.0
