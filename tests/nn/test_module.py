"""Module: what it finds, names, switches and prints; and plain objects in its place."""

from collections import OrderedDict
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from treadle import Tensor, nn
from treadle.nn.walk import named_tensors, walk


class Block(nn.Module):
    """A module that never calls the constructor of its base."""

    def __init__(self) -> None:
        self.inner = nn.Linear(2, 3)
        self.layers = [nn.Linear(3, 3, bias=False), nn.ReLU()]
        self.table = {"a": nn.Linear(3, 1, bias=False), "b": (Tensor([1.0], requires_grad=True),)}
        self.scale = Tensor([2.0])
        self.nothing = None
        self.words = "words"

    def forward(self, x: Tensor) -> Tensor:
        x = self.inner(x)
        for layer in self.layers:
            x = layer(x)
        return self.table["a"](x) * self.scale


NAMES = ["inner.weight", "inner.bias", "layers.0.weight", "table.a.weight", "table.b.0", "scale"]


def test_names_are_dotted_paths() -> None:
    model = Block()
    assert list(model.state_dict()) == NAMES
    assert [name for name, _ in model.named_parameters()] == NAMES[:-1]
    assert [name for name, _ in model.named_buffers()] == ["scale"]
    assert next(iter(model.state_dict("net."))) == "net.inner.weight"
    assert next(name for name, _ in model.named_parameters("net")) == "net.inner.weight"


def test_a_call_is_forward() -> None:
    assert Block()(Tensor.ones(4, 2)).shape == (4, 1)
    with pytest.raises(NotImplementedError, match="Module needs a method forward"):
        nn.Module()(1)


def test_parameters_come_once_and_as_an_iterator() -> None:
    layer = nn.Linear(2, 2)
    model = nn.ModuleDict({"one": layer, "two": layer})
    assert len(list(model.parameters())) == 2
    assert next(model.parameters()) is layer.weight
    assert list(model.state_dict()) == ["one.weight", "one.bias", "two.weight", "two.bias"]
    assert [name for name, _ in model.named_modules()] == ["", "one"]


def test_a_frozen_parameter_stays_a_parameter() -> None:
    layer = nn.Linear(2, 2)
    layer.requires_grad_(False)
    assert not layer.weight.requires_grad
    assert len(list(layer.parameters())) == 2 and not list(layer.buffers())
    layer.requires_grad_(True)
    assert layer.weight.requires_grad


def test_modules_and_children() -> None:
    model = Block()
    assert [name for name, _ in model.named_children()] == [
        "inner",
        "layers.0",
        "layers.1",
        "table.a",
    ]
    nested = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    assert [name for name, _ in nested.named_modules()] == ["", "0", "0.0", "1"]
    assert [name for name, _ in nested.named_children()] == ["0", "1"]
    assert len(list(nested.children())) == 2
    assert len(list(nested.modules())) == 4


def test_train_and_eval_reach_every_module() -> None:
    model = Block()
    assert all(module.training for module in model.modules())
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model.train()
    assert all(module.training for module in model.modules())


def test_apply_takes_inner_modules_first() -> None:
    seen: list[str] = []
    model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh()))
    model.apply(lambda module: seen.append(type(module).__name__))
    assert seen[-1] == "Sequential" and set(seen) == {"ReLU", "Tanh", "Sequential"}
    assert seen.index("Tanh") < seen.index("Sequential")


def test_zero_grad() -> None:
    layer = nn.Linear(2, 1)
    layer(Tensor.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[0.0, 0.0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_buffers_by_register_buffer() -> None:
    model = Block()
    model.register_buffer("mask", Tensor([1.0, 0.0]), persistent=False)
    model.register_buffer("seen", Tensor([0.0]))
    assert "seen" in model.state_dict() and "mask" not in model.state_dict()
    assert "mask" in dict(model.named_buffers())
    outer = nn.Sequential(model)
    assert "0.mask" not in outer.state_dict() and "0.seen" in outer.state_dict()
    model.register_buffer("mask", Tensor([1.0, 0.0]))
    assert "mask" in model.state_dict()
    model.register_parameter("gain", nn.Parameter([1.0]))
    model.add_module("more", nn.Linear(1, 1))
    assert {"gain", "more.weight"} <= set(dict(model.named_parameters()))


def test_plain_objects_are_modules_too() -> None:
    @dataclass(slots=True)
    class Slots:
        weight: Tensor = field(default_factory=lambda: Tensor([1.0], requires_grad=True))

    class Plain:
        def __init__(self) -> None:
            self.layer = nn.Linear(2, 1)
            self.slots = Slots()
            self.number = 3

        def __call__(self, x: Tensor) -> Tensor:
            return self.layer(x) * self.slots.weight

    model = Plain()
    assert list(nn.get_state_dict(model)) == ["layer.weight", "layer.bias", "slots.weight"]
    assert len(nn.get_parameters(model)) == 3
    assert model(Tensor.ones(5, 2)).shape == (5, 1)
    assert nn.get_parameters([model, model, Tensor([1.0])]) == nn.get_parameters(model)


def test_cycles_end() -> None:
    model = Block()
    model.inner.parent = model  # type: ignore[attr-defined]
    model.itself = [model]  # type: ignore[attr-defined]
    assert list(model.state_dict()) == NAMES


def test_what_shares_an_object_many_times_is_looked_into_once() -> None:
    class Counted:
        looked = 0

        def named_members(self) -> Any:
            Counted.looked += 1
            return iter([("x", 1)])

    shared: Any = Counted()
    for _ in range(12):  # 4096 paths
        shared = [shared, shared]
    walk(shared)
    assert Counted.looked == 1


def test_a_result_that_is_kept_is_no_parameter() -> None:
    model = Block()
    model.last = model(Tensor.ones(1, 2))  # type: ignore[attr-defined]
    assert list(model.state_dict()) == NAMES


def test_two_tensors_of_one_name() -> None:
    thing = {"a.b": Tensor([1.0]), "a": {"b": Tensor([2.0])}}
    with pytest.raises(ValueError, match=r"two different tensors are both named 'a\.b'"):
        named_tensors(thing)


def test_an_optimizer_in_a_module_holds_nothing() -> None:
    model = Block()
    model.optimizer = nn.optim.SGD(model.parameters(), lr=0.1)  # type: ignore[attr-defined]
    assert list(model.state_dict()) == NAMES


def test_deepcopy_keeps_what_is_shared_shared() -> None:
    model = Block()
    model.tied = model.inner  # type: ignore[attr-defined]
    other = deepcopy(model)
    assert other.tied is other.inner  # type: ignore[attr-defined]
    assert other.inner.weight is not model.inner.weight
    assert isinstance(other.inner.weight, nn.Parameter)
    np.testing.assert_array_equal(other.inner.weight.numpy(), model.inner.weight.numpy())


def test_to_casts_floating_tensors_in_place() -> None:
    model = nn.BatchNorm(2)
    weight = model.weight
    assert weight is not None
    values = weight.numpy()
    assert model.double() is model
    assert model.weight is weight and weight.dtype.name == "float64" and weight.requires_grad
    assert model.num_batches_tracked.dtype.name == "int64"  # type: ignore[union-attr]
    assert model.half().running_mean.dtype.name == "float16"  # type: ignore[union-attr]
    model.bfloat16().to("float64").float()
    np.testing.assert_array_equal(weight.numpy(), values)
    x = Tensor([[1.0, 2.0], [3.0, 5.0]])
    model(x).sum().backward()
    assert weight.grad is not None
    model.double()
    assert weight.grad.dtype.name == "float64"


def test_containers() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert len(model) == 3 and model[1] is list(model)[1]
    assert isinstance(model[:2], nn.Sequential) and len(model[:2]) == 2
    model.append(nn.Tanh()).insert(0, nn.Identity())
    assert [type(layer).__name__ for layer in model][::4] == ["Identity", "Tanh"]
    del model[0]
    model[1] = nn.Sigmoid()
    assert model(Tensor.ones(4, 2)).shape == (4, 1)
    named = nn.Sequential(OrderedDict(first=nn.Linear(2, 2), second=nn.ReLU()))
    assert list(named.state_dict()) == ["first.weight", "first.bias"]
    listed = nn.ModuleList([nn.Linear(1, 1)]).extend([nn.Linear(1, 1)])
    assert len(listed) == 2 and list(listed.state_dict())[-1] == "1.bias"
    held = nn.ModuleDict({"training": nn.Linear(1, 1)})
    held["forward"] = nn.Linear(1, 1, bias=False)
    assert list(held.state_dict()) == ["training.weight", "training.bias", "forward.weight"]
    assert "forward" in held and list(held) == list(held.keys()) == ["training", "forward"]
    held.eval()
    assert not held["training"].training
    with pytest.raises(TypeError, match="layer 0 is 3, which cannot be called"):
        nn.Sequential(3)


def test_a_container_can_have_attributes() -> None:
    class Net(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Linear(1, 1, bias=False))
            self.more = nn.Linear(1, 1, bias=False)

    assert list(Net().state_dict()) == ["0.weight", "more.weight"]


def test_printing() -> None:
    model = nn.Sequential(nn.Linear(2, 3, bias=False), nn.ModuleList([nn.ReLU(inplace=True)]))
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Linear(2, 3, bias=False)\n"
        "  (1): ModuleList(\n"
        "    (0): ReLU(inplace=True)\n"
        "  )\n"
        ")"
    )
    convolution = nn.Conv2d(4, 8, 3, padding="same", groups=2, padding_mode="reflect")
    assert repr(convolution) == (
        "Conv2d(4, 8, kernel_size=(3, 3), stride=(1, 1), padding='same', groups=2, "
        "padding_mode='reflect')"
    )
    for module in (
        nn.MaxPool2d(2),
        nn.AvgPool1d(3),
        nn.Dropout(0.1),
        nn.Flatten(),
        nn.GELU("tanh"),
    ):
        assert repr(module).startswith(type(module).__name__ + "(")
