"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.tensor import Tensor, no_grad


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, in order, as one vector. Gradients flow through.

    Source: PyTorch.

    >>> nn.utils.parameters_to_vector([Tensor([[1.0, 2.0]]), Tensor(3.0)])
    Tensor([1., 2., 3.])
    """
    several = list(parameters)
    if not several:
        raise ValueError("parameters_to_vector: there are no parameters")
    return Tensor.cat([parameter.reshape(-1) for parameter in several])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Put the elements of a vector into parameters, in order. ValueError if their counts differ.

    Source: PyTorch, which lets the vector be longer.

    >>> weight = Tensor([[0.0, 0.0]], requires_grad=True)
    >>> nn.utils.vector_to_parameters(Tensor([1.0, 2.0]), [weight])
    >>> weight.tolist()
    [[1.0, 2.0]]
    """
    several = list(parameters)
    count = sum(parameter.numel() for parameter in several)
    if vec.shape != (count,):
        raise ValueError(
            f"vector_to_parameters: a tensor of shape {vec.shape} for {count} elements in "
            f"{len(several)} parameters: it must have shape ({count},)"
        )
    if not several:
        return
    parts = vec.detach().split([parameter.numel() for parameter in several])
    with no_grad():
        for parameter, part in zip(several, parts):
            parameter.assign(part.reshape(parameter.shape).to(dtype=parameter.dtype))
