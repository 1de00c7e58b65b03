"""Modules that hold modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor import Tensor


class _Holder(Module):
    """A module with items of its own beside its attributes; `_items` has them by name."""

    _items: dict[str, Any]

    def named_members(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of the items, named as in the state dict, and of the attributes."""
        yield from self._items.items()
        yield from ((name, value) for name, value in vars(self).items() if name != "_items")

    def __len__(self) -> int:
        return len(self._items)


class _Numbered(_Holder):
    """Items by position."""

    def _set(self, items: Iterable[Any]) -> None:
        self._items = {str(number): item for number, item in enumerate(items)}

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    @overload
    def __getitem__(self, key: int) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    def __getitem__(self, key: int | slice) -> Any:
        items = list(self._items.values())
        if not isinstance(key, slice):
            if not -len(items) <= key < len(items):
                raise IndexError(
                    f"{type(self).__name__}: index {key} is out of range for {len(items)} items"
                )
            return items[key]
        part = type(self).__new__(type(self))
        part._set(items[key])
        return part

    def __setitem__(self, key: int, module: Any) -> None:
        names = list(self._items)
        self._items[names[key]] = module

    def __delitem__(self, key: int | slice) -> None:
        items = list(self._items.values())
        del items[key]
        self._set(items)

    def append(self, module: Any) -> Self:
        """Add a module at the end."""
        return self.extend([module])

    def extend(self, modules: Iterable[Any]) -> Self:
        """Add modules at the end."""
        for module in modules:
            self._items[str(len(self._items))] = module
        return self

    def insert(self, index: int, module: Any) -> Self:
        """Put a module before the one at `index`."""
        items = list(self._items.values())
        items.insert(index, module)
        self._set(items)
        return self


class Sequential(_Numbered):
    """Modules, or any functions, one after the other: each takes what the one before gives.

    layers: the modules in order; or one dict of them, whose keys become their names.

    >>> len(Sequential(Module(), Module()))
    2
    """

    def __init__(self, *layers: Any) -> None:
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            self._items = {str(name): layer for name, layer in layers[0].items()}
        else:
            self._set(layers)
        for name, layer in self._items.items():
            if not callable(layer):
                raise TypeError(f"Sequential: layer {name} is {layer!r}, which cannot be called")

    def forward(self, x: Any) -> Any:
        """x through every layer."""
        for layer in self._items.values():
            x = layer(x)
        return x


class ModuleList(_Numbered):
    """A list of modules, named by their positions. A Python list as an attribute does the same.

    >>> len(nn.get_parameters(nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 1)])))
    4
    """

    def __init__(self, modules: Iterable[Any] = ()) -> None:
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList: it takes a list of modules, not {modules!r}")
        self._set(modules)


class ParameterList(_Numbered):
    """A list of parameters, named by their positions. What is no tensor yet becomes one.

    >>> len(nn.ParameterList([nn.Parameter(Tensor.ones(2))]))
    1
    """

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._set([_parameter(value) for value in values])

    def __setitem__(self, key: int, value: Any) -> None:
        super().__setitem__(key, _parameter(value))

    def extend(self, values: Iterable[Any]) -> Self:
        """Add parameters at the end."""
        return super().extend([_parameter(value) for value in values])

    def insert(self, index: int, value: Any) -> Self:
        """Put a parameter before the one at `index`."""
        return super().insert(index, _parameter(value))


class ModuleDict(_Holder):
    """Modules by name. A Python dict as an attribute does the same.

    >>> list(nn.get_state_dict(nn.ModuleDict({"a": nn.Linear(2, 3)})))
    ['a.weight', 'a.bias']
    """

    def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        self._items = {}
        self.update(modules)

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __setitem__(self, name: str, module: Any) -> None:
        self._items[name] = module

    def __delitem__(self, name: str) -> None:
        del self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._items.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._items.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, module) pairs."""
        return self._items.items()

    def update(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add modules, or put others under names that exist."""
        self._items.update(modules)


class ParameterDict(ModuleDict):
    """Parameters by name. What is no tensor yet becomes one.

    >>> list(nn.get_state_dict(nn.ParameterDict({"scale": nn.Parameter(Tensor.ones(2))})))
    ['scale']
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__(parameters)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, _parameter(value))

    def update(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add parameters, or put others under names that exist."""
        super().update({name: _parameter(value) for name, value in dict(values).items()})


def _parameter(value: Any) -> Tensor:
    """A tensor that is a parameter: one that is already is kept."""
    return value if isinstance(value, Tensor) and value.requires_grad else Parameter(value)
