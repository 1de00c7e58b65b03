"""Errors speak the user's language: shapes, dtypes, the public name, and what to do."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import treadle
from treadle import Tensor, Variable, config, grad, nn, scan
from treadle.engine.storage import Buffer, allocator


def f(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def i(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.int64))


def tracked(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32), requires_grad=True)


def nested(depth: int) -> object:
    return [nested(depth - 1)] if depth else 1.0


def endless() -> list[object]:
    rows: list[object] = [1.0]
    rows.append(rows)
    return rows


class Foreign:
    """An array of another library that does not give itself to NumPy."""

    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        raise RuntimeError("no such array")


# what is done -> the error, and what its message says (a text, or several)
Case = tuple[str, object, type[Exception], str | tuple[str, ...]]
SHAPES: list[Case] = [
    ("add", lambda: f(2, 3) + f(4), ValueError, ("+: shapes (2, 3) and (4,)", "3 against 4")),
    ("matmul", lambda: f(2, 3) @ f(4, 5), ValueError, "matmul: (2, 3) @ (4, 5)"),
    ("bmm", lambda: f(2, 3, 4).bmm(f(3, 4, 5)), ValueError, "bmm: (2, 3, 4) and (3, 4, 5)"),
    ("linear", lambda: f(2, 3).linear(f(4, 5)), ValueError, ("linear: ", "(2, 3)", "(4, 5)")),
    ("conv2d", lambda: f(1, 3, 8, 8).conv2d(f(4, 2, 3, 3)), ValueError,
     ("conv2d: ", "(4, 2, 3, 3)", "(1, 3, 8, 8)", "groups=1")),
    ("conv2d too large", lambda: f(1, 3, 2, 2).conv2d(f(4, 3, 3, 3)), ValueError,
     ("conv2d: ", "3 elements", "dimension of 2")),
    ("max_pool2d", lambda: f(1, 3, 2, 2).max_pool2d(3), ValueError, "max_pool2d: "),
    ("where", lambda: Tensor.where(f(2) > 0, f(3), f(4)), ValueError, "where: shapes "),
    ("cat", lambda: Tensor.cat([f(2, 3), f(2, 4)], 0), ValueError,
     "cat: the shapes (2, 3) and (2, 4)"),
    ("cat of nothing", lambda: Tensor.cat([], 0), ValueError, "cat needs at least one tensor"),
    ("stack", lambda: Tensor.stack([f(2), f(3)]), ValueError, "stack: the shapes (2,) and (3,)"),
    ("cross_entropy", lambda: f(4, 10).cross_entropy(i(5)), ValueError,
     ("cross_entropy: ", "(4, 10)", "not (5,)")),
    ("layer_norm", lambda: f(4, 10).layer_norm((5,)), ValueError,
     ("layer_norm: ", "(5,)", "(4, 10)")),
    ("BatchNorm", lambda: nn.BatchNorm(3)(f(4, 5, 2, 2)), ValueError,
     ("BatchNorm: ", "3 channels")),
    ("Linear", lambda: nn.Linear(3, 4)(f(2, 5)), ValueError, ("(2, 5)", "(4, 3)")),
    ("expand", lambda: f(2, 3).expand(4, 3), ValueError, ("expand: ", "(2, 3)", "(4, 3)")),
    ("reshape", lambda: f(2, 3).reshape(4, 2), ValueError, ("reshape: (2, 3)", "(4, 2)")),
    ("reshape -1", lambda: f(2, 3).reshape(4, -1), ValueError, "reshape: (2, 3) does not divide"),
    ("reshape -1 -1", lambda: f(6).reshape(-1, -1), ValueError, "only one size may be -1"),
    ("gather", lambda: f(3, 4).gather(0, i(5)), ValueError, ("gather: ", "(5,)", "(3, 4)")),
    ("unflatten", lambda: f(6).unflatten(0, (4, 2)), ValueError, "unflatten: "),
    ("assign", lambda: f(3).assign(f(4)), ValueError, ("assign: ", "(4,)", "(3,)")),
    ("setitem", lambda: f(3).__setitem__(slice(0, 2), f(5)), ValueError, ("(5,)", "(2,)")),
    ("attention", lambda: f(2, 3, 4).scaled_dot_product_attention(f(2, 3, 5), f(2, 3, 5)),
     ValueError, "scaled_dot_product_attention: query (2, 3, 4), key (2, 3, 5)"),
    ("@ of a number", lambda: f(2, 3) @ 3, TypeError,
     ("matmul is for two tensors, not for a tensor of float32 (2, 3) and 3", "with *")),
    ("more elements than there is memory", lambda: Tensor.zeros(2**40, 2**40).numpy(), MemoryError,
     "1099511627776, 1099511627776"),
    ("a range longer than memory", lambda: Tensor.arange(2**63).numpy(), MemoryError,
     "9,223,372,036,854,775,808 elements"),
    ("zeros", lambda: Tensor.zeros(-1), ValueError, "zeros: the shape (-1,) has a negative size"),
    ("pad too few", lambda: f(3, 4).pad((1, 2, 3)), ValueError, "pad: 3 amounts for a tensor of 2"),
    ("pad below 0", lambda: f(3, 4).pad((-5, 0)), ValueError,
     "pad: (-5, 0) takes more than dimension 1"),
]  # fmt: skip
AXES: list[Case] = [
    ("sum", lambda: f(2, 3).sum(2), IndexError,
     "sum: dim=2 is out of range for a 2-d tensor: use -2 to 1"),
    ("softmax", lambda: f(2, 3).softmax(-3), IndexError, "softmax: dim=-3 is out of range"),
    ("argmax", lambda: f(2, 3).argmax(5), IndexError, "argmax: dim=5"),
    ("transpose", lambda: f(2, 3).transpose(0, 3), IndexError, "transpose: dim1=3"),
    ("a new axis", lambda: f(2, 3).unsqueeze(3), IndexError,
     "unsqueeze: dim=3 is out of range for a 2-d tensor: use -3 to 2"),
    ("a new axis of stack", lambda: Tensor.stack([f(2), f(2)], dim=2), IndexError,
     "stack: dim=2 is out of range for a 1-d tensor: use -2 to 1"),
    ("a tensor", lambda: f(2, 3).sum(Tensor(0.5)), TypeError, "not a tensor of float32 ()"),
    ("twice", lambda: f(2, 3).sum((0, 0)), ValueError,
     "sum: dim=(0, 0) names the same dimension twice"),
    ("permute", lambda: f(2, 3).permute(0, 0), ValueError, "permute: (0, 0)"),
    ("a float", lambda: f(2, 3).sum(0.5), TypeError, "sum: dim must be an int, not 0.5"),
    ("both names", lambda: f(3).sum(dim=0, axis=0), TypeError, "dim and axis are one argument"),
    ("unknown name", lambda: f(3).sum(dimension=0), TypeError, "sum() got an unexpected keyword"),
]  # fmt: skip
DTYPES: list[Case] = [
    ("&", lambda: f(2) & f(2), TypeError, "& is for bool, signed, unsigned, not for float32"),
    ("<<", lambda: f(2) << 1, TypeError, "<< is for signed, unsigned, not for float32"),
    ("~", lambda: ~f(2), TypeError, "~ is for bool, signed, unsigned, not for float32"),
    ("- of bools", lambda: (f(2) > 0) - (f(2) > 0), TypeError, "not for bool: cast one"),
    ("where", lambda: Tensor.where(f(2), f(2), f(2)), TypeError,
     "condition is float32, not bool: write condition != 0"),
    ("float index", lambda: f(3)[f(2)], IndexError, "must be of integers, not float32"),
    ("embedding", lambda: f(3).embedding(f(4, 2)), TypeError, "embedding: the ids are float32"),
    ("one_hot", lambda: f(3).one_hot(3), TypeError, "one_hot: class ids are integers, not float32"),
    ("assign", lambda: f(3).assign(i(3)), TypeError,
     ("assign: the value is int64, the tensor float32", ".cast(float32)")),
    ("add_", lambda: i(3).add_(1.5), TypeError, "add_ gives float32, which a tensor of int64"),
    ("+ text", lambda: f(3) + "a", TypeError, "add: a str is no operand of a tensor"),
    ("no such dtype", lambda: Tensor([1], dtype="float128"), TypeError,
     ("no dtype 'float128'", "bfloat16")),
    ("no such dtype in to", lambda: f(2).to("floa32"), ValueError,
     ("to: there is no device or dtype 'floa32'", "float32")),
    ("an array of no numbers", lambda: Tensor(np.array([None])), TypeError,
     ("dtype object has no treadle dtype", "supported: bool")),
    ("a gradient of integers", lambda: Tensor([1], requires_grad=True), TypeError,
     "only floating-point and complex tensors can require a gradient, not int64"),
]  # fmt: skip
DATA: list[Case] = [
    ("ragged", lambda: Tensor([[1, 2], [3]]), ValueError,
     ("ragged", "x[1] has length 1, x[0] has length 2")),
    ("ragged inside", lambda: Tensor([[[1], [2, 3]], [[1], [2]]]), ValueError,
     "x[0][1] has length 2, x[0][0] has length 1"),
    ("a number beside a list", lambda: Tensor([1, [2]]), ValueError,
     "x[1] has length 1, x[0] has no length"),
    ("text", lambda: Tensor(["a"]), TypeError, "the lists hold 'a', which is not a number"),
    ("complex as float", lambda: Tensor([1j], dtype="float32"), TypeError,
     "the lists hold complex numbers, which are no float32"),
    ("None in a list", lambda: Tensor([1, None]), TypeError, "None"),
    ("None", lambda: Tensor(None), TypeError, "not NoneType"),
    ("an object", lambda: Tensor(object()), TypeError,
     "numbers, nested lists, bytes or arrays, not object"),
    ("a large int", lambda: Tensor(2**70), OverflowError, "does not fit int64"),
    ("a large int in a list", lambda: Tensor([1, 2**70]), OverflowError,
     "1180591620717411303424 does not fit int64"),
    ("an int for uint64", lambda: Tensor([2**63]), OverflowError, "give dtype=uint64"),
    ("large ints of both signs", lambda: Tensor([2**63, -1]), OverflowError, "does not fit int64"),
    ("300 in a list of int8", lambda: Tensor([300], dtype="int8"), OverflowError,
     "does not fit int8"),
    ("300 as int8", lambda: Tensor(300, dtype="int8"), OverflowError,
     "300 does not fit int8 (-128 to 127)"),
    ("int8 + 300", lambda: Tensor([1], dtype="int8") + 300, OverflowError, "300 does not fit int8"),
    ("uint8 - 1", lambda: Tensor([1], dtype="uint8") + -1, OverflowError,
     "-1 does not fit uint8 (0 to 255)"),
    ("an int of 64 bits", lambda: Tensor(2**63), OverflowError, "give dtype=uint64"),
    ("full of an int of 64 bits", lambda: Tensor.full((2,), 2**63), OverflowError,
     "give dtype=uint64"),
    ("full of a tensor", lambda: Tensor.full((2,), Tensor([3.0])), TypeError,
     "full: fill_value is a number or a 0-d tensor, not a tensor of float32 (1,)"),
    ("reshape to sizes below 0", lambda: f(4, 3).reshape(-2, -6), ValueError,
     "reshape: the shape (-2, -6) has a negative size"),
    ("searchsorted in the middle", lambda: f(3).searchsorted(f(2), side="mid"), ValueError,
     "searchsorted: side is 'left' or 'right', not 'mid'"),
    ("ctc of more steps than there are",
     lambda: f(5, 2, 4).log_softmax(-1).ctc_loss(i(2, 2), Tensor([9, 5]), Tensor([2, 2])).item(),
     IndexError, "index 9 is out of range for an axis of size 6"),
    ("a recurrent layer of integers", lambda: nn.LSTM(3, 4)(i(5, 2, 3)), TypeError,
     "LSTM: x is of floats, not of int64: cast it, as in x.float()"),
    ("same padding with strides", lambda: nn.Conv2d(3, 4, 3, padding="same", stride=2), ValueError,
     "Conv2d: padding='same' is for stride=1, not stride=(2, 2)"),
    ("safe_save of a list", lambda: nn.safe_save([f(2)], "x"), TypeError,
     "safe_save takes a dict from names to tensors"),
    ("lists too deep", lambda: Tensor(nested(65)), ValueError, "nested more than 64 deep"),
    ("a list in itself", lambda: Tensor(endless()), ValueError, "a list holds itself"),
    ("an array with a gradient", lambda: Tensor(Foreign(requires_grad=True)), TypeError,
     "give x.detach()"),
    ("an array of bfloat16", lambda: Tensor(Foreign(dtype="torch.bfloat16")), TypeError,
     "give x.float(), with dtype='bfloat16'"),
    ("an array that NumPy cannot read", lambda: f(2) + Foreign(), TypeError, "no such array"),
    ("a seed that is a float", lambda: Tensor.manual_seed(1.5), TypeError,
     "manual_seed: a seed is an int, not 1.5"),
    ("a seed that is a text", lambda: Tensor.manual_seed("a"), TypeError, "not 'a'"),
    ("a seed", lambda: Tensor.manual_seed(2**80), OverflowError, "64 bits"),
]  # fmt: skip
EMPTY: list[Case] = [
    ("max", lambda: f(0).max(), ValueError, "max: a tensor of shape (0,) has no elements"),
    ("min of an axis", lambda: f(0, 3).min(0), ValueError, "min: dimension 0 of shape (0, 3)"),
    ("argmax", lambda: f(0).argmax(), ValueError, "argmax: a tensor of shape (0,)"),
    ("item of many", lambda: f(3).item(), ValueError, "one element, not of shape (3,)"),
    ("item of none", lambda: f(0).item(), ValueError, "one element, not of shape (0,)"),
    ("bool of many", lambda: bool(f(3)), ValueError, "use .any() or .all()"),
    ("float of many", lambda: float(f(3)), ValueError, "one element"),
    ("len", lambda: len(f()), TypeError, "len() of a 0-d tensor"),
    ("iteration", lambda: list(f()), TypeError, "iteration over a 0-d tensor"),
]  # fmt: skip
INDICES: list[Case] = [
    ("an int", lambda: f(3)[5], IndexError, "index 5 is out of range for dimension 0 of size 3"),
    ("the second int", lambda: f(3, 4)[1, 4], IndexError,
     "index 4 is out of range for dimension 1 of size 4"),
    ("too many", lambda: f(3)[0, 0], IndexError,
     "an index of 2 dimensions is too long for a 1-d tensor"),
    ("tensors below 0", lambda: f(3)[Tensor([-5])].numpy(), IndexError,
     "index -5 is out of range for an axis of size 3"),
    ("narrow ones", lambda: f(3)[Tensor([-5], dtype="int8")].numpy(), IndexError, "index -5 is"),
    ("several tensors", lambda: f(3, 4)[i(1), -6 * i(1)].numpy(), IndexError,
     "index -6 is out of range for an axis of size 4"),
    ("an embedding", lambda: (i(1) - 2).embedding(f(3, 4)).numpy(), IndexError,
     "embedding: index -1 is out of range for an axis of size 3"),
    ("a slice of tensors", lambda: f(3)[Tensor(1.0) :], IndexError,
     ("the bounds of a slice are ints, not a tensor of float32 ()", ".item()")),
    ("a float", lambda: f(3)[1.5], IndexError, "not 1.5"),
    ("a text", lambda: f(3)["a"], IndexError, "not 'a'"),
    ("two ellipses", lambda: f(3, 4)[..., ...], IndexError, "only one '...'"),
    ("step 0", lambda: f(3)[::0], ValueError, "step of a slice must not be 0"),
    ("a mask", lambda: f(3)[Tensor([True, False])], IndexError, "a mask of shape (2,) does not"),
]  # fmt: skip
ARGUMENTS: list[Case] = [
    ("dropout", lambda: f(3).dropout(1.5), ValueError,
     "dropout: p=1.5 is not a probability in 0..1"),
    ("reduction", lambda: f(3).mse_loss(f(3), reduction="foo"), ValueError,
     ("mse_loss: ", "'mean', 'sum' or 'none', not 'foo'")),
    ("gelu", lambda: f(3).gelu("foo"), ValueError,
     "gelu: approximate is 'none' or 'tanh', not 'foo'"),
    ("pad mode", lambda: f(3).pad((1, 1), mode="foo"), ValueError, ("pad: mode is ", "not 'foo'")),
    ("split", lambda: f(6).split(0), ValueError, "split: split_size must be 1 or more, not 0"),
    ("arange step", lambda: Tensor.arange(0, 10, 0), ValueError, "arange: step must not be 0"),
    ("arange inf", lambda: Tensor.arange(float("inf")), ValueError, "arange: 0, inf, 1"),
    ("randint", lambda: Tensor.randint(5, 2, (3,)), ValueError,
     "randint: there is no integer from 5 up to 2"),
    ("randperm", lambda: Tensor.randperm(Variable("T", 1, 5).bind(2)), ValueError,
     "randperm: n is an int of 0 or more, not the symbolic size T"),
    ("norm", lambda: f(3).norm("nuc"), ValueError, "p='nuc' is for matrices: x has shape (3,)"),
    ("norm", lambda: f(3).norm("max"), ValueError, "p is a number, 'fro' or 'nuc', not 'max'"),
    ("explain", lambda: treadle.explain(3), TypeError, "explain takes tensors, not 3"),
    ("Linear", lambda: nn.Linear(-1, 3), ValueError, "Linear: in_features=-1 must be an int of 0"),
    ("Conv2d", lambda: nn.Conv2d(-1, 3, 3), ValueError, "Conv2d: in_channels=-1"),
    ("Embedding", lambda: nn.Embedding(2.5, 3), TypeError, "Embedding: num_embeddings=2.5"),
    ("LayerNorm", lambda: nn.LayerNorm(-4), ValueError, "LayerNorm: normalized_shape=-4"),
    ("fill_", lambda: f(3).fill_(f(3)), ValueError, ("fill_: ", "(3,)", "copy_")),
    ("clipping", lambda: nn.utils.clip_grad_norm_([], -1), ValueError, "max_norm=-1"),
    ("a missing folder", lambda: nn.safe_save({"a": f(1)}, "nowhere/a.safetensors"),
     FileNotFoundError, "safe_save: there is no folder nowhere"),
    ("learning rate", lambda: nn.optim.Adam([tracked(2)], lr=-1), ValueError, "lr=-1"),
    ("no parameters", lambda: nn.optim.SGD([]), ValueError, "no parameters"),
    ("state dict", lambda: nn.Linear(3, 4).load_state_dict({"weight": f(4, 3)}), RuntimeError,
     ("does not fit Linear", "bias: missing")),
]  # fmt: skip
DEVICES: list[Case] = [
    ("creation", lambda: Tensor([1], device="GPU"), ValueError,
     "there is no device 'GPU'; there are CPU, C, INTERP"),
    ("to", lambda: f(2).to("cuda"), ValueError,
     "no device or dtype 'cuda'; devices are CPU, C, INTERP"),
    ("two devices", lambda: (f(2) + Tensor([1.0, 2.0], device="INTERP")).numpy(), ValueError,
     ("CPU and INTERP meet", "x.to(")),
]  # fmt: skip
GRADIENTS: list[Case] = [
    ("nothing to derive by", lambda: f(1).backward(), RuntimeError,
     "no tensor that this one depends on has requires_grad=True"),
    ("many elements", lambda: tracked(2).backward(), RuntimeError, ("shape (2,)", "gradient=")),
    ("in place", lambda: tracked(2).add_(1), RuntimeError, "with treadle.no_grad():"),
    ("step without gradients", lambda: nn.optim.SGD([tracked(2)]).step(), RuntimeError,
     "loss.backward()"),
    ("grad of many", lambda: grad(lambda x: x * 2)(f(3)), TypeError,
     "one floating number as a tensor, not a tensor of float32 (3,)"),
    ("grad of no tensor", lambda: grad(lambda x: 1.0)(f(3)), TypeError, "not 1.0"),
    ("grad by an argument", lambda: grad(lambda x: x.sum(), argnums=3)(f(3)), TypeError,
     "there is no argument 3: 1 was given"),
    ("grad by integers", lambda: grad(lambda x: x.sum())(i(3)), TypeError, "an argument is int64"),
]  # fmt: skip
LOOPS: list[Case] = [
    ("carry shape", lambda: scan(lambda c, x: (c.sum(), x), f(3), f(4, 3)), ValueError,
     "carry enters with shape (3,) and the function returns it with shape ()"),
    ("no length", lambda: scan(lambda c, x: (c, c), f(3)), ValueError, "length="),
    ("two lengths", lambda: scan(lambda c, x: (c, x[0]), f(3), (f(3), f(4))), ValueError,
     ("3 steps", "(4,)")),
    ("one result", lambda: scan(lambda c, x: c, f(3), f(3)), TypeError,
     "must return (carry, y), not a Tensor"),
    ("three results", lambda: scan(lambda c, x: (c, c, c), f(3), f(3)), TypeError,
     "not a tuple of 3"),
]  # fmt: skip
VARIABLES: list[Case] = [
    ("bounds", lambda: Variable("T", 5, 1), ValueError, "0 <= low <= high"),
    ("name", lambda: Variable("a b", 1, 2), ValueError, "identifier"),
    ("bind", lambda: Variable("T", 1, 5).bind(9), ValueError,
     "9 is not in Variable T's bounds 1..5"),
    ("a float", lambda: Variable("T", 1, 5).bind(2.5), TypeError,
     "Variable T: a size is an int, not 2.5"),
    ("float bounds", lambda: Variable("T", 1.5, 5), TypeError, "not 1.5"),
    ("an index that may be too large",
     lambda: f(9)[: Variable("T", 1, 9).bind(3)][2], IndexError,
     ("index 2 may be out of range for dimension 0 of size T", "x[Tensor(2)]")),
    ("two values",
     lambda: f(9)[: Variable("T", 1, 9).bind(3)] + f(9)[: Variable("T", 1, 9).bind(4)], ValueError,
     "Variable T is bound to 3 in one operand and to 4 in another"),
]  # fmt: skip

GROUPS = {
    "shapes": SHAPES, "axes": AXES, "dtypes": DTYPES, "data": DATA, "empty": EMPTY,
    "indices": INDICES, "arguments": ARGUMENTS, "devices": DEVICES, "gradients": GRADIENTS,
    "loops": LOOPS, "variables": VARIABLES,
}  # fmt: skip
CASES = [(f"{group}: {case[0]}", *case[1:]) for group, cases in GROUPS.items() for case in cases]


@pytest.mark.parametrize(
    ("name", "action", "error", "words"), CASES, ids=[case[0] for case in CASES]
)
def test_bad_input_is_an_error_in_the_users_words(name, action, error, words):
    with pytest.raises(error) as caught:
        action()
    message = str(caught.value)
    for word in (words,) if isinstance(words, str) else words:
        assert word in message
    assert "<" not in message or "<<" in message or "<=" in message, "an object's repr is no word"


def test_an_error_of_shape_is_raised_on_the_users_line():
    """Nothing has run yet: the traceback ends in the line that is wrong."""
    with pytest.raises(ValueError) as caught:
        f(2, 3) + f(4)
    assert caught.traceback[0].path.name == "test_messages.py"


METHODS_WITH_DIM = (
    "sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "softmax", "log_softmax",
    "logsumexp", "cumsum", "any", "all", "squeeze", "unsqueeze", "unbind",
)  # fmt: skip


@pytest.mark.parametrize("name", METHODS_WITH_DIM)
def test_an_axis_out_of_range_names_the_function(name):
    with pytest.raises(IndexError, match=rf"^{name}: dim=9 is out of range"):
        getattr(f(2, 3), name)(9)


# ---- values that are not errors ------------------------------------------------------------------
def test_empty_tensors_have_the_values_of_the_table():
    assert f(0).sum().item() == 0
    assert f(0).prod().item() == 1
    assert np.isnan(f(0).mean().item())
    assert f(0).logsumexp(0).item() == -np.inf
    assert f(0, 3).max(1).shape == (0,)
    assert f(2, 0).softmax(1).shape == (2, 0)
    assert bool(f(0).all()) is True
    assert bool(f(0).any()) is False


def test_any_numpy_array_can_be_given():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for form in (
        array.T, array[:, ::-1], array[::1, ::2, ::-2], array.astype(">f4"), array.astype(">f4").T,
        np.broadcast_to(array[:1], array.shape), np.asfortranarray(array), array[1:1],
    ):  # fmt: skip
        np.testing.assert_array_equal(Tensor(form).numpy(), form)
        np.testing.assert_array_equal((Tensor(form) * 2).numpy(), form * 2)
    for kind in (">i2", ">u8", ">f8", "<i4"):
        np.testing.assert_array_equal(Tensor(np.arange(5).astype(kind)).numpy(), np.arange(5))


def test_a_buffer_for_which_there_is_no_memory_leaves_nothing_behind(monkeypatch):
    """Its destructor has nothing to give back; an error there would be printed, not raised."""
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    used = allocator.in_use
    for nbytes in (4 * 10**13, 2**64):
        with pytest.raises(MemoryError, match="no memory for a buffer of"):
            Buffer(nbytes)
    assert not unraisable
    assert allocator.in_use == used


def test_an_array_is_copied():
    array = np.ones(3, np.float32)
    tensor = Tensor(array)
    array[0] = 5
    assert tensor.tolist() == [1, 1, 1]


# ---- knobs and missing libraries -----------------------------------------------------------------
def in_fresh_process(source: str, **environment: str) -> str:
    """The last line that a fresh process writes, to either stream."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return (done.stdout + done.stderr).strip().splitlines()[-1]


COMPUTE = "import treadle; print((treadle.Tensor([1]) + 1).tolist())"
BAD_KNOBS = {
    "DEBUG": ("loud", "ValueError: DEBUG='loud': DEBUG takes an integer"),
    "THREADS": ("-3", "ValueError: THREADS=-3"),
    "CACHE": ("yes", "ValueError: CACHE='yes': CACHE takes an integer"),
    "DEVICE": ("TPU", "ValueError: there is no device DEVICE='TPU'; there are CPU, C, INTERP"),
}


@pytest.mark.parametrize("name", BAD_KNOBS)
def test_a_knob_with_a_bad_value(name):
    value, message = BAD_KNOBS[name]
    assert in_fresh_process(COMPUTE, **{name: value}).startswith(message)
    assert in_fresh_process(COMPUTE, **{f"TREADLE_{name}": value}).startswith(message)


def test_a_knob_set_to_another_type():
    with pytest.raises(TypeError, match="THREADS takes an integer"), config.THREADS.set("two"):
        pass
    with pytest.raises(TypeError, match="DEVICE takes a text"), config.DEVICE.set(1):
        pass


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {library!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
import treadle
from treadle import Tensor, extras
{rest}
"""


def test_without_llvmlite_the_interpreter_serves():
    rest = "x = Tensor([1.0, 2.0]) * 2\nprint(x.tolist(), x.device)"
    source = BLOCKED.format(library="llvmlite", rest=rest)
    assert in_fresh_process(source) == "[2.0, 4.0] INTERP"


def test_without_llvmlite_the_device_cpu_says_what_to_install():
    source = BLOCKED.format(library="llvmlite", rest="Tensor([1.0], device='CPU').sum().numpy()")
    last = in_fresh_process(source)
    assert last == "ImportError: this needs llvmlite, which is not installed: pip install 'treadle'"


def test_a_missing_extra_is_named():
    source = BLOCKED.format(library="safetensors", rest="extras.load('safetensors.numpy')")
    assert in_fresh_process(source) == (
        "ImportError: this needs safetensors, which is not installed: "
        "pip install 'treadle[safetensors]'"
    )


def test_without_a_c_compiler_the_device_c_says_what_to_install():
    last = in_fresh_process(COMPUTE, DEVICE="C", PATH="/nonexistent")
    assert last.startswith("RuntimeError: the device C needs a C compiler")
    assert re.search("install gcc or clang", last)


def test_the_version_is_known():
    assert re.fullmatch(r"\d+\.\d+\.\d+", treadle.__version__)


def test_a_loss_takes_its_target_by_name() -> None:
    assert nn.MSELoss()(f(2), target=3 * f(2)).item() == 4.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: f(2, 3).clip(), "clip: give min, max, or both"),
        (lambda: f(2, 3).clamp(), "clamp: give min, max, or both"),
        (lambda: f(2, 3).concatenate(f(4, 4)), "concatenate: the shapes"),
        (lambda: f(2, 3).swapaxes(0, 5), "swapaxes: dim1=5 is out of range"),
        (lambda: f(2, 3).moveaxis(0, 7), "moveaxis: destination=7"),
        (lambda: f(2, 3).multiply(f(4)), r"multiply: shapes \(2, 3\) and \(4,\)"),
        (lambda: f(2, 3).subtract_(f(4)), r"subtract: shapes \(2, 3\) and \(4,\)"),
        (lambda: f(2, 3).absolute(out=f(2)), r"absolute: out=\(..\)"),
        (lambda: treadle.amax(f(2, 3), axis=9), "amax: dim=9 is out of range"),
        (lambda: treadle.permute_dims(f(2, 3), (0, 0)), "permute_dims: "),
        (lambda: treadle.special.expit("a"), "expit: expected a tensor"),
    ],
)
def test_an_alias_is_called_what_the_user_calls_it(call, message):
    with pytest.raises((ValueError, IndexError, TypeError, NotImplementedError), match=message):
        call()
