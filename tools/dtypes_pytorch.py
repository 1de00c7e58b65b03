"""The calls of tools/calls.py in every dtype that PyTorch takes: dtypes of results, and numbers.

    python tools/dtypes_pytorch.py                 all functions
    python tools/dtypes_pytorch.py softmax sort    these

Where PyTorch refuses a dtype, NumPy or float64 judges (tools/dtypes.py). What differs by decision
is listed here; docs/differences.md or docs/numerics.md says so.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import calls
import numpy as np
import torch
from dtypes import DTYPES, UNITS

from treadle import Tensor, config
from treadle.ir.dtype import DType

PLACES = {
    "F": torch.nn.functional,
    "torch": torch,
    "linalg": torch.linalg,
    "fft": torch.fft,
    "treadle": torch,
}
SEARCHED = (torch.Tensor, torch.nn.functional, torch)
UNSIGNED = frozenset(("uint16", "uint32", "uint64"))
HALVES = frozenset(("float16", "bfloat16"))
WHOLE = frozenset(d.name for d in DTYPES if not d.is_float)
ALL = frozenset(d.name for d in DTYPES)
# name -> (dtypes in which it differs by decision, why)
DECIDED: dict[str, tuple[frozenset[str], str]] = {
    "add": (frozenset(("bool",)), "2 * a bool is an int64"),
    **dict.fromkeys(
        ("sum", "prod", "nansum", "cumsum", "cumprod", "sum_to_size", "linalg.vander"),
        (frozenset(("uint64",)), "uint64 stays"),
    ),
    **dict.fromkeys(("any", "all"), (frozenset(("uint8",)), "they are bools")),
    **dict.fromkeys(("max", "min"), (ALL, "the values only")),
    **dict.fromkeys(("treadle.var", "treadle.std"), (ALL, "the standard's correction is 0")),
    "treadle.sort": (ALL, "the values only"),
    **dict.fromkeys(
        ("treadle.complex", "treadle.view_as_complex"),
        (frozenset(("float16",)), "there is no complex32"),
    ),
    "where": (frozenset(("bool",)), "which one is the condition, must be said"),
    "topk": (WHOLE, "of equals the first"),
    "matrix_exp": (HALVES, "for float32 and float64"),
    **dict.fromkeys(("svd", "linalg.svd", "linalg.eigh"), (ALL, "signs of vectors")),
    **dict.fromkeys(("linalg.eig", "linalg.eigvals"), (ALL, "no complex numbers")),
    **dict.fromkeys(("dropout", "alpha_dropout", "feature_alpha_dropout"), (WHOLE, "float32")),
    **dict.fromkeys(("lp_pool1d", "lp_pool2d", "lp_pool3d"), (WHOLE, "PyTorch averages integers")),
    "local_response_norm": (WHOLE, "PyTorch averages integers"),
    "grid_sample": (HALVES, "PyTorch rounds on the way"),
    "soft_margin_loss": (HALVES, "PyTorch rounds on the way"),
    **dict.fromkeys(
        ("pairwise_distance", "triplet_margin_loss"),
        (frozenset(("uint8",)), "differences do not wrap"),
    ),
    "threshold": (frozenset(("uint8",)), "an int that does not fit raises"),
    "softmin": (frozenset(("uint8", *UNSIGNED)), "negative numbers do not wrap"),
}
LOOSE = {
    "lgamma": 16,
    "digamma": 16,
    "qr": 16,
    "linalg.qr": 16,
    "linalg.eigvalsh": 16,
    "treadle.kaiser_window": 16,
}


def their_function(name: str) -> Any:
    """What PyTorch calls for a name of the table; None: it has no such function."""
    theirs = calls.CALLS[name].theirs
    place, _, short = (name if theirs is None else theirs).rpartition(".")
    if not short:
        return None
    if place:
        return getattr(PLACES[place], short, None)
    if short in ("T", "mT", "H", "mH"):
        return lambda x: getattr(x, short)
    return next((getattr(each, short) for each in SEARCHED if hasattr(each, short)), None)


def their_dtype(dtype: DType) -> Any:
    return getattr(torch, {"float8_e4m3": "float8_e4m3fn"}.get(dtype.name, dtype.name))


def their_operands(name: str, dtype: DType) -> list[Any]:
    made = []
    for each in calls.CALLS[name].operands.split():
        x = torch.tensor(calls.base(each, dtype))
        made.append(x if each in calls.FIXED else x.to(their_dtype(dtype)))
    return made


def array(x: Any) -> np.ndarray:
    if isinstance(x, Tensor):
        return np.asarray(x.numpy())
    if not torch.is_tensor(x):
        return np.asarray(x)
    x = x.resolve_conj()
    wide = x.dtype.is_floating_point and x.dtype.itemsize < 4
    return np.asarray((x.float() if wide else x).numpy())


def differs(ours: Any, theirs: Any, units: float) -> str:
    """How a result differs from PyTorch's, or ""."""
    both = isinstance(ours, Tensor) and torch.is_tensor(theirs)
    if both and their_dtype(ours.dtype) is not theirs.dtype:
        return f"{ours.dtype}, PyTorch {theirs.dtype}"
    a, b = array(ours), array(theirs)
    if a.shape != b.shape:
        return f"shape {a.shape}, PyTorch {b.shape}"
    same = a == b
    if a.dtype.kind in "fc":
        a, b = (np.asarray(x, np.promote_types(x.dtype, "f8")) for x in (a, b))
        scale = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
        near = np.abs(a - b) <= units * ours.dtype.real.eps * np.maximum(np.abs(b), scale)
        same = (a == b) | near | (np.isnan(a) & np.isnan(b))
    return "" if np.all(same) else f"{a[~same][0]}, PyTorch {b[~same][0]}"


def fault(name: str, dtype: DType) -> str:
    """How a call differs from PyTorch's in a dtype, or ""."""
    call, function = calls.CALLS[name], their_function(name)
    try:
        theirs = calls.flat(call.how(function, *their_operands(name, dtype)))
    except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
        return ""
    try:
        ours = calls.call(name, dtype)
    except (TypeError, OverflowError) as error:
        return f"{dtype}: {error}; PyTorch takes it"
    if len(ours) != len(theirs):
        return f"{dtype}: {len(ours)} results, PyTorch {len(theirs)}"
    if name in calls.DRAWN:
        theirs = [torch.zeros_like(x) for x in theirs]
        ours = [x.zeros_like() for x in ours]
    units = LOOSE.get(name, UNITS)
    faults = [differs(mine, its, units) for mine, its in zip(ours, theirs)]
    return f"{dtype}: {'; '.join(filter(None, faults))}" if any(faults) else ""


def faults(name: str, dtypes: Iterable[DType]) -> list[str]:
    """How a function differs from PyTorch's in some dtypes, but for what is decided."""
    decided, _ = DECIDED.get(name, (frozenset(), ""))
    with np.errstate(all="ignore"):
        found = [fault(name, dtype) for dtype in dtypes if dtype.name not in decided]
    return [each for each in found if each]


FUNCTIONS = [name for name in calls.CALLS if their_function(name) is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="names of tools/calls.py; all of them")
    parser.add_argument("--device", default="INTERP")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    with config.DEVICE.set(arguments.device):
        for name in arguments.names or FUNCTIONS:
            for each in faults(name, DTYPES):
                wrong += 1
                print(f"{name} {each}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
