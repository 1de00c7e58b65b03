"""Where the derivative is 0 everywhere, 0 flows as in PyTorch, also where the value has turned out
to be a constant while the graph was made; found by its sample inputs."""

import numpy as np
import pytest

import treadle
from treadle import Tensor, jit, nn

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
FUNCTIONS = {
    "sign": lambda x: x.sign(),
    "floor": lambda x: x.floor(),
    "norm": lambda x: x.unsqueeze(0).norm(0, 1),
    "sum of sign": lambda x: x.sign() + x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_zero_flows(name):
    values = np.array([-2.5, -0.0, 0.0, 3.0, np.inf, -np.inf], np.float32)
    ours, theirs = Tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    mine, its = FUNCTIONS[name](ours), FUNCTIONS[name](theirs)
    np.testing.assert_array_equal(mine.numpy(), its.detach().numpy())
    mine.sum().backward()
    wanted = torch.ones(6) if name == "sum of sign" else torch.zeros(6)
    np.testing.assert_array_equal(ours.grad.numpy(), wanted.numpy())


# ---- results that are constants ------------------------------------------------------------------
# (library, its functional, x of shape (2, 3)) -> a tensor
CONSTANT = {
    "nothing summed": lambda t, f, x: x[0:0].sum(),
    "nothing multiplied": lambda t, f, x: x[:, 3:].prod(1),
    "nothing averaged": lambda t, f, x: x[2:].mean(),
    "the middle of nothing": lambda t, f, x: x[0:0].median(),
    "nothing's middle but NaN": lambda t, f, x: x[0:0].nanmedian(),
    "nothing joined": lambda t, f, x: t.cat([x[0:0], x[0:0]]).sum(),
    "nothing read": lambda t, f, x: x[t.zeros(0, dtype=t.int64)].sum(),
    "nothing selected": lambda t, f, x: x[0:0].masked_select(t.ones(1, 3, dtype=t.bool)),
    "nothing sorted": lambda t, f, x: x[0:0].sort(0)[0].sum(),
    "nothing accumulated": lambda t, f, x: x[0:0].cumsum(0).sum(),
    "a product over nothing": lambda t, f, x: x[:, 0:0] @ x[:, 0:0].T,
    "the distances of nothing": lambda t, f, x: f.pairwise_distance(x[:, 0:0], x[:, 0:0]),
    "the norm of nothing": lambda t, f, x: t.linalg.norm(x[0:0]),
    "the nuclear norm of nothing": lambda t, f, x: t.linalg.matrix_norm(x[0:0], "nuc"),
    "the determinant of nothing": lambda t, f, x: t.linalg.det(x[0:0, 0:0]),
    "the diagonal of nothing": lambda t, f, x: x.diagonal(5).sum(),
    "a difference of one": lambda t, f, x: x[:1].diff(dim=0).sum(),
    "no column": lambda t, f, x: x.unfold(1, 0, 1).sum(),
    "to the power 0": lambda t, f, x: x**0,
    "to the power 0.0": lambda t, f, x: x.pow(0.0),
    "times 0": lambda t, f, x: x * 0,
    "minus itself": lambda t, f, x: x - x,
    "over itself": lambda t, f, x: x / x,
    "clamped to one number": lambda t, f, x: x.clamp(2.0, 2.0),
    "masked": lambda t, f, x: x.masked_fill(t.ones(2, 3, dtype=t.bool), 7.0),
    "not chosen": lambda t, f, x: t.where(t.tensor(False), x, t.tensor(5.0)),
    "not chosen, but another": lambda t, f, x: t.where(
        t.tensor(True), t.tensor([1.0, 2.0, 3.0]), x
    ),
    "overwritten": lambda t, f, x: t.zeros(2, 3).where(t.ones(2, 3, dtype=t.bool), x),
    "above": lambda t, f, x: x.triu(9),
    "dropped": lambda t, f, x: f.dropout(x, 1.0),
    "not added": lambda t, f, x: x.addmm(t.ones(2, 4), t.ones(4, 3), beta=0),
    "rounded": lambda t, f, x: x.round() * 2,
    "the share of one": lambda t, f, x: x[:, :1].softmax(1),
    "one normalized": lambda t, f, x: f.layer_norm(x[:, :1], (1,)),
    "a threshold": lambda t, f, x: f.threshold(x, 99.0, 1.0),
    "a hard step": lambda t, f, x: f.hardtanh(x, 10.0, 11.0),
    "the real part": lambda t, f, x: t.complex(t.ones(2, 3), x).real,
    "the imaginary part": lambda t, f, x: t.complex(x, t.ones(2, 3)).imag,
    "the parts of one number's transform": lambda t, f, x: t.fft.fft(x[:, :1]).imag,
    "repeated never": lambda t, f, x: x.repeat(0, 1).sum(),
    "padded, and cut off": lambda t, f, x: f.pad(x, (3, 0))[:, :3],
    "a bag of nothing": lambda t, f, x: f.embedding_bag(
        t.zeros(0, dtype=t.int64), x, t.tensor([0, 0]), mode="max"
    ),
}
VALUES = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)


def tracked(library):
    make = torch.tensor if library is torch else Tensor
    return make(VALUES, requires_grad=True)


def loss_of(name, library, x):
    functional = torch.nn.functional if library is torch else nn.functional
    return (CONSTANT[name](library, functional, x) * 3).sum()


@pytest.mark.parametrize("name", CONSTANT)
def test_a_constant_has_a_derivative(name):
    ours, theirs = tracked(treadle), tracked(torch)
    mine, its = loss_of(name, treadle, ours), loss_of(name, torch, theirs)
    assert mine.requires_grad and its.requires_grad
    np.testing.assert_array_equal(mine.numpy(), its.detach().numpy())  # read, and then derived
    its.backward()
    wanted = theirs.grad.numpy()
    assert not np.nan_to_num(wanted).any()
    mine.backward()
    np.testing.assert_array_equal(ours.grad.numpy(), wanted)
    (found,) = loss_of(name, treadle, ours).gradient(ours)
    np.testing.assert_array_equal(found.numpy(), wanted)
    found = treadle.grad(lambda x: loss_of(name, treadle, x))(Tensor(VALUES))
    np.testing.assert_array_equal(found.numpy(), wanted)
    _, tangent = treadle.jvp(
        lambda x: loss_of(name, treadle, x), (Tensor(VALUES),), (Tensor(VALUES),)
    )
    assert np.nan_to_num(tangent.numpy()) == 0


@pytest.mark.parametrize("name", [name for name in CONSTANT if name != "nothing selected"])
def test_a_captured_constant_has_a_derivative(name):
    weight = tracked(treadle)

    @jit
    def step(scale):
        weight.grad = None
        loss = loss_of(name, treadle, weight) * scale
        loss.backward()
        return loss

    @jit
    def value(x):
        return loss_of(name, treadle, x)

    for _ in range(3):
        step(Tensor(2.0))
        assert not np.nan_to_num(weight.grad.numpy()).any()
        weight.grad = None
        value(weight).backward()
        assert not np.nan_to_num(weight.grad.numpy()).any()


def test_what_was_never_computed_from_it():
    x, other = Tensor([1.0], requires_grad=True), Tensor([2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="requires_grad"):
        Tensor([1.0]).sum().backward()
    with pytest.raises(ValueError, match="does not depend"):
        (x * 2).sum().gradient(other)
    with pytest.raises(RuntimeError, match="no gradient flows"):
        (x.detach() * 2 + (x > 0)).sum().backward()
    loss = (x * 2 + treadle.where(Tensor(True), Tensor([1.0]), other)).sum()
    loss.backward()
    assert x.grad.tolist() == [2.0] and other.grad.tolist() == [0.0]
