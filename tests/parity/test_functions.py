"""Every differentiable public function against PyTorch in float64: value, gradient, and gradient of
the gradient. The functions come from the table of public names: none can be forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arranging_cases import ARRANGING
from cases import Case
from linalg_cases import LINALG
from neural_cases import NEURAL
from rare_cases import RARE
from scalar_cases import SCALAR
from sorting_cases import SORTING

import treadle
from treadle import Tensor, grad
from treadle.graph.public import METHODS

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
functional = torch.nn.functional

RNG = np.random.default_rng(3)
S = RNG.uniform(0.5, 2.0, (3, 4)) * np.array([1.0, -1.0, 1.0, -1.0])  # of both signs
P = RNG.uniform(0.5, 2.0, (3, 4))  # positive
Q = RNG.uniform(0.1, 0.9, (3, 4))  # probabilities
X4 = RNG.normal(size=(2, 4, 6, 5))
PICK = np.array([[0, 2, 1, 1], [2, 0, 0, 1]])
IDS = np.array([2, 0, 1])
MASK = P > 1.0


def n(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def several(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of functions that take a list of tensors."""
    return lambda *xs, **named: function(list(xs), **named)


def first(name: str, number: int, *args: Any) -> Callable[..., Any]:
    """One of the results of a method."""
    return lambda x: getattr(x, name)(*args)[number]


def attention(*xs: Any, **named: Any) -> Any:
    """PyTorch's attention by its own formula: the fast kernel has no second derivative."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return functional.scaled_dot_product_attention(*xs, **named)


CASES: dict[str, list[Case]] = {
    "conv1d": [
        Case((n(2, 4, 9), n(6, 2, 3), n(6)), named={"stride": 2, "padding": 1, "groups": 2})
    ],
    "conv2d": [
        Case((X4, n(3, 4, 3, 2), n(3)), named={"stride": (2, 1), "padding": 1}),
        Case((X4, n(4, 2, 2, 2)), named={"dilation": 2, "groups": 2}),
    ],
    "conv3d": [Case((n(1, 2, 4, 5, 4), n(3, 2, 2, 3, 2)))],
    "conv_transpose1d": [Case((n(2, 4, 5), n(4, 3, 3), n(3)), named={"stride": 2, "padding": 1})],
    "conv_transpose2d": [
        Case((X4, n(4, 3, 3, 2)), named={"stride": 2, "output_padding": 1, "groups": 2})
    ],
    "conv_transpose3d": [Case((n(1, 2, 3, 3, 2), n(2, 3, 2, 2, 2)))],
    "add": [Case((S, P[:, :1]), named={"alpha": 3})],
    "sub": [Case((S, P[0]), named={"alpha": 2})],
    "mul": [Case((S, P[0]))],
    "div": [Case((S, P))],
    "remainder": [Case((S * 3, P))],
    "fmod": [Case((S * 3, P))],
    "pow": [Case((P, S)), Case((S,), (3,)), Case((P,), (-0.5,)), Case((S,), (2,))],
    "maximum": [Case((S, P))],
    "minimum": [Case((S, P))],
    "clamp": [Case((S,), (-1.0, 1.0)), Case((S,), named={"min": 0.7})],
    "where": [
        Case((S, P, MASK), ours=lambda x, y, m: x.where(m, y), theirs=lambda x, y, m: x.where(m, y))
    ],
    "masked_fill": [Case((S, MASK), (2.0,))],
    "lerp": [Case((S, P, Q)), Case((S, P), (0.3,))],
    "zeros_like": [Case((S,), order=0, theirs=torch.zeros_like)],
    "ones_like": [Case((S,), order=0, theirs=torch.ones_like)],
    "full_like": [Case((S,), (3.0,), order=0, theirs=torch.full_like)],
    "gelu": [Case((S,)), Case((S,), named={"approximate": "tanh"})],
    "reshape": [Case((S,), (2, 6))],
    "view": [Case((S,), (2, 6))],
    "flatten": [Case((X4,), (1, 2))],
    "unflatten": [Case((S,), (1, (2, 2)))],
    "permute": [Case((X4,), (2, 0, 3, 1))],
    "transpose": [Case((X4,), (1, 3))],
    "movedim": [Case((X4,), (0, 2))],
    "squeeze": [Case((S[:, None],), (1,))],
    "unsqueeze": [Case((S,), (1,))],
    "expand": [Case((S[:, None],), (2, 3, 5, 4))],
    "expand_as": [Case((S[:, :1], P))],
    "flip": [Case((X4,), ((0, 2),))],
    "roll": [Case((S,), (2, 1))],
    "repeat": [Case((S,), (2, 1, 3))],
    "tile": [Case((S,), ((2, 1),))],
    "cat": [Case((S, P, S), named={"dim": 1}, ours=several(Tensor.cat), theirs=several(torch.cat))],
    "stack": [
        Case((S, P), named={"dim": 1}, ours=several(Tensor.stack), theirs=several(torch.stack))
    ],
    "split": [Case((S,), ours=first("split", 0, 3, 1), theirs=first("split", 0, 3, 1))],
    "chunk": [Case((S,), ours=first("chunk", 1, 2), theirs=first("chunk", 1, 2))],
    "unbind": [Case((S,), ours=first("unbind", 2), theirs=first("unbind", 2))],
    "pad": [
        Case((X4,), ((1, 2, 0, 1),), {"value": 0.5}),
        *[
            Case((X4,), ((1, 2, 2, 1),), {"mode": mode})
            for mode in ("reflect", "replicate", "circular")
        ],
    ],
    "shrink": [Case((S,), ((None, (1, 3)),), theirs=lambda x, regions: x[:, 1:3])],
    "diagonal": [Case((n(3, 3),))],
    "tril": [Case((S,), (-1,))],
    "triu": [Case((S,), (1,))],
    "matmul": [
        Case((n(2, 3, 4), n(4, 5))),
        Case((n(4), n(2, 4, 3))),
        Case((n(2, 1, 3, 4), n(3, 4, 2))),
    ],
    "dot": [Case((n(5), n(5)))],
    "mv": [Case((n(3, 4), n(4)))],
    "mm": [Case((n(3, 4), n(4, 2)))],
    "bmm": [Case((n(2, 3, 4), n(2, 4, 2)))],
    "outer": [Case((n(3), n(4)))],
    "addmm": [Case((n(3, 2), n(3, 4), n(4, 2)), named={"beta": 2, "alpha": 3})],
    "mse_loss": [Case((S, P)), Case((S, P), named={"reduction": "sum"})],
    "l1_loss": [Case((S, P))],
    "binary_cross_entropy": [Case((Q, RNG.uniform(0, 1, (3, 4))))],
    "binary_cross_entropy_with_logits": [Case((S, Q), named={"pos_weight": None})],
    "nll_loss": [Case((n(3, 5), IDS)), Case((n(3, 5), IDS), named={"reduction": "none"})],
    "cross_entropy": [
        Case((n(3, 5), IDS)),
        Case((n(3, 5), IDS), named={"label_smoothing": 0.2, "ignore_index": 2}),
        Case((n(2, 5, 3), np.array([[0, 1, 4], [3, 3, 2]])), named={"reduction": "sum"}),
    ],
    "linear": [Case((n(2, 3, 4), n(5, 4), n(5)))],
    "softmax": [Case((S,), (1,)), Case((X4,), (1,))],
    "log_softmax": [Case((S,), (0,))],
    "layer_norm": [Case((S, n(4), n(4)), ours=lambda x, w, b: x.layer_norm((4,), w, b),
                        theirs=lambda x, w, b: functional.layer_norm(x, (4,), w, b))],
    "rms_norm": [Case((S, n(4)), ours=lambda x, w: x.rms_norm((4,), w, 1e-5),
                      theirs=lambda x, w: functional.rms_norm(x, (4,), w, 1e-5))],
    "batch_norm": [
        Case(
            (X4, n(4), n(4)),
            ours=lambda x, w, b: x.batch_norm(*x.batch_statistics(), w, b),
            theirs=lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
        )
    ],
    "batch_statistics": [
        Case(
            (X4,),
            ours=lambda x: Tensor.cat(list(x.batch_statistics())),
            theirs=lambda x: torch.cat((x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False))),
        )
    ],
    "group_norm": [Case((X4, n(4), n(4)), ours=lambda x, w, b: x.group_norm(2, w, b),
                        theirs=lambda x, w, b: functional.group_norm(x, 2, w, b))],
    "scaled_dot_product_attention": [
        Case((n(2, 2, 3, 4), n(2, 2, 5, 4), n(2, 2, 5, 4)), theirs=attention),
        Case((n(2, 3, 4), n(2, 3, 4), n(2, 3, 4)), named={"is_causal": True}, theirs=attention),
    ],
    "stft": [
        Case(
            (n(2, 9),),
            (4, 2),
            ours=lambda x, *args: x.stft(*args, return_complex=False),
            theirs=lambda x, *args: torch.view_as_real(x.stft(*args, return_complex=True)),
        )
    ],
    "istft": [
        Case(
            (n(3, 5, 2),),
            (4, 2),
            ours=lambda x, *args: treadle.view_as_complex(x).istft(*args),
            theirs=lambda x, *args: torch.view_as_complex(x).istft(*args),
        )
    ],
    "sum": [Case((X4,), ((1, 3),)), Case((S,), named={"dim": 1, "keepdim": True})],
    "prod": [Case((S,), (1,))],
    "mean": [Case((X4,), ((0, 2),)), Case((S,))],
    "var": [Case((S,), (1,)), Case((S,), named={"dim": 0, "correction": 0})],
    "std": [Case((S,), (1,))],
    "logsumexp": [Case((S,), (1,))],
    "max": [Case((S,), (1,), theirs=torch.amax)],
    "min": [Case((S,), (1,), theirs=torch.amin)],
    "cumsum": [Case((S,), (1,))],
    "gather": [
        Case((S, PICK), ours=lambda x, i: x.gather(0, i), theirs=lambda x, i: x.gather(0, i))
    ],
    "take_along_dim": [Case((S, PICK), (0,))],
    "index_select": [Case((S, IDS), ours=lambda x, i: x.index_select(0, i),
                          theirs=lambda x, i: x.index_select(0, i))],
    "scatter": [Case((S, PICK[:1], P[:1]), ours=lambda x, i, y: x.scatter(0, i, y),
                     theirs=lambda x, i, y: x.scatter(0, i, y))],
    "scatter_add": [Case((S, PICK, P[:2]), ours=lambda x, i, y: x.scatter_add(0, i, y),
                         theirs=lambda x, i, y: x.scatter_add(0, i, y))],
    **ARRANGING,
    **LINALG,
    **NEURAL,
    **SCALAR,
    **SORTING,
    **RARE,
}  # fmt: skip
POSITIVE = ("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "reciprocal")
PROPERTIES = ("H", "T", "mH", "mT", "real")

DIFFERENTIABLE = [
    name
    for name, entry in METHODS.items()
    if entry.name == name
    and entry.gradient == "yes"
    and entry.kind in ("method", "property", "like", "keyed", "reads")
]


def cases_of(name: str) -> list[Case]:
    """Those listed, or a call without other arguments."""
    if name in PROPERTIES:
        return [Case((S,), ours=lambda x: getattr(x, name), theirs=lambda x: getattr(x, name))]
    if name == "imag":  # PyTorch's is for complex tensors only
        return [Case((S,), ours=lambda x: x.imag, theirs=lambda x: torch.complex(x, x * 0).imag)]
    return CASES.get(name) or [Case((P if name in POSITIVE else S,))]


def their_function(name: str) -> Callable[..., Any]:
    """What PyTorch has under a name."""
    for place in (torch.Tensor, functional, torch):
        if hasattr(place, name):
            return getattr(place, name)
    pytest.fail(f"PyTorch has no {name}: the case needs `theirs`")


ALL = [(name, case) for name in DIFFERENTIABLE for case in cases_of(name)]
IDS_OF_ALL = [
    f"{name}-{number}" for name in DIFFERENTIABLE for number, _ in enumerate(cases_of(name))
]


def close(ours: np.ndarray, theirs: Any, what: str) -> None:
    np.testing.assert_allclose(
        ours, theirs.detach().numpy(force=True), rtol=1e-9, atol=1e-10, err_msg=what
    )


@pytest.mark.parametrize(("name", "case"), ALL, ids=IDS_OF_ALL)
def test_value_gradient_and_second_gradient(name, case):
    our_function = case.ours or getattr(Tensor, name)
    their_call = case.theirs or their_function(name)
    wanted = [k for k, array in enumerate(case.arrays) if array.dtype == np.float64]
    ours = [Tensor(array) for array in case.arrays]
    theirs = [torch.tensor(array, requires_grad=k in wanted) for k, array in enumerate(case.arrays)]

    our_value = our_function(*ours, *case.args, **case.named)
    their_value = their_call(*theirs, *case.args, **case.named)
    close(our_value.numpy(), their_value, "value")
    if case.order == 0:
        return
    weights = np.cos(np.arange(their_value.numel())).reshape(their_value.shape)
    again = [
        np.sin(1.0 + np.arange(case.arrays[k].size)).reshape(case.arrays[k].shape) for k in wanted
    ]

    def total(*xs):
        return (our_function(*xs, *case.args, **case.named) * Tensor(weights)).sum()

    def twice(*xs):
        found = grad(total, tuple(wanted))(*xs)
        return sum(
            ((g * Tensor(w)).sum() for g, w in zip(found, again)), Tensor(0.0, dtype="float64")
        )

    inputs = [theirs[k] for k in wanted]
    their_first = torch.autograd.grad(
        (their_value * torch.tensor(weights)).sum(), inputs, create_graph=True, allow_unused=True
    )
    for k, one, other in zip(wanted, grad(total, tuple(wanted))(*ours), their_first):
        close(
            one.numpy(), torch.zeros_like(theirs[k]) if other is None else other, f"gradient by {k}"
        )
    if case.order == 1:
        return
    scalar = sum((g * torch.tensor(w)).sum() for g, w in zip(their_first, again) if g is not None)
    if not torch.is_tensor(scalar) or not scalar.requires_grad:
        their_second: Any = [None] * len(inputs)
    else:
        their_second = torch.autograd.grad(scalar, inputs, allow_unused=True)
    for k, one, other in zip(wanted, grad(twice, tuple(wanted))(*ours), their_second):
        close(
            one.numpy(), torch.zeros_like(theirs[k]) if other is None else other, f"second by {k}"
        )


def test_every_differentiable_function_is_compared():
    assert {name for name, _ in ALL} == set(DIFFERENTIABLE)
    assert set(CASES) <= set(DIFFERENTIABLE)


@pytest.mark.parametrize(
    ("equation", "sizes"),
    [
        ("bij,bjk,i->bk", [(2, 3, 4), (2, 4, 5), (3,)]),
        ("ii...,...j->ij", [(3, 3, 4), (4, 5)]),
        ("...ij,...jk", [(2, 1, 3, 4), (5, 4, 2)]),
        ("ij->", [(3, 4)]),
        ("i,j", [(3,), (4,)]),
    ],
)
def test_einsum(equation, sizes):
    arrays = [n(*size) for size in sizes]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    value = torch.einsum(equation, *theirs)
    close(Tensor.einsum(equation, *map(Tensor, arrays)).numpy(), value, "value")

    def total(*xs):
        return Tensor.einsum(equation, *xs).square().sum()

    expected = torch.autograd.grad(value.square().sum(), theirs)
    found = grad(total, tuple(range(len(arrays))))(*map(Tensor, arrays))
    for one, other in zip(found, expected):
        close(one.numpy(), other, "gradient")
