"""What somebody types who comes from PyTorch: names that are other ones here, and habits."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F
from treadle import Tensor, nn
from treadle.elsewhere import OF_MODULE, OF_TENSOR


def f(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def i(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.int64))


def tracked(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32), requires_grad=True)


# what is done -> the error, and what its message says
CASES = {
    "the names of other functions stay out: dot": (
        lambda: f(3).dot(f(4)), ValueError, "dot: (3,) @ (4,)"),
    "mv": (lambda: f(2, 3).mv(f(2)), ValueError, "mv: (2, 3) @ (2,)"),
    "mm": (lambda: f(2, 3).mm(f(2, 3)), ValueError, "mm: (2, 3) @ (2, 3)"),
    "index_select": (lambda: f(2, 3).index_select(0, f(1)), TypeError,
        "index_select: the indices are float32; they must be integers"),
    "masked_fill": (lambda: f(2).masked_fill(f(2), 0), TypeError,
        "masked_fill: the condition is float32, not bool"),
    "masked_fill's shapes": (lambda: f(2).masked_fill(f(3) > 0, 0), ValueError,
        "masked_fill: shapes (3,) and (2,)"),
    "a shape for data": (lambda: Tensor(2, 3), TypeError, "Tensor.zeros(2, 3)"),
    "an unknown device": (lambda: Tensor.zeros(2, device="cuda"), ValueError,
        "there is no device 'cuda'; there are CPU"),
    "the device of random numbers": (lambda: Tensor.rand(2, device="cuda"), ValueError,
        "no device 'cuda'"),
    "x.to": (lambda: f(2).to("cuda:0"), ValueError, "no device or dtype 'cuda:0'"),
    "a model's": (lambda: nn.Linear(2, 3).to("cuda"), ValueError, "no device or dtype 'cuda'"),
    "a gradient of another shape": (lambda: tracked(3).backward(f(2)), ValueError,
        "backward: gradient has shape (2,), the tensor (3,)"),
    "and of another than ()": (lambda: tracked(3).sum().backward(gradient=f(3)), ValueError,
        "backward: gradient has shape (3,), the tensor ()"),
    "without a gradient": (lambda: f(2).sum().backward(), RuntimeError, "requires_grad=True"),
    "of what is detached": (lambda: (tracked(2).detach() * 2).sum().backward(), RuntimeError,
        "requires_grad=True"),
    "requires_grad_ of integers": (lambda: i(2).requires_grad_(), TypeError,
        "only floating-point and complex tensors can require a gradient, not int64"),
    "in place": (lambda: tracked(3).__iadd__(1), RuntimeError, "with treadle.no_grad():"),
    "an element in place": (lambda: tracked(3).__setitem__(0, 1), RuntimeError,
        "with treadle.no_grad():"),
    "times a list": (lambda: f(2) * [1, 2], TypeError,
        "mul: a list is no operand of a tensor: write Tensor(..)"),
    "a list plus": (lambda: [1, 2] + f(2), TypeError, "add: a list is no operand"),
    "@ a list": (lambda: f(2) @ [1, 2], TypeError, "matmul: a list is no operand"),
    "Conv2d's padding": (lambda: nn.Conv2d(3, 4, 3, padding="foo"), ValueError,
        "Conv2d: padding is an int, 2 of them, pairs, 'valid' or 'same', not 'foo'"),
    "Conv2d's groups": (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError,
        "Conv2d: groups=2 must divide the channels, (3, 4)"),
    "Conv2d of a matrix": (lambda: nn.Conv2d(3, 4, 3)(f(8, 8)), ValueError,
        "conv2d: x has shape (8, 8); it must have 2 spatial dimensions"),
    "a path for a state dict": (lambda: nn.Linear(3, 4).load_state_dict("a.pt"), TypeError,
        "nn.safe_load(path) and nn.torch_load(path) read one from a file"),
    "a transposed weight": (
        lambda: nn.Linear(3, 4).load_state_dict({"weight": f(3, 4), "bias": f(4)}), RuntimeError,
        "weight: shape (3, 4), but the model has (4, 3)"),
    "a name too many": (
        lambda: nn.Linear(3, 4).load_state_dict({"weight": f(4, 3), "bias": f(4), "b": f(1)}),
        RuntimeError, "b: not in the model"),
    "a file that is not there": (lambda: nn.safe_load("none.safetensors"), FileNotFoundError,
        "none.safetensors"),
    "a model for its parameters": (lambda: nn.optim.Adam(nn.Linear(2, 3)), TypeError,
        "not a Linear; those of a model are nn.get_parameters(model)"),
    "a tensor for parameters": (lambda: nn.optim.Adam(tracked(2)), TypeError, "not a Tensor"),
    "integers for parameters": (lambda: nn.optim.Adam([i(2)]), TypeError,
        "a parameter of shape (2,) and dtype int64 cannot be learnt"),
    "another optimizer's argument": (lambda: nn.optim.Adam([tracked(2)], momentum=0.9), TypeError,
        "'momentum'"),
    "betas": (lambda: nn.optim.Adam([tracked(2)], betas=(1.5, 0.9)), ValueError, "betas[0]=1.5"),
    "a list of layers": (lambda: nn.Sequential([nn.Linear(2, 3)])(f(1, 2)), TypeError,
        "Sequential: layer 0 is"),
    "class ids that are floats": (lambda: F.cross_entropy(f(2, 3), f(2)), TypeError,
        "cross_entropy: class ids are integers, not float32: write target.long()"),
    "a label too large": (lambda: F.cross_entropy(f(2, 3), i(2) * 5).numpy(), IndexError,
        "cross_entropy: index 5 is out of range for an axis of size 3"),
    "a label below 0": (lambda: F.cross_entropy(f(2, 3), i(2) - 2).numpy(), IndexError,
        "cross_entropy: index -1"),
    "mse_loss would broadcast": (lambda: F.mse_loss(f(2, 3), f(2)), ValueError,
        "mse_loss: the prediction has shape (2, 3) and the target (2,)"),
    "reduction": (lambda: F.l1_loss(f(3), f(3), reduction="avg"), ValueError,
        "l1_loss: reduction is 'mean', 'sum' or 'none', not 'avg'"),
    "heads": (lambda: nn.MultiheadAttention(5, 2), ValueError, "num_heads=2 must divide embed_dim"),
    "LSTM": (lambda: nn.LSTM(3, 4)(f(2, 5)), ValueError, "LSTM: x of shape (2, 5) must be"),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3)(f(2, 3)), ValueError, "must have 4 dimensions"),
    "repeat": (lambda: f(2, 3).repeat(2), ValueError, "1 numbers for a tensor of shape (2, 3)"),
    "einsum": (lambda: Tensor.einsum("ij,jk->ik", f(2, 3), f(4, 5)), ValueError,
        "'j' in 'ij,jk->ik' stands for the sizes 3 and 4"),
    "topk": (lambda: f(2).topk(5), ValueError, "topk: k=5 is not a number of elements"),
    "clamp": (lambda: f(2).clamp(), ValueError, "clamp: give min, max, or both"),
    "unfold": (lambda: f(3).unfold(0, 5, 1), ValueError, "windows of 5 do not fit a dimension of"),
    "a mask of another size": (lambda: f(3)[Tensor([True, False])], IndexError,
        "a mask of shape (2,) does not match a tensor of shape (3,)"),
    "multinomial": (lambda: Tensor.multinomial(f(3), 5), ValueError,
        "cannot draw 5 of 3 without replacement"),
    "treadle.save": (lambda: treadle.save, AttributeError, "write nn.safe_save(state_dict, path)"),
    "treadle.compile": (lambda: treadle.compile, AttributeError, "write treadle.jit"),
    "treadle.randn": (lambda: treadle.randn, AttributeError, "it is a method, Tensor.randn"),
    "x.cuda": (lambda: f(2).cuda(), AttributeError, "write x.to(device)"),
    "max(dim).values": (lambda: f(2, 2).max(0).values, AttributeError, "give the values only"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_habit_of_pytorch_gets_an_answer(name):
    action, error, words = CASES[name]
    with pytest.raises(error) as caught:
        action()
    assert words in str(caught.value)


def test_what_is_another_name_here_is_no_attribute():
    for name in OF_TENSOR:
        assert not hasattr(f(2), name)
        assert name not in dir(f(2))
    for name in OF_MODULE:
        assert not hasattr(treadle, name)


TYPING_ERRORS = {
    "treadle.Tensor([1.0]).sofmax(0)": "softmax",
    "treadle.Tensor([1.0]).unsqeeze(0)": "unsqueeze",
    "treadle.nn.Lineer": "Linear",
    "treadle.nn.optim.Adamm": "Adam",
    "treadle.stak": "stack",
    "treadle.linalg.choleski": "cholesky",
    "treadle.nn.Linear(2, 3).weigth": "weight",
}


def test_python_suggests_the_name_that_was_meant():
    lines = "\n".join(
        f"try: {typed}\nexcept AttributeError as error: sys.excepthook(*sys.exc_info())"
        for typed in TYPING_ERRORS
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, treadle, treadle.nn\n{lines}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    for meant in TYPING_ERRORS.values():
        assert f"Did you mean: '{meant}'?" in done.stderr


class Linearly(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.linear(f(2, 3))


# what is done -> the error, and what its message says
MORE = {
    "an array for a tensor": (lambda: nn.Linear(3, 2)(np.ones((4, 3))), TypeError,
        "Linear: expected a tensor, not a ndarray: write Tensor(..)"),
    "a list for a tensor": (lambda: nn.ReLU()([1.0]), TypeError, "relu: expected a tensor or a n"),
    "in a model of one's own": (lambda: Linearly()([[1.0]]), TypeError, "Linearly: expected a t"),
    "a layer on a GPU": (lambda: nn.Linear(2, 2).cuda(), AttributeError, "write layer.to(device)"),
    "a hook": (lambda: nn.ReLU().register_forward_hook(print), AttributeError, "forward of a mod"),
    "shapes in a function of several operations": (lambda: F.kl_div(f(2), f(3)), ValueError,
        "kl_div: shapes (3,) and (2,)"),
    "in another": (lambda: f(2).lerp(f(3), 0.5), ValueError, "lerp: shapes (3,) and (2,)"),
    "an operator keeps its sign": (lambda: f(2) + f(3), ValueError, "+: shapes (2,) and (3,)"),
    "a schedule of no steps": (lambda: nn.optim.lr_scheduler.StepLR(
        nn.optim.SGD([tracked(1)]), 0), ValueError, "StepLR: step_size=0 must be an int of 1"),
    "a module that is not there": (lambda: nn.Sequential(nn.ReLU())[3], IndexError,
        "Sequential: index 3 is out of range for 1 items"),
    "no list of modules": (lambda: nn.ModuleList(3), TypeError, "takes a list of modules, not 3"),
    "a model for its parameters": (lambda: nn.utils.clip_grad_norm_(nn.Linear(2, 2), 1.0),
        TypeError, "those of a model are model.parameters()"),
    "a parameter that is not there": (lambda: nn.Linear(2, 2).get_parameter("w"), AttributeError,
        "Linear has no parameter 'w'; it has weight, bias"),
    "NumPy's cast": (lambda: f(2).astype("int64"), AttributeError, "write x.to(dtype)"),
    "a part of a part": (lambda: f(3).split(1.5), TypeError, "split: split_size must be an int, n"),
    "a part of a digit": (lambda: f(3).round(decimals=1.5), TypeError,
        "round: decimals must be an int, not 1.5"),
    "a part of a bin": (lambda: f(3).histc(2.5), TypeError, "histc: bins must be an int, not 2.5"),
    "an index in a tuple": (lambda: f(3).index_put((Tensor([5]),), f(1)).tolist(), IndexError,
        f"index_put: index 5 is out of range for an axis of size 3, at {__file__}"),
    "one process": (lambda: nn.SyncBatchNorm, AttributeError, "write nn.BatchNorm2d: there is one"),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_more_mistakes(name: str) -> None:
    act, kind, words = MORE[name]
    with pytest.raises(kind) as caught:
        act()
    assert words in str(caught.value)


OF_AN_INT = [
    ("k", lambda n: f(3).topk(n)),
    ("k", lambda n: f(3).kthvalue(n)),
    ("size", lambda n: f(3).unfold(0, n, 1)),
    ("step", lambda n: f(3).unfold(0, 1, n)),
    ("n", lambda n: f(3).diff(n)),
    ("offset", lambda n: f(3, 3).diagonal(n)),
    ("offset", lambda n: f(3, 3).diagonal_scatter(f(3), n)),
    ("offset", lambda n: treadle.linalg.trace(f(3, 3), offset=n)),
    ("offset", lambda n: f(3).diag_embed(n)),
    ("offset", lambda n: f(3).diagflat(n)),
    ("diagonal", lambda n: f(3).diag(n)),
    ("diagonal", lambda n: f(3, 3).diag(n)),
    ("diagonal", lambda n: f(3, 3).tril(n)),
    ("diagonal", lambda n: f(3, 3).triu(n)),
    ("diagonal", lambda n: Tensor.tri(3, diagonal=n)),
    ("row", lambda n: Tensor.tril_indices(n, 3)),
    ("col", lambda n: Tensor.triu_indices(3, n)),
    ("offset", lambda n: Tensor.triu_indices(3, 3, n)),
    ("minlength", lambda n: i(3).bincount(minlength=n)),
    ("num_samples", lambda n: f(3).multinomial(n)),
]


@pytest.mark.parametrize("given", [1.5, "a", None])
def test_which_argument_is_an_int(given: object) -> None:
    for argument, call in OF_AN_INT:
        with pytest.raises(TypeError, match=rf"\w+: {argument} must be an int, not {given!r}"):
            call(given)


@pytest.mark.parametrize("padding", [-1, 1.5, None, (1, 2, 3), ((1, -1), (0, 0))])
def test_a_padding_that_is_none_is_refused_when_a_layer_is_made(padding: object) -> None:
    for mode in ("zeros", "reflect"):
        with pytest.raises(ValueError, match=r"Conv2d: padding="):
            nn.Conv2d(1, 1, 3, padding=padding, padding_mode=mode)
    for padding_ in (padding, "same"):
        with pytest.raises(ValueError, match=r"ConvTranspose2d: padding="):
            nn.ConvTranspose2d(1, 1, 3, padding=padding_)
    with pytest.raises(ValueError, match=r"conv2d: padding is .*'valid' or 'same', not 'foo'"):
        f(1, 1, 5, 5).conv2d(f(1, 1, 3, 3), padding="foo")


def test_a_write_that_nobody_could_see() -> None:
    x, holder = f(3, 3), {"x": f(3)}
    with pytest.raises(RuntimeError, match="write x\\[0, 1\\] = v for x\\[0\\]\\[1\\] = v"):
        x[0][1] = 5
    with pytest.raises(RuntimeError, match="a temporary, which nobody holds"):
        x.data[0] = 5
    row = x[0]
    row[1] = 5
    holder["x"][0] = 5
    [x][0][0] = 5
    assert (row[1].item(), holder["x"][0].item(), x[0, 0].item()) == (5, 5, 5)
    x[0, 1] += 1
    assert x[0, 1].item() == 6


def test_a_misspelt_name_is_told() -> None:
    for module, name, meant in ((treadle, "softmx", "softmax"), (nn, "Linnear", "Linear")):
        with pytest.raises(AttributeError) as caught:
            getattr(module, name)
        assert (caught.value.name, caught.value.obj) == (name, module)
        assert meant in dir(module) or meant in dir(Tensor)
