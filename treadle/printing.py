"""How tensors print, and what users may choose about it."""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from treadle.engine import device as devices
from treadle.ir import dtype as dt


class Style(NamedTuple):
    """precision: digits after the point. threshold: more elements than this are not all shown, but
    `edgeitems` at each end of a dimension. linewidth: characters. sci_mode: whether floats are
    written with an exponent; None: where their sizes ask for it."""

    precision: int = 8
    threshold: int = 1000
    edgeitems: int = 3
    linewidth: int = 75
    sci_mode: bool | None = None


PROFILES = {
    "default": Style(),
    "short": Style(precision=2, linewidth=80),
    "full": Style(threshold=sys.maxsize),
}
_style = Style()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how tensors print from now on; what is None stays as it is, but `sci_mode`, which is
    then where the numbers ask for it.

    precision: digits after the point (8 at first). threshold: tensors of more elements are
    summarised (1000; `math.inf`: none). edgeitems: shown at each end of a dimension then (3).
    linewidth: characters of a line (75). sci_mode: whether floats are written with an exponent.
    profile: "default", "short" or "full", from which the others start. Source: PyTorch, whose
    precision is 4 at first.

    >>> treadle.set_printoptions(precision=2)
    >>> Tensor([3.14159])
    Tensor([3.14])
    >>> treadle.set_printoptions(sci_mode=True)
    >>> Tensor([3.14159])
    Tensor([3.14e+00])
    >>> treadle.set_printoptions(profile="default")
    """
    global _style
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"set_printoptions: profile={profile!r} is not one of {[*PROFILES]}")
    if sci_mode is not None and not isinstance(sci_mode, bool):
        raise TypeError(f"set_printoptions: sci_mode={sci_mode!r} is not True, False or None")
    start = _style if profile is None else PROFILES[profile]
    limit = sys.maxsize if threshold == math.inf else threshold
    given = {
        "precision": precision, "threshold": limit, "edgeitems": edgeitems, "linewidth": linewidth,
    }  # fmt: skip
    chosen = {}
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool) or value != int(value) or value < 0:
            raise ValueError(f"set_printoptions: {name}={value!r} must be an int of 0 or more")
        chosen[name] = int(value)
    _style = start._replace(**chosen, sci_mode=sci_mode)


def show(tensor: Any) -> str:
    """How a tensor prints: its numbers, and its dtype where it is not the default one."""
    array = tensor.numpy()
    text = _numbers(array)
    dtype = "" if tensor.dtype in (dt.float32, dt.int64, dt.bool_) else f", dtype={tensor.dtype}"
    device = "" if tensor.device == devices.canonical(None) else f", device={tensor.device}"
    flag = ", requires_grad=True" if tensor._requires_grad else ""
    empty = f", shape={array.shape}" if array.size == 0 else ""
    return f"Tensor({text}{empty}{dtype}{device}{flag})"


def _numbers(array: np.ndarray) -> str:
    formatter: dict[str, Any] | None = None
    if _style.sci_mode:
        formatter = {"float_kind": _scientific, "complex_kind": _scientific_complex}
    with np.printoptions(edgeitems=_style.edgeitems):
        return np.array2string(
            array,
            max_line_width=_style.linewidth,
            precision=_style.precision,
            suppress_small=None if _style.sci_mode is None else not _style.sci_mode,
            separator=", ",
            prefix="Tensor(",
            threshold=_style.threshold,
            formatter=formatter,  # type: ignore[arg-type]
        )


def _scientific(number: Any) -> str:
    return f"{number:.{_style.precision}e}"


def _scientific_complex(number: Any) -> str:
    return f"{_scientific(number.real)}{number.imag:+.{_style.precision}e}j"
