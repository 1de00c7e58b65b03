"""Arguments of PyTorch's that we do not have: what means the same is taken, anything else refused
by name, in the words of what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle import Tensor, nn
from treadle.nn import functional as F

X = Tensor([[1.0, -2.0], [3.0, 4.0]])
W = Tensor([1.0, 2.0], requires_grad=True)
BATCH = Tensor.ones(2, 3, 4)

SAME = [
    lambda: X.exp(out=None),
    lambda: Tensor.zeros(2, layout="strided", pin_memory=False),
    lambda: X.zeros_like(memory_format="preserve_format"),
    lambda: X.clone(memory_format=None),
    lambda: X.contiguous(memory_format="contiguous_format"),
    lambda: X.to("float64", memory_format="preserve_format"),
    lambda: X.clone().normal_(generator=None),
    lambda: treadle.tensor([1.0], pin_memory=False),
    lambda: F.mse_loss(X, X, size_average=None, reduce=None),
    lambda: nn.MSELoss(size_average=None)(X, X),
    lambda: nn.optim.Adam([W], foreach=True, fused=False, capturable=True, differentiable=False),
    lambda: nn.optim.SGD([W], 0.1, fused=True),
    lambda: nn.init.normal_(Tensor.zeros(2), generator=None),
    lambda: nn.utils.clip_grad_norm_([W], 1.0, foreach=False),
    lambda: nn.TransformerEncoder(
        encoder_layer=nn.TransformerEncoderLayer(8, 2, 16), num_layers=1, enable_nested_tensor=False
    ),
    lambda: treadle.vmap(Tensor.sum, chunk_size=None)(X),
    lambda: treadle.linalg.svd(X, driver=None),
]


@pytest.mark.parametrize("call", SAME)
def test_what_means_the_same_is_taken(call: Any) -> None:
    call()


REFUSED = [
    (lambda: X.exp(out=X.clone()), r"exp: out=\(..\) is not there: write x\[...\] = the result"),
    (lambda: X.absolute(out=X), r"out=\(..\) is not there"),
    (lambda: treadle.linalg.inv(X, out=X), r"out=\(..\) is not there"),
    (
        lambda: Tensor.zeros(2, pin_memory=True),
        "zeros: pin_memory=True is not there: write no",
    ),
    (lambda: Tensor.ones(2, layout="sparse_coo"), "ones: layout='sparse_coo' is not there"),
    (lambda: X.clone(memory_format="channels_last"), "clone: memory_format='channels_last'"),
    (lambda: X.bernoulli(generator=7), "bernoulli: generator=7 .* treadle.manual_seed"),
    (lambda: X.clone().uniform_(generator=7), "uniform_: generator=7"),
    (lambda: nn.init.normal_(X.clone(), generator=7), "normal_: generator=7"),
    (lambda: F.mse_loss(X, X, size_average=False), "size_average=False .* write reduction="),
    (lambda: nn.MSELoss(reduce=False), "MSELoss: reduce=False .* write reduction="),
    (lambda: nn.MultiLabelMarginLoss(reduce=False), "MultiLabelMarginLoss: reduce=False"),
    (lambda: nn.optim.Adam([W], differentiable=True), "Adam: differentiable=True"),
    (lambda: nn.Hardtanh(min_value=-2.0), r"Hardtanh: min_value=.* write min_val"),
    (lambda: X.mm(X, out_dtype="float64"), "mm: out_dtype='float64'"),
    (lambda: treadle.std(X, unbiased=False), "std: unbiased=False .* write correction="),
    (lambda: treadle.vmap(Tensor.sum, chunk_size=2), "vmap: chunk_size=2"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_anything_else_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(NotImplementedError, match=message):
        call()


def test_an_argument_that_nobody_has_is_pythons_error() -> None:
    with pytest.raises(TypeError, match=r"exp\(\) got an unexpected keyword argument 'outt'"):
        X.exp(outt=None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'foreech'"):
        nn.optim.SGD([W], foreech=True)


def test_the_names_of_first_arguments() -> None:
    assert treadle.exp(input=X).tolist() == X.exp().tolist()
    assert F.softmax(input=X, dim=1).tolist() == X.softmax(1).tolist()
    assert (
        F.cross_entropy(input=X, target=Tensor([0, 1])).item()
        == X.cross_entropy(Tensor([0, 1])).item()
    )
    assert nn.CrossEntropyLoss()(input=X, target=Tensor([0, 1])).shape == ()
    assert nn.Linear(2, 3)(input=X).shape == (2, 3)
    assert F.batch_norm(input=BATCH, running_mean=None, running_var=None, training=True).ndim == 3
    assert treadle.zeros_like(input=X).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert treadle.sum(X, dim=0, keepdim=True).shape == (1, 2)
    assert treadle.concat(tensors=[X, X], dim=1).shape == (2, 4)
    assert treadle.where(X > 0, input=X, other=0.0).tolist() == [[1.0, 0.0], [3.0, 4.0]]
    assert X.max(other=Tensor(2.0)).tolist() == [[2.0, 2.0], [3.0, 4.0]]


def test_a_layer_of_the_user_keeps_its_own_input() -> None:
    class Twice(nn.Module):
        def forward(self, input: Tensor, by: float = 2.0) -> Tensor:
            return input * by

    assert Twice()(input=X, by=3.0).tolist() == (X * 3).tolist()


def test_maximize_and_decoupled_decay() -> None:
    for optimizer, settings in (("Adam", {"decoupled_weight_decay": True}), ("AdamW", {})):
        weight = Tensor([1.0], requires_grad=True)
        (weight * 2).sum().backward()
        made = getattr(nn.optim, optimizer)
        made([weight], lr=0.5, weight_decay=0.1, maximize=True, **settings).step()
        assert weight.tolist() == pytest.approx([1.45])


def test_norms_without_a_bias() -> None:
    for norm in (
        nn.BatchNorm1d(3, bias=False),
        nn.InstanceNorm1d(3, affine=True, bias=False),
        nn.GroupNorm(1, 3, bias=False),
    ):
        assert norm.bias is None and norm.weight is not None
        assert next(iter(nn.get_state_dict(norm))) == "weight"
        assert norm(BATCH).shape == BATCH.shape


def test_a_transposed_convolution_is_padded_with_zeros() -> None:
    assert nn.ConvTranspose1d(3, 2, 3, padding_mode="zeros")(BATCH).shape == (2, 2, 6)
    with pytest.raises(ValueError, match="ConvTranspose1d: padding_mode is 'zeros', not 'reflect'"):
        nn.ConvTranspose1d(3, 2, 3, padding_mode="reflect")


def test_weights_of_losses_have_the_shape_of_the_prediction() -> None:
    a, b, weight = Tensor([1.0, 5.0]), Tensor([2.0, 2.0]), Tensor([3.0, 1.0])
    assert a.mse_loss(b, weight=weight).item() == (3 + 9) / 4
    assert a.l1_loss(b, "sum", weight).item() == 6
    assert a.huber_loss(b, "none", weight=weight).tolist() == [1.5, 2.5]
    with pytest.raises(ValueError, match=r"mse_loss: a weight of shape \(1,\) .* \(2,\)"):
        a.mse_loss(b, weight=Tensor([1.0]))
