"""Sequences of different lengths: `nn.utils.rnn`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle import elsewhere
from treadle.tensor import Tensor

__all__ = ["pad_sequence", "unpad_sequence"]


def __getattr__(name: str) -> Any:
    """AttributeError that says what to write, for names of PyTorch that are other ones here."""
    raise elsewhere.of_part("treadle.nn.utils.rnn", name)


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (length, ..) of different lengths as one tensor, the short ones filled up:
    (longest, batch, ..), or (batch, longest, ..) with batch_first. Source: PyTorch.

    >>> nn.utils.rnn.pad_sequence([Tensor([1, 2]), Tensor([3])], batch_first=True)
    Tensor([[1, 2],
            [3, 0]])
    """
    if padding_side not in ("left", "right"):
        raise ValueError(f"pad_sequence: padding_side={padding_side!r} is not 'left' or 'right'")
    if isinstance(sequences, Tensor) or not sequences:
        raise ValueError("pad_sequence: it takes a list of at least one tensor")
    rest = sequences[0].shape[1:]
    for number, sequence in enumerate(sequences):
        if sequence.ndim < 1 or sequence.shape[1:] != rest:
            raise ValueError(
                f"pad_sequence: tensor {number} has shape {sequence.shape}; all must be (length, "
                f"{', '.join(map(str, rest))})"
            )
    longest = max(sequence.shape[0] for sequence in sequences)
    padded = []
    for sequence in sequences:
        missing = longest - sequence.shape[0]
        pair = (missing, 0) if padding_side == "left" else (0, missing)
        pairs = (pair, *((0, 0) for _ in rest))
        padded.append(sequence.pad(pairs, value=padding_value))
    return Tensor.stack(padded, dim=0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Sequence[int] | Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences that `pad_sequence` made one tensor of, by their lengths. Source: PyTorch.

    >>> padded = Tensor([[1, 2], [3, 0]])
    >>> [x.tolist() for x in nn.utils.rnn.unpad_sequence(padded, [2, 1], batch_first=True)]
    [[1, 2], [3]]
    """
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    sizes = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if len(sizes) != batch.shape[0]:
        raise ValueError(
            f"unpad_sequence: {len(sizes)} lengths for a batch of {batch.shape[0]} sequences"
        )
    return [batch[number, :size] for number, size in enumerate(sizes)]
