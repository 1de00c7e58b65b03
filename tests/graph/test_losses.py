"""Losses by their definitions in NumPy, and what does not fit them. CTC by every path there is."""

import itertools
import math

import numpy as np
import pytest
from arrays import close, run, tensor
from gradcheck import leaf

from treadle.backend.interp.graph import evaluate
from treadle.graph import ctc, distances
from treadle.graph.build import const, ones_like
from treadle.graph.grad import gradients
from treadle.graph.public import METHODS
from treadle.ir.dtype import bfloat16, float16, float32, float64

R = np.random.default_rng(8)
X, Y, Z = (R.normal(size=(4, 5)).astype(np.float32) for _ in range(3))
SIGN = np.where(R.random(4) < 0.5, -1, 1).astype(np.float32)
D = np.abs(X - Y)


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def distance(a, b):
    return np.linalg.norm(a.astype(np.float64) - b + 1e-6, axis=-1)


SIGNS = np.sign(Y)
NEAR, FAR = distance(X, Y), distance(X, Z)
COSINE = (X * Y).sum(-1) / np.sqrt((X * X).sum(-1) * (Y * Y).sum(-1))
LOGS = X.astype(np.float64) - np.log(np.exp(X).sum(-1, keepdims=True))
GOAL = np.exp(Y.astype(np.float64)) / np.exp(Y.astype(np.float64)).sum(-1, keepdims=True)

# (name, arrays, named arguments, losses that are not reduced)
CASES = [
    ("smooth_l1_loss", (X, Y), {}, np.where(D < 1, D * D / 2, D - 0.5)),
    ("smooth_l1_loss", (X, Y), {"beta": 0.3}, np.where(D < 0.3, D * D / 0.6, D - 0.15)),
    ("smooth_l1_loss", (X, Y), {"beta": 0}, D),
    ("huber_loss", (X, Y), {"delta": 0.5}, np.where(D <= 0.5, D * D / 2, 0.5 * (D - 0.25))),
    ("poisson_nll_loss", (X, D), {}, np.exp(X) - D * X),
    ("poisson_nll_loss", (D, D), {"log_input": False}, D - D * np.log(D + 1e-8)),
    ("gaussian_nll_loss", (X, Y, D + 1), {}, (np.log(D + 1) + D * D / (D + 1)) / 2),
    ("gaussian_nll_loss", (X, Y, D[:, :1] + 1), {"full": True},
     (np.log(D[:, :1] + 1) + D * D / (D[:, :1] + 1) + math.log(2 * math.pi)) / 2),
    ("kl_div", (LOGS, GOAL), {}, GOAL * (np.log(GOAL) - LOGS)),
    ("kl_div", (LOGS, np.log(GOAL)), {"log_target": True}, GOAL * (np.log(GOAL) - LOGS)),
    ("margin_ranking_loss", (X, Y, SIGNS), {"margin": 0.5},
     np.maximum(0, -SIGNS * (X - Y) + 0.5)),
    ("hinge_embedding_loss", (D, SIGNS), {"margin": 2.0},
     np.where(SIGNS == 1, D, np.maximum(0, 2 - D))),
    ("cosine_embedding_loss", (X, Y, SIGN), {"margin": 0.1},
     np.where(SIGN == 1, 1 - COSINE, np.maximum(0, COSINE - 0.1))),
    ("triplet_margin_loss", (X, Y, Z), {"margin": 0.5}, np.maximum(0, NEAR - FAR + 0.5)),
    ("triplet_margin_loss", (X, Y, Z), {"swap": True},
     np.maximum(0, NEAR - np.minimum(FAR, distance(Y, Z)) + 1)),
    ("soft_margin_loss", (X, SIGNS), {}, np.log1p(np.exp(-SIGNS * X))),
    ("multilabel_soft_margin_loss", (X, (Y > 0).astype(np.float32)), {},
     -(np.where(Y > 0, np.log(sigmoid(X)), np.log(sigmoid(-X)))).mean(-1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arrays", "named", "expected"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_values_and_reductions(name, arrays, named, expected):
    loss = METHODS[name].function
    nodes = [tensor(np.asarray(array, np.float64)) for array in arrays]
    for reduction, reduce in (("none", np.asarray), ("sum", np.sum), ("mean", np.mean)):
        found = run(loss(*nodes, **named, reduction=reduction))
        np.testing.assert_allclose(found, reduce(expected), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=f"{name}: reduction is .* not 'total'"):
        loss(*nodes, **named, reduction="total")
    for dtype in (float16, bfloat16):
        found = loss(*[tensor(np.asarray(array), dtype) for array in arrays], **named)
        assert found.dtype is dtype
        np.testing.assert_allclose(run(found), np.mean(expected), rtol=0.08, atol=0.03)


def test_zero_targets_of_kl_div_count_nothing():
    target = tensor(np.array([0.0, 1.0]))
    close(distances.kl_div(tensor(np.array([-1.0, -2.0])), target, "sum"), np.float64(2.0))
    found = run(distances.kl_div(tensor(LOGS), tensor(GOAL), "batchmean"))
    np.testing.assert_allclose(found, (GOAL * (np.log(GOAL) - LOGS)).sum() / 4)


def test_cosine_similarity_of_nothing_is_zero():
    zero = np.zeros((2, 3), np.float32)
    assert run(distances.cosine_similarity(tensor(zero), tensor(zero))).tolist() == [0, 0]
    found = distances.cosine_similarity(tensor(X), tensor(Y), dim=-1)
    np.testing.assert_allclose(run(found), COSINE, rtol=1e-5)


def test_the_derivative_by_a_small_variance_is_that_at_eps():
    x, variance = leaf(0, np.array([1.0])), leaf(1, np.array([1e-9]))
    loss = distances.gaussian_nll_loss(x, const(0.0, float64, (1,)), variance, reduction="none")
    (derived,) = gradients([loss], [ones_like(loss)], [variance])
    (found,) = evaluate([derived], {x: np.array([1.0]), variance: np.array([1e-9])})
    np.testing.assert_allclose(found, [(1e6 - 1e12) / 2])


# ---- classes -------------------------------------------------------------------------------------
IDS = np.array([0, 4, 2, 2])
OUT_OF_RANGE = [
    ("cross_entropy", {}), ("nll_loss", {}), ("multi_margin_loss", {}),
    ("sparse_categorical_crossentropy", {}), ("cross_entropy", {"label_smoothing": 0.1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "named"), OUT_OF_RANGE)
@pytest.mark.parametrize("label", [5, -7])
def test_labels_out_of_range_are_an_error(name, named, label):
    ids = IDS.copy()
    ids[1] = label
    with pytest.raises(IndexError):
        run(METHODS[name].function(tensor(X), tensor(ids), **named))


def test_sparse_categorical_crossentropy_has_the_classes_last():
    scores = R.normal(size=(2, 3, 5))
    ids = np.array([[0, 4, 1], [2, 2, 3]])
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    expected = -np.take_along_axis(logs, ids[..., None], -1)[..., 0]
    loss = distances.sparse_categorical_crossentropy
    np.testing.assert_allclose(run(loss(tensor(scores), tensor(ids), reduction="none")), expected)
    smooth = 0.8 * expected - 0.2 * logs.mean(-1)
    found = loss(tensor(scores), tensor(ids), label_smoothing=0.2)
    np.testing.assert_allclose(run(found), smooth.mean())
    ids[0, 0] = 3
    kept = ids != 3
    found = loss(tensor(scores), tensor(ids), ignore_index=3)
    wanted = -np.take_along_axis(logs, ids[..., None], -1)[..., 0][kept].mean()
    np.testing.assert_allclose(run(found), wanted)


@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss(p):
    own = X[np.arange(4), IDS][:, None]
    gaps = np.maximum(0, 1 - own + X) ** p
    gaps[np.arange(4), IDS] = 0
    found = distances.multi_margin_loss(tensor(X), tensor(IDS), p)
    np.testing.assert_allclose(run(found), (gaps.sum(1) / 5).mean(), rtol=1e-6)


WRONG = [
    ("multi_margin_loss", (X, IDS.astype(np.float32)), TypeError, "class ids, integers"),
    ("multi_margin_loss", (X, IDS[:2]), ValueError, r"need class ids of shape \(4,\)"),
    ("nll_loss", (X, X), TypeError, "class ids, integers, not float32"),
    ("cross_entropy", (X, IDS[:2]), ValueError, r"need class ids of shape \(4,\), not \(2,\)"),
    ("cross_entropy", (X, X[:, :3]), ValueError, r"\(4, 5\).*\(4, 3\)"),
    ("sparse_categorical_crossentropy", (X, IDS[:2]), ValueError, "^sparse_cat.* not .2,.$"),
    ("sparse_categorical_crossentropy", (X, X[:, 0]), TypeError, "class ids, integers"),
    ("huber_loss", (X, X[:2]), ValueError, r"huber_loss: .*\(4, 5\).*\(2, 5\)"),
    ("gaussian_nll_loss", (X, Y, Z[:2]), ValueError, "gaussian_nll_loss"),
    ("cosine_embedding_loss", (X, Y, SIGNS), ValueError, "needs a target of one dimension less"),
    ("triplet_margin_loss", (X, Y, Z[:, :3]), ValueError, "triplet_margin_loss|do not broadcast"),
]


@pytest.mark.parametrize(
    ("name", "arrays", "error", "message"), WRONG, ids=[f"{i}-{c[0]}" for i, c in enumerate(WRONG)]
)
def test_what_does_not_fit_is_said(name, arrays, error, message):
    with pytest.raises(error, match=message):
        METHODS[name].function(*map(tensor, arrays))


# ---- sequences -----------------------------------------------------------------------------------
def by_every_path(logs, labels):
    """-log of the sum over all paths that give the labels when repeats and then blanks go."""
    steps, classes = logs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        merged = [label for label, _ in itertools.groupby(path)]
        if [label for label in merged if label] == list(labels):
            total += math.exp(sum(logs[step, label] for step, label in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("labels", [[1, 2], [1, 1], [2], [], [1, 2, 1], [1, 1, 1]])
def test_ctc_loss_is_a_sum_over_all_paths(labels):
    scores = R.normal(size=(4, 3))
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    padded = np.array([[*labels, *[0] * (3 - len(labels))]])
    found = ctc.ctc_loss(
        tensor(logs[:, None]), tensor(padded), [4], [len(labels)], reduction="none"
    )
    np.testing.assert_allclose(run(found), [by_every_path(logs, labels)], rtol=1e-12)


def test_ctc_loss_in_half_computes_in_float32():
    logs = np.log(np.full((6, 1, 3), 1 / 3))
    args = tensor(np.array([[1, 2]])), [6], [2]
    for dtype in (float16, bfloat16):
        found = ctc.ctc_loss(tensor(logs, dtype), *args)
        assert found.dtype is dtype
        exact = ctc.ctc_loss(tensor(run(tensor(logs, dtype)).astype(np.float32)), *args)
        assert exact.dtype is float32
        np.testing.assert_allclose(run(found), run(exact), rtol=1 / 128)


def test_ctc_loss_says_what_does_not_fit():
    x, ids = tensor(np.zeros((4, 2, 3))), tensor(np.ones((2, 2), np.int64))
    with pytest.raises(ValueError, match="ctc_loss: input_lengths has shape"):
        ctc.ctc_loss(x, ids, [4], [1, 1])
    with pytest.raises(ValueError, match="ctc_loss: blank=3 is none of 3 classes"):
        ctc.ctc_loss(x, ids, [4, 4], [1, 1], blank=3)
    with pytest.raises(IndexError):
        run(ctc.ctc_loss(x, tensor(np.full((2, 2), 3)), [4, 4], [1, 1]))
