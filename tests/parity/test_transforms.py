"""Every transform against torch.func, on forty functions that are written alike in both."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import Tensor

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
func = torch.func

RANDOM = np.random.default_rng(61)
X = RANDOM.uniform(0.3, 1.7, (3, 4))
V = RANDOM.standard_normal((3, 4))
W = RANDOM.standard_normal((4, 4))
PICK = np.array([[0, 2, 1, 1], [2, 0, 0, 1]])


def other(x: Any, array: np.ndarray) -> Any:
    """An array as a tensor of the library of x."""
    return Tensor(array) if isinstance(x, Tensor) else torch.from_numpy(array)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "square": lambda x: x * x,
    "cube": lambda x: x**3,
    "power": lambda x: x**x,
    "root": lambda x: x.sqrt(),
    "rsqrt": lambda x: x.rsqrt(),
    "reciprocal": lambda x: 1 / x,
    "quotient": lambda x: x.sin() / (x + 1),
    "exp": lambda x: x.exp(),
    "expm1": lambda x: x.expm1(),
    "log": lambda x: x.log(),
    "log1p": lambda x: x.log1p(),
    "log2": lambda x: x.log2(),
    "trigonometric": lambda x: x.sin() * x.cos() + x.tan(),
    "atan": lambda x: x.atan(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "erf": lambda x: x.erf(),
    "abs": lambda x: (x - 1).abs(),
    "relu": lambda x: (x - 1).relu(),
    "clamp": lambda x: (x * x).clamp(0.5, 2.0),
    "maximum": lambda x: x.maximum(1 / x),
    "where": lambda x: (x > 1).logical_not() * x.sin() + (x > 1) * x.exp(),
    "mean": lambda x: (x * x).mean(1),
    "var": lambda x: x.var(0),
    "norm": lambda x: (x * x).sum().sqrt(),
    "product": lambda x: x.prod(1),
    "amax": lambda x: x.amax(0) * x.sum(0),
    "logsumexp": lambda x: x.logsumexp(1),
    "softmax": lambda x: x.softmax(-1),
    "log softmax": lambda x: x.log_softmax(0),
    "cumsum": lambda x: (x * x).cumsum(1),
    "matmul": lambda x: x @ other(x, W),
    "gram": lambda x: x @ x.transpose(0, 1),
    "mlp": lambda x: (x @ other(x, W)).tanh() @ other(x, W),
    "permute": lambda x: x.permute(1, 0).reshape(2, 6) ** 2,
    "index": lambda x: x[1:, ::2] * x[0, 1],
    "gather": lambda x: x.gather(0, other(x, PICK)) ** 2,
    "scatter": lambda x: (x * x).scatter_add(0, other(x, PICK), x[:2].exp()),
    "flip": lambda x: x.flip(1) * x,
    "outer": lambda x: x[:, :, None] * x[:, None, :],
}


def test_there_are_forty() -> None:
    assert len(FUNCTIONS) == 40


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_torch(name: str) -> None:
    f = FUNCTIONS[name]
    x, v = Tensor(X), Tensor(V)
    tx, tv = torch.from_numpy(X), torch.from_numpy(V)

    def total(x: Any) -> Any:
        return (f(x) * f(x)).sum()

    def same(found: Any, want: Any, what: str) -> None:
        np.testing.assert_allclose(
            found.numpy(), want.detach().numpy(), rtol=1e-7, atol=1e-9, err_msg=what
        )

    for found, want in zip(treadle.jvp(f, (x,), (v,)), func.jvp(f, (tx,), (tv,))):
        same(found, want, "jvp")
    y, pullback = treadle.vjp(f, x)
    ty, torch_pullback = func.vjp(f, tx)
    same(pullback(y.sin())[0], torch_pullback(ty.sin())[0], "vjp")
    jacobian = func.jacrev(f)(tx)
    same(treadle.jacrev(f)(x), jacobian, "jacrev")
    same(treadle.jacfwd(f)(x), jacobian, "jacfwd")
    hessian = func.hessian(total)(tx)
    same(treadle.hessian(total)(x), hessian, "hessian")
    same(treadle.hvp(total, (x,), (v,))[0], (hessian * tv).sum((2, 3)), "hvp")
    stacked = np.stack([X, X + 0.1, X * 1.3])
    batch, torch_batch = Tensor(stacked), torch.from_numpy(stacked)
    same(treadle.vmap(f)(batch), func.vmap(f)(torch_batch), "vmap")
    each = func.vmap(func.grad(total))(torch_batch)
    same(treadle.vmap(treadle.grad(total))(batch), each, "vmap of grad")


@pytest.mark.parametrize("name", ["cube", "power", "quotient", "tanh", "softmax", "product", "mlp"])
def test_third_order(name: str) -> None:
    f = FUNCTIONS[name]

    def along(library: Any, x: Any, v: Any) -> Any:
        """The third derivative of the sum of squares along v, twice forward over reverse."""

        def once(x: Any) -> Any:
            return library.jvp(library.grad(lambda x: (f(x) * f(x)).sum()), (x,), (v,))[1]

        return library.jvp(once, (x,), (v,))[1]

    found = along(treadle, Tensor(X), Tensor(V)).numpy()
    want = along(func, torch.from_numpy(X), torch.from_numpy(V)).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-8)
