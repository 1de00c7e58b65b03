"""Weights that are computed from other parameters at every use: `nn.utils.parametrizations`."""

from __future__ import annotations

from typing import Any, TypeVar

from treadle.nn.containers import ModuleList
from treadle.nn.module import Module
from treadle.tensor import Tensor, no_grad

__all__ = ["register_parametrization", "remove_parametrizations", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


class Parametrization(ModuleList):
    """What stands for one tensor of a module: the tensors that are learnt in its place, and the
    modules that compute it from them, one after the other."""

    def __init__(self, value: Tensor, step: Any) -> None:
        super().__init__([step])
        inverse = getattr(step, "right_inverse", None)
        with no_grad():
            learnt = value.detach() if inverse is None else inverse(value.detach())
        several = isinstance(learnt, tuple | list)
        self.names = [f"original{n}" for n in range(len(learnt))] if several else ["original"]
        for name, tensor in zip(self.names, learnt if several else [learnt]):
            setattr(self, name, type(value)(tensor.contiguous(), requires_grad=True))

    def forward(self) -> Tensor:
        """The tensor as it is now."""
        value: Any = tuple([getattr(self, name) for name in self.names])
        for step in self:
            value = step(*value) if isinstance(value, tuple) else step(value)
        result: Tensor = value
        return result


def register_parametrization(module: M, tensor_name: str, parametrization: Any) -> M:
    """Let `parametrization(original)` be the tensor `tensor_name` of a module from now on, and
    learn the original. A second one is computed from what the first gives.

    parametrization: a module; its `right_inverse(tensor)`, if it has one, gives the original or a
    tuple of them to begin with. The originals are `module.parametrizations.weight.original` (or
    `.original0` ..) in the state dict. Returns the module. Source: PyTorch.

    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = nn.utils.parametrize.register_parametrization(
    ...     nn.Linear(2, 2), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    made = getattr(module, "parametrizations", {})
    if tensor_name in made:
        if hasattr(parametrization, "right_inverse"):
            raise NotImplementedError(
                "register_parametrization: the second of a tensor cannot have right_inverse"
            )
        made[tensor_name].append(parametrization)
        return module
    value = vars(module).get(tensor_name)
    if not isinstance(value, Tensor):
        raise ValueError(
            f"register_parametrization: {type(module).__name__} has no tensor {tensor_name!r}"
        )
    stands = Parametrization(value, parametrization)
    shape = stands().shape
    if shape != value.shape:
        raise ValueError(
            f"register_parametrization: {tensor_name} has shape {value.shape}, the parametrization "
            f"gives {shape}: they must be equal"
        )
    delattr(module, tensor_name)
    _become(module, {**made, tensor_name: stands})
    return module


def _become(module: Any, made: dict[str, Parametrization]) -> None:
    """Give a module the class that computes the tensors that are in `made`, and its own class back
    if there is none."""
    own = getattr(type(module), "_own", type(module))
    module.__class__ = own
    if made:
        members: dict[str, Any] = {name: property(_computed(name)) for name in made}
        module.__class__ = type(f"Parametrized{own.__name__}", (own,), {**members, "_own": own})
        module.parametrizations = made
    else:
        del module.parametrizations


def _computed(name: str) -> Any:
    def read(module: Any) -> Tensor:
        value: Tensor = module.parametrizations[name]()
        return value

    return read


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Let a tensor of a module be a parameter again, with the value that it has now (or, with
    leave_parametrized=False, the original's). Returns the module. Source: PyTorch.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> nn.utils.parametrize.remove_parametrizations(layer, "weight")
    Linear(3, 2)
    """
    made = dict(getattr(module, "parametrizations", {}))
    if tensor_name not in made:
        raise ValueError(
            f"remove_parametrizations: {tensor_name!r} of {type(module).__name__} has none"
        )
    stands = made.pop(tensor_name)
    if not leave_parametrized and len(stands.names) > 1:
        raise ValueError(
            f"remove_parametrizations: {tensor_name} has {len(stands.names)} originals"
        )
    first = getattr(stands, stands.names[0])
    with no_grad():
        value = stands() if leave_parametrized else first
    _become(module, made)
    setattr(module, tensor_name, type(first)(value.detach().realize(), requires_grad=True))
    return module


class _WeightNorm(Module):
    """g * v / |v|, the norms over all dimensions but one."""

    def __init__(self, dim: int | None) -> None:
        self.dim = dim

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / self._norm(v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return self._norm(weight), weight

    def _norm(self, v: Tensor) -> Tensor:
        own = None if self.dim is None else self.dim % max(v.ndim, 1)
        dims = tuple([n for n in range(v.ndim) if n != own])
        root: Tensor = (v * v).sum(dims, keepdim=own is not None).sqrt() if dims else v.abs()
        return root


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Learn the lengths and the directions of a weight apart: weight = g * v / |v|.

    dim: the dimension with a length for each index; None: one length for all. In the state dict g
    is `parametrizations.weight.original0`, v `.original1`. Returns the module.
    Source: PyTorch; Salimans and Kingma, "Weight normalization", 2016.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()][1:]
    ['parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    return register_parametrization(module, name, _WeightNorm(dim))


class _SpectralNorm(Module):
    """A weight, as a matrix of one dimension by all others, over its greatest singular value, which
    power iterations follow; one or more at each use in training."""

    def __init__(self, weight: Tensor, iterations: int, dim: int, eps: float) -> None:
        if iterations < 1:
            raise ValueError(f"spectral_norm: n_power_iterations={iterations!r} must be above 0")
        self.n_power_iterations, self.dim, self.eps = iterations, dim % weight.ndim, eps
        matrix = self._matrix(weight.detach())
        rows, columns = matrix.shape
        self._u, self._v = [
            self._unit(Tensor.randn(size, dtype=weight.dtype, device=weight.device)).realize()
            for size in (rows, columns)
        ]
        self._iterate(matrix, 15)

    def forward(self, weight: Tensor) -> Tensor:
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        return weight / (self._u.detach().clone() * (matrix @ self._v.detach().clone())).sum()

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1) if weight.ndim > 1 else weight.unsqueeze(0)

    def _unit(self, x: Tensor) -> Tensor:
        return x / (x * x).sum().sqrt().clamp(min=self.eps)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        with no_grad():
            u, v = self._u, self._v
            for _ in range(count):
                u = self._unit(matrix @ v)
                v = self._unit(matrix.T @ u)
            self._u.assign(u)
            self._v.assign(v)


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its greatest singular value, as a matrix of dimension `dim` (1 for
    transposed convolutions, else 0) by all others. Returns the module.

    n_power_iterations: at each use in training; the singular vectors are the buffers `_u`, `_v`.
    Source: PyTorch; Miyato et al., "Spectral normalization for generative adversarial networks",
    2018.

    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    >>> round(layer.weight.detach().svd()[1].max().item(), 2)
    1.0
    """
    weight = vars(module).get(name)
    if not isinstance(weight, Tensor) or not weight.ndim:
        raise ValueError(f"spectral_norm: {type(module).__name__} has no weight {name!r}")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    step = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, step)
