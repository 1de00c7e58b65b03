"""Cases of elementwise functions and activations that take more than one array of any sign."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import Case

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
RNG = np.random.default_rng(9)
S = RNG.uniform(0.5, 2.0, (3, 4)) * np.array([1.0, -1.0, 1.0, -1.0])  # of both signs
T = RNG.uniform(0.5, 2.0, (3, 4)) * np.array([-1.0, -1.0, 1.0, 1.0])
P = RNG.uniform(0.5, 2.0, (3, 4))  # positive
U = RNG.uniform(-0.9, 0.9, (3, 4))  # inside the unit interval
Q = RNG.uniform(0.1, 0.9, (3, 4))  # probabilities
SLOPES = np.array([0.1, -0.2, 0.3, 1.5])


def hardsigmoid(x):
    """PyTorch's own divides by a float32 6 in its derivative."""
    return torch.clamp(x + 3, 0, 6) / 6


def celu(x, alpha):
    """PyTorch's own takes 1/alpha in float32."""
    return torch.where(x > 0, x, alpha * torch.expm1(x / alpha))


def n(*shape):
    return RNG.normal(size=shape)


F = torch.nn.functional
MASK = P > 1
LABEL = np.array([1, -1, 1])
PRODUCTS: dict[str, list[Case]] = {
    "tensordot": [
        Case((n(3, 4, 5), n(5, 4, 2)), (([2, 1], [0, 1]),)),
        Case((n(3, 4), n(4, 5)), (1,)),
    ],
    "vecdot": [Case((n(3, 4), n(4)), theirs=lambda x, y: torch.linalg.vecdot(x, y))],
    "inner": [Case((n(2, 4), n(3, 4)))],
    "vdot": [Case((n(4), n(4)))],
    "kron": [Case((n(2, 3), n(2, 1, 2)))],
    "cross": [Case((n(2, 3), n(2, 3)), named={"dim": 1})],
    "addmv": [Case((n(3), n(3, 4), n(4)), named={"beta": 0.5, "alpha": 2.0})],
    "baddbmm": [Case((n(2, 3, 5), n(2, 3, 4), n(2, 4, 5)), named={"alpha": 2.0})],
    "addbmm": [Case((n(3, 5), n(2, 3, 4), n(2, 4, 5)), named={"beta": 0.5})],
    "addr": [Case((n(3, 4), n(3), n(4)), named={"beta": 0.5, "alpha": 2.0})],
    "trace": [Case((n(3, 4),))],
}
DISTANCES: dict[str, list[Case]] = {
    "smooth_l1_loss": [Case((S, T), named={"beta": 0.7}, theirs=F.smooth_l1_loss)],
    "huber_loss": [Case((S, T), named={"delta": 0.7}, theirs=F.huber_loss)],
    "poisson_nll_loss": [Case((S, P), named={"full": True}, theirs=F.poisson_nll_loss)],
    "gaussian_nll_loss": [Case((S, T, P), named={"full": True}, theirs=F.gaussian_nll_loss)],
    "kl_div": [Case((S, Q), named={"reduction": "batchmean"}, theirs=F.kl_div)],
    "sparse_categorical_crossentropy": [
        Case((S, np.array([0, 3, -1])), theirs=lambda x, y: F.cross_entropy(x, y, ignore_index=-1))
    ],
    "cosine_similarity": [Case((S, T), theirs=F.cosine_similarity)],
    "pairwise_distance": [Case((S, T), (3.0,), theirs=F.pairwise_distance)],
    "cdist": [Case((n(3, 4), n(5, 4)), (3.0,), theirs=torch.cdist, order=1)],
    "margin_ranking_loss": [Case((S[:, 0], T[:, 0], LABEL), theirs=F.margin_ranking_loss)],
    "hinge_embedding_loss": [Case((S[:, 1], LABEL), theirs=F.hinge_embedding_loss)],
    "cosine_embedding_loss": [Case((S, T, LABEL), theirs=F.cosine_embedding_loss)],
    "triplet_margin_loss": [
        Case((S, T, P), named={"swap": True, "margin": 3.0}, theirs=F.triplet_margin_loss)
    ],
    "soft_margin_loss": [Case((S, np.sign(T).astype(np.int64)), theirs=F.soft_margin_loss)],
    "multilabel_soft_margin_loss": [Case((S, Q), theirs=F.multilabel_soft_margin_loss)],
    "multi_margin_loss": [
        Case((S, np.array([0, 3, 2])), (2,), theirs=F.multi_margin_loss, order=1)
    ],
}
SCALAR: dict[str, list[Case]] = {
    "asin": [Case((U,))],
    "acos": [Case((U,))],
    "atanh": [Case((U,))],
    "erfinv": [Case((U,))],
    "acosh": [Case((P + 0.6,))],
    "logit": [Case((Q,)), Case((Q,), (0.3,))],
    "lgamma": [Case((S,)), Case((P * 6,))],
    "digamma": [Case((S,)), Case((P * 6,))],
    "copysign": [Case((S, T))],
    "fmax": [Case((S, T))],
    "fmin": [Case((S, T))],
    "logaddexp": [Case((S, T))],
    "dist": [Case((S, T)), Case((S, T), (1.0,)), Case((S, T), (3.0,))],
    "atan2": [Case((S, T))],
    "hypot": [Case((S, T))],
    "xlogy": [Case((S, P))],
    "float_power": [Case((P,), (2.5,)), Case((P, S))],
    "addcmul": [Case((S, T, P)), Case((S, T, P), named={"value": 0.5})],
    "addcdiv": [Case((S, T, P)), Case((S, T, P), named={"value": -2.0})],
    "prelu": [Case((S, SLOPES)), Case((S, SLOPES[:1]))],
    "threshold": [Case((S,), (0.7, -1.0))],
    "hardsigmoid": [Case((S * 3,), theirs=hardsigmoid)],
    "hardswish": [Case((S * 3,), theirs=lambda x: x * hardsigmoid(x))],
    "quick_gelu": [Case((S,), theirs=lambda x: x * torch.sigmoid(1.702 * x))],
    "gumbel_softmax": [
        Case((S,), ours=lambda x: x.gumbel_softmax().sum(-1), theirs=lambda x: x.sum(-1) * 0 + 1)
    ],
    **PRODUCTS,
    **DISTANCES,
    "ctc_loss": [  # more of it in test_ctc.py
        Case(
            (n(7, 2, 5), np.array([[1, 2, 2], [3, 4, 0]])),
            ours=lambda x, y: x.log_softmax(-1).ctc_loss(y, [7, 6], [3, 2]),
            theirs=lambda x, y: F.ctc_loss(
                x.log_softmax(-1), y, torch.tensor([7, 6]), torch.tensor([3, 2])
            ),
            order=1,
        )
    ],
    "cumprod": [Case((S,), (1,))],
    "logcumsumexp": [Case((S,), (1,))],
    "cummax": [
        Case((S,), (1,), ours=lambda x, d: x.cummax(d)[0], theirs=lambda x, d: x.cummax(d)[0])
    ],
    "cummin": [
        Case((S,), (1,), ours=lambda x, d: x.cummin(d)[0], theirs=lambda x, d: x.cummin(d)[0])
    ],
    "masked_scatter": [Case((S, MASK, T))],
    "elu": [Case((S,), (0.7,))],
    "celu": [Case((S,), (0.7,), theirs=celu)],
    "softplus": [Case((S,), (1.7,)), Case((S,), (1.0, 1.2))],
    "glu": [Case((S,), (1,))],
    "nan_to_num": [Case((np.array([math.nan, math.inf, -math.inf, 1.5]),), (2.0, 3.0, 4.0))],
}
