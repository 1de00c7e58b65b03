"""Every module against PyTorch's of the same name: state dict, values and gradients in float64, in
training and in eval, with the same weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import Tensor, nn

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full
Array = np.ndarray
RANDOM = np.random.default_rng(11)


@dataclass
class Case:
    """A module, what it is called with, and what it takes by name in a call."""

    name: str
    arguments: tuple[Any, ...]
    inputs: tuple[Array, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    named: dict[str, Any] = field(default_factory=dict)


def n(*shape: int) -> Array:
    return RANDOM.normal(size=shape)


def case(
    name: str, *arguments: Any, x: Any, named: dict[str, Any] | None = None, **settings: Any
) -> Case:
    """x: the shape of the one input, or the inputs."""
    one = isinstance(x, tuple) and isinstance(x[0], int)
    return Case(name, arguments, (n(*x),) if one else tuple(x), settings, named or {})


LABELS = np.array([1, 0, 2, 1])
SIGNS = np.array([[1.0, -1, 1], [-1, -1, 1], [1, 1, 1], [-1, 1, -1]])
PROBABILITIES = RANDOM.uniform(0.1, 0.9, (4, 3))
RIGHT = np.array([[3, 0, -1, 1], [2, -1, 0, 0], [0, 1, 2, 3]])
LENGTHS = (np.array([6, 5]), np.array([2, 3]))
MASK = np.triu(np.ones((5, 5), dtype=bool), 1)
PADDED = np.array([[False] * 5, [False] * 3 + [True] * 2])

ACTIVATIONS = [
    case(name, x=(3, 4))
    for name in (
        "CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
        "LogSigmoid", "Mish", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softshrink",
        "Softsign", "Tanh", "Tanhshrink", "PReLU", "GLU",
    )
]  # fmt: skip
ACTIVATIONS += [
    case("CELU", 0.5, x=(3, 4)),
    case("Threshold", 0.1, -2.0, x=(3, 4)),
    case("RReLU", 0.2, 0.2, x=(3, 4)),
    case("PReLU", 3, x=(2, 3, 4), init=0.1),
    case("Softmin", 1, x=(3, 4)),
    case("Softmax2d", x=(2, 3, 2, 2)),
    case("Softplus", 2, 1.0, x=(3, 4)),
]
POOLS = [
    case("LPPool1d", 2, 3, x=(2, 3, 9), stride=2),
    case("LPPool2d", 3, (2, 3), x=(2, 3, 6, 6), ceil_mode=True),
    case("LPPool3d", 2, 2, x=(1, 2, 4, 4, 4)),
    case("MaxPool2d", 2, x=(2, 3, 6, 6), return_indices=True),
    case("MaxPool3d", 2, x=(1, 2, 4, 5, 4)),
    case("AvgPool1d", 3, 2, 1, x=(2, 3, 9), count_include_pad=False),
    case("AdaptiveAvgPool1d", 4, x=(2, 3, 9)),
    case("AdaptiveAvgPool2d", (4, None), x=(2, 3, 9, 5)),
    case("AdaptiveAvgPool3d", 2, x=(1, 2, 3, 5, 4)),
    case("AdaptiveMaxPool1d", 4, x=(2, 3, 9)),
    case("AdaptiveMaxPool2d", 2, x=(2, 3, 5, 5), return_indices=True),
    case("AdaptiveMaxPool3d", (2, 3, 1), x=(1, 2, 3, 5, 4)),
    case("MaxUnpool1d", 2, x=(n(1, 1, 2), np.array([[[1, 2]]]))),
    case(
        "MaxUnpool2d", 2, x=(n(1, 1, 1, 2), np.array([[[[0, 7]]]])),
        named={"output_size": (2, 4)},
    ),
    case("Upsample", x=(1, 2, 3, 4), scale_factor=2, mode="bilinear", align_corners=True),
    case("Upsample", (5,), x=(1, 2, 3)),
    case("UpsamplingNearest2d", x=(1, 2, 3, 4), scale_factor=2),
    case("UpsamplingBilinear2d", (5, 6), x=(1, 2, 3, 4)),
    case("PixelShuffle", 2, x=(1, 8, 2, 3)),
    case("PixelUnshuffle", 2, x=(1, 2, 4, 6)),
    case("ChannelShuffle", 2, x=(1, 4, 2, 3)),
    case("Unfold", (2, 3), x=(1, 2, 4, 5), padding=1),
    case("Fold", (4, 5), (2, 3), x=(1, 12, 9), stride=1),
    case("LocalResponseNorm", 2, x=(1, 4, 3)),
]  # fmt: skip
PADDING = [
    case(f"{kind}{rank}d", padding, x=(1, 2, 4, 5, 6)[: rank + 2])
    for kind in ("ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad")
    for rank in (1, 2, 3)
    for padding in (1, tuple(range(2 * rank))[::-1] if rank == 1 else (2, 1) * rank)
]
PADDING += [
    case(f"ConstantPad{rank}d", 2, 0.5, x=(1, 2, 4, 5, 6)[: rank + 2]) for rank in (1, 2, 3)
]
LOSSES = [
    case("SmoothL1Loss", x=(n(4, 3), n(4, 3)), beta=0.5),
    case("HuberLoss", x=(n(4, 3), n(4, 3)), delta=0.5),
    case("PoissonNLLLoss", x=(n(4, 3), np.abs(n(4, 3)) * 3), full=True),
    case("GaussianNLLLoss", x=(n(4, 3), n(4, 3), np.exp(n(4, 3))), full=True),
    case("CrossEntropyLoss", x=(n(4, 3), LABELS), label_smoothing=0.1, ignore_index=2),
    case("NLLLoss", x=(n(4, 3), LABELS), reduction="sum"),
    case("KLDivLoss", x=(n(4, 3), PROBABILITIES), reduction="batchmean"),
    case("BCELoss", x=(PROBABILITIES, PROBABILITIES[::-1].copy())),
    case("BCEWithLogitsLoss", x=(n(4, 3), PROBABILITIES)),
    case("SoftMarginLoss", x=(n(4, 3), SIGNS.astype(int))),
    case("MultiLabelSoftMarginLoss", x=(n(4, 3), (SIGNS > 0) * 1.0), reduction="none"),
    case("MultiMarginLoss", x=(n(4, 3), LABELS), p=2),
    case("MultiLabelMarginLoss", x=(n(3, 4), RIGHT)),
    case("MultiLabelMarginLoss", x=(n(3, 4), RIGHT), reduction="sum"),
    case("MultiLabelMarginLoss", x=(n(4), RIGHT[0])),
    case("AdaptiveLogSoftmaxWithLoss", 8, 12, [4, 9], x=(n(5, 8), np.array([0, 11, 5, 8, 3]))),
    case("AdaptiveLogSoftmaxWithLoss", 8, 12, [4], 2.0, True, x=(n(8), np.array(7))),
    case("MarginRankingLoss", 0.5, x=(n(4), n(4), SIGNS[:, 0])),
    case("HingeEmbeddingLoss", x=(n(4, 3), SIGNS)),
    case("CosineEmbeddingLoss", 0.1, x=(n(4, 3), n(4, 3), SIGNS[:, 0])),
    case("TripletMarginLoss", x=(n(4, 3), n(4, 3), n(4, 3)), swap=True),
    case("TripletMarginWithDistanceLoss", x=(n(4, 3), n(4, 3), n(4, 3)), margin=2.0, swap=True),
    case("CosineSimilarity", x=(n(4, 3), n(4, 3))),
    case("PairwiseDistance", 1.0, x=(n(4, 3), n(4, 3)), keepdim=True),
]
LEARNT = [
    case("Bilinear", 3, 4, 5, x=(n(2, 6, 3), n(2, 6, 4))),
    case("InstanceNorm1d", 3, x=(2, 3, 4), affine=True, track_running_stats=True),
    case("InstanceNorm2d", 3, x=(3, 4, 2)),
    case("InstanceNorm3d", 2, x=(2, 2, 2, 3, 2), affine=True),
    case("Embedding", 5, 3, 2, x=(np.array([[2, 1], [4, 1]]),), scale_grad_by_freq=True),
    case("Embedding", 5, 3, x=(np.array([[2, 1], [4, 1]]),), max_norm=1.0),
    case("EmbeddingBag", 5, 3, x=(np.array([2, 1, 4, 1]), np.array([0, 3])), mode="sum"),
    case("EmbeddingBag", 5, 3, x=(np.array([[2, 1], [4, 1]]),), mode="max", padding_idx=1),
    case("RNN", 3, 4, x=(5, 2, 3), nonlinearity="relu", bidirectional=True, num_layers=2),
    case("RNN", 3, 4, x=(n(5, 2, 3), n(1, 2, 4)), bias=False),
    case("GRU", 3, 4, x=(2, 5, 3), batch_first=True, num_layers=2),
    case("GRU", 3, 4, x=(5, 3), bidirectional=True),
    case("LSTM", 3, 4, x=(2, 5, 3), batch_first=True, num_layers=2, bidirectional=True),
    case("LSTM", 3, 4, x=(5, 2, 3), proj_size=2, num_layers=2, bidirectional=True),
    case("RNNCell", 3, 4, x=(n(2, 3), n(2, 4)), nonlinearity="relu"),
    case("GRUCell", 3, 4, x=(n(2, 3),)),
    case("LSTMCell", 3, 4, x=(n(3),)),
    case("MultiheadAttention", 8, 2, x=(n(5, 2, 8),) * 3, named={"attn_mask": MASK}),
    case(
        "MultiheadAttention", 8, 2, x=(n(2, 4, 8), n(2, 5, 3), n(2, 5, 6)),
        named={"key_padding_mask": PADDED, "average_attn_weights": False},
        kdim=3, vdim=6, batch_first=True, add_bias_kv=True, add_zero_attn=True,
    ),
    case("MultiheadAttention", 8, 2, x=(n(5, 8),) * 3, named={"need_weights": False}, bias=False),
    case(
        "TransformerEncoderLayer", 8, 2, 16, 0.0, x=(5, 2, 8),
        named={"src_mask": MASK, "src_key_padding_mask": PADDED[:, :5]},
    ),
    case(
        "TransformerEncoderLayer", 8, 2, 16, 0.0, "gelu", x=(2, 5, 8),
        norm_first=True, batch_first=True,
    ),
    case("Transformer", 8, 2, 2, 1, 16, 0.0, x=(n(5, 2, 8), n(4, 2, 8))),
    case(
        "Transformer", 8, 2, 1, 2, 16, 0.0, x=(n(2, 5, 8), n(2, 5, 8)), batch_first=True,
        norm_first=True, activation="gelu", named={"tgt_mask": MASK},
    ),
    case(
        "TransformerDecoderLayer", 8, 2, 16, 0.0, x=(n(5, 2, 8), n(4, 2, 8)),
        named={"tgt_mask": MASK},
    ),
    case(
        "TransformerDecoderLayer", 8, 2, 16, 0.0, x=(n(5, 2, 8), n(4, 2, 8)),
        norm_first=True, bias=False,
    ),
]  # fmt: skip
CASES = ACTIVATIONS + POOLS + PADDING + LOSSES + LEARNT


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in flat(each)]
    return [] if result is None else [result]


def run(kit: Any, module: Any, inputs: list[Any], named: dict[str, Any], make: Any) -> list[Any]:
    """The parts of the result, with their gradients left behind."""
    parts = flat(
        module(*inputs, **{k: make(v) if isinstance(v, Array) else v for k, v in named.items()})
    )
    total = 0
    for number, part in enumerate(parts):
        if part.dtype is kit.float64:
            total = total + (part.exp() * (number + 1)).sum() if part.ndim else total + part * 2
    total.backward()
    return parts


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_modules(case: Case) -> None:
    torch.manual_seed(0)
    theirs = getattr(torch.nn, case.name)(*case.arguments, **case.settings).double()
    ours = getattr(nn, case.name)(*case.arguments, **case.settings).double()
    assert {k: v.shape for k, v in ours.state_dict().items()} == {
        k: tuple(v.shape) for k, v in theirs.state_dict().items()
    }
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    for training in (True, False):
        ours.train(training).zero_grad()
        theirs.train(training).zero_grad()
        learnt = [x.dtype.kind == "f" for x in case.inputs]
        mine = [Tensor(x, requires_grad=f) for x, f in zip(case.inputs, learnt)]
        its = [torch.tensor(x, requires_grad=f) for x, f in zip(case.inputs, learnt)]
        found = run(treadle, ours, mine, case.named, Tensor)
        expected = run(torch, theirs, its, case.named, torch.tensor)
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-8, atol=1e-10)
        for a, b in zip(mine, its):
            if b.grad is not None:
                np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-7, atol=1e-9)
        gradients = dict(ours.named_parameters())
        for key, parameter in theirs.named_parameters():
            np.testing.assert_allclose(
                gradients[key].grad.numpy(),
                parameter.grad.numpy(),
                rtol=1e-7,
                atol=1e-9,
                err_msg=key,
            )
        for key, value in theirs.state_dict().items():
            np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-9)
