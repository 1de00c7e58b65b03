"""Every argument of PyTorch's functions and classes is one of ours, or is refused by name with what
to write instead, or stands here with the reason."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import treadle
from treadle import Tensor, elsewhere, nn

torch = pytest.importorskip("torch", reason="parity needs PyTorch: make test-full")
pytestmark = pytest.mark.full

PLACES = {
    "torch": (lambda: torch, treadle, ""),
    "Tensor": (lambda: torch.Tensor, Tensor, ""),
    "linalg": (lambda: torch.linalg, treadle.linalg, "linalg_"),
    "fft": (lambda: torch.fft, treadle.fft, "fft_"),
    "special": (lambda: torch.special, treadle.special, "special_"),
    "functional": (lambda: torch.nn.functional, nn.functional, ""),
    "nn": (lambda: torch.nn, nn, ""),
    "optim": (lambda: torch.optim, nn.optim, ""),
    "lr_scheduler": (lambda: torch.optim.lr_scheduler, nn.lr_scheduler, ""),
    "init": (lambda: torch.nn.init, nn.init, ""),
    "utils": (lambda: torch.nn.utils, nn.utils, ""),
}

STANDARD = "the function of the namespace is that of the Array API standard, with its arguments"
TRANSFORM = "another function of this name, with its own arguments"
INNER = "in PyTorch's schema, and nobody can give it"
# (place, name; "*" for all) -> the arguments that are not ours, and why
REASONS: dict[tuple[str, str], tuple[str, str]] = {
    ("torch", "cond"): ("pred true_fn false_fn operands", TRANSFORM),
    ("torch", "while_loop"): ("cond_fn body_fn carried_inputs", TRANSFORM),
    ("torch", "vmap"): ("func", TRANSFORM),
    ("torch", "can_cast"): ("from_ to", STANDARD),
    ("torch", "eye"): ("n m", STANDARD),
    ("torch", "from_dlpack"): ("ext_tensor", STANDARD),
    ("torch", "linspace"): ("end steps", STANDARD),
    ("torch", "result_type"): ("tensor other scalar scalar1 scalar2", STANDARD),
    ("torch", "split"): ("tensor", STANDARD),
    ("torch", "searchsorted"): ("sorted_sequence input out_int32 right", STANDARD),
    ("torch", "take"): ("index", STANDARD),
    ("torch", "tensordot"): ("a b", STANDARD),
    ("Tensor", "random_"): ("from", "a word of Python's, which no argument can be called"),
    ("Tensor", "uniform_"): ("from", "a word of Python's, which no argument can be called"),
    ("Tensor", "to"): ("other", "x.to(other) takes it by position"),
    ("Tensor", "expand"): ("implicit", INNER),
    ("nn", "AdaptiveLogSoftmaxWithLoss"): ("input_ target_", "given by position by everybody"),
    ("functional", "gumbel_softmax"): ("eps", "PyTorch does nothing with it"),
}


def schema(name: str) -> list[str]:
    """The arguments of a function of PyTorch's dispatcher; results to write to are `out`."""
    found: dict[str, None] = {}
    for each in _schemas()[name]:
        full = f"{each.name}.{each.overload_name}".rstrip(".")
        if not torch._C._dispatch_has_kernel(full):
            continue  # of Python's numbers and lists, in TorchScript
        for argument in each.arguments:
            found["out" if argument.is_out else argument.name] = None
    return list(found)


@cache
def _schemas() -> dict[str, list[Any]]:
    table = defaultdict(list)
    for each in torch._C._jit_get_all_schemas():
        table[each.name.removeprefix("aten::")].append(each)
    return table


def parameters(function: Any, name: str, prefix: str) -> list[str]:
    """The arguments that PyTorch's function may be given by name."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return schema(prefix + name) or schema(name)
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in signature.parameters.values() if p.kind not in starred]


def pairs() -> Iterator[tuple[str, str, str, Callable[..., Any], tuple[Any, ...]]]:
    """(place, name, argument, our function, what it gets by position) of all that both have."""
    for place, (theirs, ours, prefix) in PLACES.items():
        for name in sorted(set(dir(theirs())) & set(dir(ours))):
            function = getattr(theirs(), name)
            mine = getattr(ours, name)
            if name.startswith("_") or not callable(function) or not callable(mine):
                continue
            if inspect.isclass(function) != inspect.isclass(mine):
                continue
            is_layer = inspect.isclass(function) and issubclass(function, torch.nn.Module)
            both = [(function, mine, (Tensor([1.0]),) if place == "Tensor" else ())]
            if is_layer and "forward" in vars(function):
                both.append((function.forward, nn.Module.__call__, (object.__new__(mine),)))
            for theirs_, ours_, given in both:
                for argument in parameters(theirs_, name, prefix):
                    if argument != "self" and not argument.startswith("_"):
                        yield place, name, argument, ours_, given


def test_there_are_as_many_as_there_should_be() -> None:
    assert sum(1 for _ in pairs()) > 3000


def test_every_argument_is_ours_or_refused_or_has_a_reason() -> None:
    """Python names a keyword argument that a function does not have before anything else."""
    missing, needed = [], set()
    for place, name, argument, function, given in pairs():
        if is_taken(function, given, argument):
            continue
        words, _ = REASONS.get((place, name), ("", ""))
        if argument in words.split():
            needed.add((place, name))
        else:
            missing.append(f"{place}.{name}: {argument}")
    assert not missing, "\n".join(missing)
    assert needed == set(REASONS), "reasons for what is taken: " + str(set(REASONS) - needed)


def is_taken(function: Callable[..., Any], given: tuple[Any, ...], argument: str) -> bool:
    """Whether a function knows an argument: takes it, or refuses it by NotImplementedError."""
    value = None if argument in elsewhere.OF_ARGUMENTS else object()
    try:
        function(*given, **{argument: value})
    except TypeError as error:
        message = str(error)
        return "unexpected keyword argument" not in message and "passed as keyword" not in message
    except Exception:
        return True
    return True


def test_weights_of_single_losses() -> None:
    """`weight=` of the losses of differences, value and gradient."""
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        for reduction in ("mean", "sum", "none"):
            x, target, weight = torch.randn(3, 4, 5, generator=torch.manual_seed(0)).unbind()
            weight = weight.abs()
            mine = Tensor(x.numpy(), requires_grad=True)
            theirs = x.clone().requires_grad_()
            given = Tensor(target.numpy()), Tensor(weight.numpy())
            ours = getattr(nn.functional, name)(mine, given[0], reduction, weight=given[1])
            expected = getattr(torch.nn.functional, name)(
                theirs, target, reduction=reduction, weight=weight
            )
            np.testing.assert_allclose(ours.numpy(), expected.detach().numpy(), rtol=1e-5)
            ours.sum().backward()
            expected.sum().backward()
            np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_size_of_a_transposed_convolution(count: int) -> None:
    settings = {"stride": 3, "padding": 1, "dilation": 2}
    mine = getattr(nn, f"ConvTranspose{count}d")(2, 3, 3, **settings)
    theirs = getattr(torch.nn, f"ConvTranspose{count}d")(2, 3, 3, **settings)
    nn.load_state_dict(mine, {k: Tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = torch.randn(2, 2, *[4, 5, 3][:count])
    for more in (0, 1, 2):
        size = [s + more for s in theirs(x).shape[2:]]
        expected = theirs(x, output_size=size).detach().numpy()
        np.testing.assert_allclose(mine(Tensor(x.numpy()), size).numpy(), expected, atol=1e-5)
        found = mine(Tensor(x.numpy()), output_size=(2, 3, *size)).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-5)
    for wrong in (size[:-1], [s + 1 for s in size], [1] * count):
        with pytest.raises(ValueError, match=f"ConvTranspose{count}d: output_size="):
            mine(Tensor(x.numpy()), output_size=wrong)
