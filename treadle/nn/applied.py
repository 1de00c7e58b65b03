"""Modules that are a function with settings: what activations, pools, losses and padding share."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from treadle import elsewhere
from treadle.nn import functional
from treadle.nn.module import Module


class Applied(Module):
    """A function of `nn.functional`, called with the settings that the module was made with.

    A subclass is a row of a table: its function, and its settings with their defaults, in the order
    in which they are given (`...` is no default). They become attributes of the same names.

    >>> class Clipped(Applied, function="hardtanh", min_val=..., max_val=1.0):
    ...     pass
    >>> Clipped(0.5)
    Clipped(min_val=0.5, max_val=1.0)
    """

    function: ClassVar[str]
    signature: ClassVar[inspect.Signature]

    def __init_subclass__(
        cls, function: str | None = None, positional: int | None = None, **settings: Any
    ) -> None:
        """function: its name. positional: how many settings may be given by position; all if it is
        None. A subclass that names no function takes that of its base."""
        super().__init_subclass__()
        if function is None:
            return
        cls.function = function
        either = inspect.Parameter.POSITIONAL_OR_KEYWORD
        named = inspect.Parameter.KEYWORD_ONLY
        required = inspect.Parameter.empty
        count = len(settings) if positional is None else positional
        parameters = [
            inspect.Parameter(
                name,
                either if number < count else named,
                default=required if default is ... else default,
            )
            for number, (name, default) in enumerate(settings.items())
        ]
        cls.signature = inspect.Signature(parameters)

    def __init__(self, *args: Any, **settings: Any) -> None:
        name = type(self).__name__
        settings = elsewhere.without_foreign(name, settings, self.signature.parameters)
        try:
            given = self.signature.bind(*args, **settings)
        except TypeError as error:
            raise TypeError(f"{name}{self.signature}: {error}") from None
        given.apply_defaults()
        vars(self).update(given.arguments)

    def settings(self) -> dict[str, Any]:
        """The settings by name, as they are now."""
        return {name: getattr(self, name) for name in self.signature.parameters}

    def forward(self, *tensors: Any, **named: Any) -> Any:
        """The function of the tensors, with the settings. A tensor behind the first may be given by
        the name that it has there, such as `target`."""
        return getattr(functional, self.function)(*tensors, **named, **self.settings())

    def extra_repr(self) -> str:
        shown = {
            name: value for name, value in self.settings().items() if name != "inplace" or value
        }
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())
