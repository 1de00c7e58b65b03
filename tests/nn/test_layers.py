"""Layers against NumPy: values, initial distributions, shapes of parameters, errors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle
from treadle import Tensor, nn
from treadle.nn import functional as F

Array = np.ndarray


def array(*shape: int, seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng(seed).normal(size=shape))


def windows(x: Array, kernel: int, stride: int, dilation: int) -> Array:
    """(.., places, taps) of the last axis."""
    places = (x.shape[-1] - dilation * (kernel - 1) - 1) // stride + 1
    taps = np.arange(places)[:, None] * stride + np.arange(kernel) * dilation
    return x[..., taps]


# ---- how parameters begin ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "bound"),
    [
        (lambda: nn.Linear(400, 300), 1 / 20),
        (lambda: nn.Conv2d(16, 64, 5, groups=4), 1 / 10),
        (lambda: nn.Conv1d(25, 200, 4), 1 / 10),
        (lambda: nn.ConvTranspose2d(60, 16, 5), 1 / 20),
    ],
)
def test_weights_and_biases_begin_uniform(make: Any, bound: float) -> None:
    treadle.manual_seed(3)
    layer = make()
    weight, bias = layer.weight.numpy(), layer.bias.numpy()
    for values in (weight, bias):
        assert np.abs(values).max() <= bound
    assert np.abs(weight).max() > 0.999 * bound
    assert abs(weight.mean()) < bound / 50
    np.testing.assert_allclose(weight.std(), bound / np.sqrt(3), rtol=0.01)
    assert layer.weight.requires_grad and layer.bias.requires_grad


def test_the_seed_decides_the_weights() -> None:
    treadle.manual_seed(5)
    first = nn.Linear(3, 3)
    treadle.manual_seed(5)
    second = nn.Linear(3, 3)
    np.testing.assert_array_equal(second.weight.numpy(), first.weight.numpy())
    assert (nn.Linear(3, 3).weight.numpy() != first.weight.numpy()).any()


def test_embeddings_begin_normal() -> None:
    treadle.manual_seed(3)
    table = nn.Embedding(300, 100, padding_idx=-1).weight.numpy()
    assert not table[-1].any() and table[:-1].all()
    assert abs(table[:-1].mean()) < 0.02 and abs(table[:-1].std() - 1) < 0.02


def test_norms_begin_as_ones_and_zeros() -> None:
    for layer in (nn.BatchNorm(3), nn.LayerNorm(3), nn.GroupNorm(1, 3)):
        assert layer.weight.tolist() == [1.0] * 3 and layer.bias.tolist() == [0.0] * 3
    assert nn.LayerNorm(3, bias=False).bias is None
    assert nn.LayerNorm((2, 3)).weight.shape == (2, 3)
    assert not list(nn.LayerNorm(3, elementwise_affine=False).parameters())


def test_layers_without_inputs() -> None:
    layer = nn.Linear(0, 2)
    assert layer.weight.shape == (2, 0) and layer.bias.tolist() == [0.0, 0.0]
    assert layer(Tensor.zeros(3, 0)).tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize(
    "make",
    [
        lambda **k: nn.Linear(2, 3, **k),
        lambda **k: nn.Conv2d(2, 3, 1, **k),
        lambda **k: nn.ConvTranspose1d(2, 3, 1, **k),
        lambda **k: nn.Embedding(2, 3, padding_idx=0, **k),
        lambda **k: nn.BatchNorm(2, **k),
        lambda **k: nn.LayerNorm(2, **k),
        lambda **k: nn.RMSNorm(2, **k),
        lambda **k: nn.GroupNorm(1, 2, **k),
    ],
)
def test_layers_have_the_dtype_and_device_asked_for(make: Any, dtype: str) -> None:
    layer = make(dtype=dtype, device="CPU")
    for name, tensor in layer.state_dict().items():
        assert tensor.dtype.name == ("int64" if name == "num_batches_tracked" else dtype)
        assert tensor.device == "CPU"


INITS: list[tuple[Any, float, float]] = [
    (nn.init.xavier_uniform_, np.sqrt(2 / 900), 0.0),
    (nn.init.xavier_normal_, np.sqrt(2 / 900), 0.0),
    (lambda t: nn.init.kaiming_uniform_(t, a=2.0), np.sqrt(2 / 5 / 600), 0.0),
    (
        lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"),
        np.sqrt(2 / 300),
        0,
    ),
    (lambda t: nn.init.normal_(t, 3.0, 0.5), 0.5, 3.0),
    (lambda t: nn.init.uniform_(t, 1.0, 3.0), 1 / np.sqrt(3), 2.0),
    (lambda t: nn.init.constant_(t, 4.0), 0.0, 4.0),
    (nn.init.zeros_, 0.0, 0.0),
    (nn.init.ones_, 0.0, 1.0),
]


@pytest.mark.parametrize(("fill", "deviation", "mean"), INITS)
def test_init(fill: Any, deviation: float, mean: float) -> None:
    treadle.manual_seed(1)
    weight = nn.Parameter(Tensor.zeros(150, 300, 2, 1))
    assert fill(weight) is weight and weight.requires_grad
    np.testing.assert_allclose(weight.numpy().std(), deviation, rtol=0.01)
    np.testing.assert_allclose(weight.numpy().mean(), mean, atol=0.01)


def test_init_errors() -> None:
    assert nn.init.calculate_gain("tanh") == 5 / 3
    with pytest.raises(ValueError, match="there is no gain for 'mish'; there are gains for linear"):
        nn.init.calculate_gain("mish")
    with pytest.raises(ValueError, match=r"shape \(3,\) has no fan"):
        nn.init.xavier_uniform_(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="mode is 'fan_in' or 'fan_out', not 'both'"):
        nn.init.kaiming_normal_(Tensor.zeros(2, 2), mode="both")


# ---- values --------------------------------------------------------------------------------------
@pytest.mark.parametrize("leading", [(), (4,), (2, 3), (0,)])
def test_linear(leading: tuple[int, ...]) -> None:
    layer = nn.Linear(5, 2, dtype="float64")
    x = array(*leading, 5)
    expected = x @ layer.weight.numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), expected, rtol=1e-12)


def test_linear_of_a_wrong_size() -> None:
    with pytest.raises(ValueError, match=r"x of shape \(4, 3\) and a weight of shape \(2, 5\)"):
        nn.Linear(5, 2)(Tensor.zeros(4, 3))


def test_embedding() -> None:
    layer = nn.Embedding(4, 3, padding_idx=1)
    ids = np.array([[0, 1], [3, 1]])
    np.testing.assert_array_equal(layer(Tensor(ids)).numpy(), layer.weight.numpy()[ids])
    layer(Tensor(ids)).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.numpy()[:, 0].tolist() == [1.0, 0.0, 0.0, 1.0]
    with pytest.raises(IndexError, match="is out of range for an axis of size 4"):
        layer(Tensor([4])).numpy()
    with pytest.raises(ValueError, match="padding_idx=4 is no row of 4 embeddings"):
        nn.Embedding(4, 3, padding_idx=4)
    ready = nn.Embedding.from_pretrained(np.float32([[1, 2], [3, 4]]))
    assert not ready.weight.requires_grad and ready(Tensor(1)).tolist() == [3.0, 4.0]
    assert repr(ready) == "Embedding(2, 2)"


@pytest.mark.parametrize("padding", [0, 2, "valid", "same", [(1, 3)]])
@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_convolution(padding: Any, mode: str) -> None:
    layer = nn.Conv1d(
        4, 6, 3, padding=padding, dilation=2, groups=2, padding_mode=mode, dtype="float64"
    )
    x = array(2, 4, 9)
    low, high = {0: (0, 0), 2: (2, 2), "valid": (0, 0), "same": (2, 2)}.get(str(padding), (1, 3))
    if isinstance(padding, int):
        low = high = padding
    kind: Any = {"zeros": "constant", "replicate": "edge", "circular": "wrap"}.get(mode, mode)
    padded = np.pad(x, ((0, 0), (0, 0), (low, high)), mode=kind)
    parts = windows(padded, 3, 1, 2).reshape(2, 2, 2, -1, 3)
    weight = layer.weight.numpy().reshape(2, 3, 2, 3)
    expected = np.einsum("bgipk,goik->bgop", parts, weight).reshape(2, 6, -1)
    expected += layer.bias.numpy()[:, None]
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), expected, rtol=1e-10, atol=1e-12)


def test_transposed_convolution_is_the_adjoint() -> None:
    forward = nn.Conv2d(3, 4, (3, 2), stride=2, padding=1, bias=False, dtype="float64")
    backward = nn.ConvTranspose2d(
        4, 3, (3, 2), stride=2, padding=1, output_padding=(0, 1), bias=False, dtype="float64"
    )
    backward.load_state_dict(forward.state_dict())
    x = Tensor(array(2, 3, 7, 7), requires_grad=True)
    y = forward(x)
    cotangent = Tensor(array(*y.shape, seed=1))
    y.backward(cotangent)
    assert x.grad is not None
    np.testing.assert_allclose(backward(cotangent).numpy(), x.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_transposed_convolution_of_a_size_with_pairs_of_padding() -> None:
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2, padding=((1, 0), (0, 1)))
    x = Tensor(array(1, 1, 4, 4).astype(np.float32))
    assert layer(x).shape == layer(x, output_size=(8, 8)).shape == (1, 1, 8, 8)
    larger = layer(x, output_size=(9, 9))
    np.testing.assert_array_equal(larger[..., :8, :8].numpy(), layer(x).numpy())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: nn.Conv2d(4, 6, 3, groups=4),
            r"Conv2d: groups=4 must divide the channels, \(4, 6\)",
        ),
        (lambda: nn.Conv2d(4, 6, 0), "Conv2d: kernel_size=0 must be an int of at least 1, or 2"),
        (lambda: nn.Conv2d(4, 6, (3, 3, 3)), r"kernel_size=\(3, 3, 3\) must be an int of at least"),
        (lambda: nn.Conv1d(4, 6, 3, stride=0), "Conv1d: stride=0 must be"),
        (lambda: nn.Conv1d(4, 6, 3, padding_mode="mirror"), "padding_mode='mirror' is not one of"),
        (lambda: nn.ConvTranspose1d(4, 6, 3, output_padding=-1), "output_padding=-1 must be"),
        (lambda: nn.GroupNorm(3, 4), "4 channels do not divide into 3 groups"),
        (lambda: nn.Dropout(1.5), "p=1.5 is not a probability"),
        (lambda: nn.GELU("sigmoid"), "approximate is 'none' or 'tanh', not 'sigmoid'"),
        (lambda: nn.MSELoss("average"), "MSELoss: reduction is 'mean', 'sum' or 'none'"),
        (lambda: nn.Embedding.from_pretrained(np.zeros(3)), r"shape \(3,\); they must be \(rows"),
    ],
)
def test_errors_when_a_layer_is_made(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_pools() -> None:
    x = array(2, 3, 7)
    found = nn.MaxPool1d(3, stride=2)(Tensor(x)).numpy()
    np.testing.assert_array_equal(found, windows(x, 3, 2, 1).max(-1))
    found = nn.AvgPool1d(2, padding=1)(Tensor(x)).numpy()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    np.testing.assert_allclose(found, windows(padded, 2, 2, 1).mean(-1), rtol=1e-12)
    image = Tensor(array(1, 2, 5, 6))
    assert nn.MaxPool2d((2, 3), padding=(1, 0), ceil_mode=True)(image).shape == (1, 2, 3, 2)
    assert nn.AvgPool2d(2, count_include_pad=False)(image).shape == (1, 2, 2, 3)
    assert nn.MaxPool3d(2)(Tensor(array(1, 1, 4, 4, 4))).shape == (1, 1, 2, 2, 2)
    assert nn.AvgPool3d(2)(Tensor(array(1, 1, 4, 4, 4))).shape == (1, 1, 2, 2, 2)


def test_shapes() -> None:
    x = Tensor(array(2, 3, 4))
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(1, (3, 1))(x).shape == (2, 3, 1, 4)
    assert nn.Identity(1, words=2)(x) is x


def test_activations() -> None:
    x = array(3, 4)
    powers = np.exp(x - x.max(1, keepdims=True))
    probabilities = powers / powers.sum(1, keepdims=True)
    cases = [
        (nn.ReLU(), np.maximum(x, 0)),
        (nn.SiLU(), x / (1 + np.exp(-x))),
        (nn.Sigmoid(), 1 / (1 + np.exp(-x))),
        (nn.Tanh(), np.tanh(x)),
        (nn.GELU("tanh"), x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
        (nn.Softmax(1), probabilities),
        (nn.LogSoftmax(dim=1), np.log(probabilities)),
    ]
    for module, expected in cases:
        np.testing.assert_allclose(module(Tensor(x)).numpy(), expected, rtol=1e-12, atol=1e-14)


def test_in_place_modules_write_into_what_came_in() -> None:
    x = Tensor([-1.0, 2.0])
    assert nn.ReLU(inplace=True)(x) is x and x.tolist() == [0.0, 2.0]
    y = Tensor([3.0] * 50)
    assert nn.Dropout(1.0, inplace=True)(y) is y and not y.numpy().any()
    weight = Tensor([-1.0, 2.0], requires_grad=True)
    nn.ReLU(inplace=True)(weight * 3).sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [0.0, 3.0]


def test_dropout() -> None:
    treadle.manual_seed(2)
    layer = nn.Dropout(0.25)
    x = Tensor.ones(10_000)
    found = layer(x).numpy()
    np.testing.assert_allclose(np.unique(found), [0, 4 / 3], rtol=1e-6)
    assert abs((found == 0).mean() - 0.25) < 0.02
    assert (layer(x).numpy() != found).any(), "every call draws anew"
    assert layer.eval()(x) is x
    assert F.dropout(x, 0.5, training=False) is x


# ---- norms ---------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=20)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(lambda s: (3, 2, *s)),
    momentum=st.sampled_from([0.1, 0.5, None]),
    affine=st.booleans(),
)
def test_batch_norm_over_several_batches(
    shape: tuple[int, ...], momentum: float | None, affine: bool
) -> None:
    layer = nn.BatchNorm(2, momentum=momentum, affine=affine, eps=1e-3, dtype="float64")
    mean, var, weight, bias = np.zeros(2), np.ones(2), np.ones(2), np.zeros(2)
    if affine:
        weight, bias = np.array([2.0, -1.0]), np.array([0.5, 0.0])
        layer.load_state_dict({"weight": weight, "bias": bias}, strict=False)
    axes = (0, *range(2, len(shape)))
    column = (2, *[1] * (len(shape) - 2))

    def normal(x: Array, mean: Array, var: Array) -> Array:
        x = (x - mean.reshape(column)) / np.sqrt(var.reshape(column) + 1e-3)
        return x * weight.reshape(column) + bias.reshape(column)

    for step in range(3):
        x = array(*shape, seed=step)
        found = layer(Tensor(x)).numpy()
        np.testing.assert_allclose(
            found, normal(x, x.mean(axes), x.var(axes)), rtol=1e-9, atol=1e-9
        )
        part = 1 / (step + 1) if momentum is None else momentum
        mean = (1 - part) * mean + part * x.mean(axes)
        var = (1 - part) * var + part * x.var(axes, ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-10, atol=1e-12)  # type: ignore[union-attr]
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=1e-10, atol=1e-12)  # type: ignore[union-attr]
    assert layer.num_batches_tracked.item() == 3  # type: ignore[union-attr]
    x = array(*shape, seed=9)
    np.testing.assert_allclose(layer.eval()(Tensor(x)).numpy(), normal(x, mean, var), rtol=1e-9)
    assert layer.num_batches_tracked.item() == 3  # type: ignore[union-attr]


def test_running_statistics_carry_no_gradient() -> None:
    layer = nn.BatchNorm(2)
    x = Tensor(np.float32(array(4, 2)), requires_grad=True)
    layer(x).sum().backward()
    assert not layer.running_mean.requires_grad  # type: ignore[union-attr]
    layer.eval()(Tensor(np.float32(array(4, 2)))).sum().backward()


def test_batch_norm_without_statistics() -> None:
    layer = nn.BatchNorm1d(2, track_running_stats=False).eval()
    assert not list(layer.buffers())
    x = np.float32(array(5, 2))
    expected = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_batch_norm_of_half_numbers() -> None:
    layer = nn.BatchNorm(2)
    x = np.float16(array(64, 2) * 100 + 1000)
    found = layer(Tensor(x))
    assert found.dtype.name == "float16"
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(0)) / wide.std(0)
    np.testing.assert_allclose(found.numpy(), expected, atol=5e-3)
    np.testing.assert_allclose(layer.running_mean.numpy(), wide.mean(0) / 10, rtol=1e-5)  # type: ignore[union-attr]


def test_batch_norm_errors() -> None:
    with pytest.raises(
        ValueError, match=r"BatchNorm2d: x of shape \(2, 3\) must have 4 dimensions"
    ):
        nn.BatchNorm2d(3)(Tensor.zeros(2, 3))
    with pytest.raises(ValueError, match=r"BatchNorm1d: .* must have 2 or 3 dimensions"):
        nn.BatchNorm1d(3)(Tensor.zeros(2, 3, 4, 5))
    with pytest.raises(ValueError, match=r"one element per channel, which has no variance"):
        nn.BatchNorm(3)(Tensor.zeros(1, 3))
    with pytest.raises(ValueError, match=r"x of shape \(3,\) must have at least 2 dimensions"):
        nn.BatchNorm(3)(Tensor.zeros(3))
    with pytest.raises(ValueError, match="without training it needs running_mean and running_var"):
        F.batch_norm(Tensor.zeros(2, 4), None, None)


def test_a_batch_of_a_wrong_width_changes_no_statistics() -> None:
    layer = nn.BatchNorm(3)
    with pytest.raises(ValueError, match=r"x of shape \(2, 4\) must have 3 channels"):
        layer(Tensor.zeros(2, 4))
    assert layer.running_mean.tolist() == [0.0] * 3  # type: ignore[union-attr]
    assert layer.num_batches_tracked.item() == 0  # type: ignore[union-attr]


def test_layer_group_and_rms_norm() -> None:
    x = array(2, 4, 3)
    away = x - x.mean((1, 2), keepdims=True)
    expected = away / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    found = nn.LayerNorm((4, 3), dtype="float64")(Tensor(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(nn.GroupNorm(1, 4, dtype="float64")(Tensor(x)).numpy(), expected)
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1)
    np.testing.assert_allclose(nn.RMSNorm(3, eps=0.1, dtype="float64")(Tensor(x)).numpy(), expected)


# ---- losses --------------------------------------------------------------------------------------
def test_losses() -> None:
    x, target = array(4, 3), array(4, 3, seed=1)
    ids = np.array([2, 0, -100, 1])
    chance = 1 / (1 + np.exp(-x))
    bits = (target > 0).astype(np.float64)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    weight = np.array([1.0, 2.0, 3.0])
    chosen = [(row, ids[row]) for row in (0, 1, 3)]
    total = sum(weight[c] for _, c in chosen)
    crossed = -sum(weight[c] * logs[r, c] for r, c in chosen) / total
    entropy = -(bits * np.log(chance) + (1 - bits) * np.log(1 - chance))
    cases: list[tuple[nn.Module, Array, Array, Any]] = [
        (nn.MSELoss(), x, target, ((x - target) ** 2).mean()),
        (nn.MSELoss("sum"), x, target, ((x - target) ** 2).sum()),
        (nn.L1Loss(reduction="none"), x, target, np.abs(x - target)),
        (nn.CrossEntropyLoss(Tensor(weight)), x, ids, crossed),
        (nn.NLLLoss(Tensor(weight)), logs, ids, crossed),
        (nn.BCELoss(), chance, bits, entropy.mean()),
        (nn.BCEWithLogitsLoss(), x, bits, entropy.mean()),
    ]
    for loss, given_, wanted, expected in cases:
        found = loss(Tensor(given_), Tensor(wanted)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=repr(loss))
    assert list(nn.CrossEntropyLoss(Tensor(weight)).state_dict()) == ["weight"]


def test_functional_is_the_methods() -> None:
    x = Tensor(array(2, 3))
    np.testing.assert_array_equal(F.relu(x).numpy(), x.relu().numpy())
    np.testing.assert_array_equal(F.softmax(x, dim=1).numpy(), x.softmax(1).numpy())
    assert F.linear(x, Tensor(array(4, 3))).shape == (2, 4)
    assert F.pad(x, (1, 1)).shape == (2, 5)
