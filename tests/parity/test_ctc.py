"""ctc_loss beside PyTorch: values, and the derivative by the scores before log_softmax."""

import numpy as np
import pytest

from treadle import Tensor, jit, nn

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
RNG = np.random.default_rng(2)
SCORES = RNG.normal(size=(12, 3, 5))
TARGETS = RNG.integers(1, 5, (3, 4))
TIMES, COUNTS = np.array([12, 9, 7]), np.array([4, 0, 3])


def theirs(targets, times, **named):
    x = torch.tensor(SCORES, requires_grad=True)
    loss = torch.nn.functional.ctc_loss(
        x.log_softmax(-1), torch.tensor(targets), torch.tensor(times), torch.tensor(COUNTS), **named
    )
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    return loss.detach().numpy(), gradient.numpy()


def ours(targets, times, counts, **named):
    x = Tensor(SCORES, requires_grad=True)
    loss = nn.functional.ctc_loss(x.log_softmax(-1), Tensor(targets), times, counts, **named)
    loss.sum().backward()
    return loss.numpy(), x.grad.numpy()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("lengths", [Tensor, list])
def test_value_and_gradient(reduction, flat, lengths):
    given = np.concatenate([row[:n] for row, n in zip(TARGETS, COUNTS)]) if flat else TARGETS
    expected = theirs(given, TIMES, reduction=reduction)
    found = ours(given, lengths(TIMES), lengths(COUNTS), reduction=reduction)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_targets_that_do_not_fit_count_nothing():
    times = np.array([2, 9, 7])
    expected = theirs(TARGETS, times, reduction="none", zero_infinity=True)
    found = ours(TARGETS, list(times), list(COUNTS), reduction="none", zero_infinity=True)
    assert found[0][0] == 0
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_one_program_for_all_lengths():
    traced = []

    @jit
    def loss(x, targets, times, counts):
        traced.append(1)
        return nn.functional.ctc_loss(x.log_softmax(-1), targets, times, counts)

    for times in (TIMES, TIMES - 1):
        found = loss(Tensor(SCORES), Tensor(TARGETS), Tensor(times), Tensor(COUNTS))
        np.testing.assert_allclose(found.numpy(), theirs(TARGETS, times)[0], rtol=1e-10)
    assert len(traced) <= 2


def test_shapes_that_do_not_fit_say_so():
    with pytest.raises(ValueError, match="input_lengths has shape"):
        ours(TARGETS, [12, 9], list(COUNTS))
    with pytest.raises(ValueError, match="none of 5 classes"):
        ours(TARGETS, list(TIMES), list(COUNTS), blank=7)
    with pytest.raises(IndexError, match="ctc_loss"):
        ours(TARGETS + 4, list(TIMES), list(COUNTS))
