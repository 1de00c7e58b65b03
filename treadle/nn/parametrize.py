"""The general form of parametrizations: `nn.utils.parametrize`."""

from treadle.nn.module import Module
from treadle.nn.parametrizations import (
    Parametrization,
    register_parametrization,
    remove_parametrizations,
)

__all__ = ["is_parametrized", "register_parametrization", "remove_parametrizations"]


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module (or any) is computed from other parameters. Source: PyTorch.

    >>> nn.utils.parametrize.is_parametrized(nn.Linear(3, 2))
    False
    """
    made: dict[str, Parametrization] = getattr(module, "parametrizations", {})
    return bool(made) if tensor_name is None else tensor_name in made
