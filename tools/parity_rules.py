"""How the names of PyTorch's sample inputs are called here, and what is compared: tables.

Each table is a departure from "the same call gives the same numbers", and says for each of its
names why. `tools/parity.py` uses them; none of them needs PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import treadle
from treadle import Tensor, nn
from treadle.elsewhere import Elsewhere

# ---- which names ---------------------------------------------------------------------------------
# op_db's names that treadle has for something else, or with another meaning by decision
SKIPPED = {
    "gradient": "x.gradient(*targets) is the derivative (API), torch.gradient a finite difference",
    "normal": "Tensor.normal(*shape, mean, std) is tinygrad's",
    "uniform": "Tensor.uniform(*shape, low, high) is tinygrad's",
    "empty_strided": "tensors have no strides",
    "to_sparse": "there are no sparse tensors",
    "resize_": "a tensor keeps its shape",
    "linalg.eig": "not there yet: it raises NotImplementedError",
    "linalg.eigvals": "as linalg.eig",
}
MODULES = ("linalg", "fft", "special")


def _detached(x: Tensor) -> Tensor:
    """A copy to be changed in place."""
    return x.detach().clone()


# how a call is brought into treadle's form, where docs/differences.md says that they differ
CALLED: dict[str, Callable[..., Any]] = {
    "nn.functional.embedding": lambda w, i, **k: nn.functional.embedding(i, w, **k),
    "nn.functional.embedding_bag": lambda w, i, **k: nn.functional.embedding_bag(i, w, **k),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "H": lambda x: x.H,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "mH": lambda x: x.mH,
    "where": lambda x, c, y: treadle.where(c, x, y),
    "einsum": lambda tensors, equation: Tensor.einsum(equation, *tensors),
    # PyTorch's samples of rank k are given as two factors
    "linalg.pinv": lambda x, *b, **k: treadle.linalg.pinv(x @ b[0].mT if b else x, **k),
    "zero_": lambda x: _detached(x).zero_(),
    "fill": lambda x, value: _detached(x).fill_(value),
    # PyTorch's derivative is that by the scores of which log_softmax is taken, so both take it;
    # of what is a log_softmax already it changes no number
    "special.polygamma": lambda x, n: treadle.special.polygamma(n, x),
    "nn.functional.ctc_loss": lambda x, *a, **k: nn.functional.ctc_loss(x.log_softmax(-1), *a, **k),
}


def resolve(name: str) -> Callable[..., Any] | None:
    """What a user calls for this name of PyTorch's: a method of Tensor, or a function of the
    module that has PyTorch's name for it. None: treadle has no such name, or only says what to use
    instead."""
    found = CALLED.get(name) or _attribute(name)
    return None if isinstance(found, Elsewhere) else found


def _attribute(name: str) -> Any:
    if name.startswith("nn.functional."):
        return getattr(nn.functional, name.removeprefix("nn.functional."), None)
    module, _, short = name.partition(".")
    if short:
        return getattr(getattr(treadle, module, None), short, None) if module in MODULES else None
    return getattr(Tensor, name, None) or getattr(treadle, name, None)


# ---- what is compared ----------------------------------------------------------------------------
# Drawn at random. PyTorch is asked several times; where its answers differ from each other, dtype
# and shape are compared, and where they do not (no dropout in evaluation, p=0) the numbers too.
RANDOM = frozenset(
    (
        "bernoulli",
        "cauchy",
        "exponential",
        "geometric",
        "log_normal",
        "multinomial",
        "nn.functional.alpha_dropout",
        "nn.functional.dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
        "nn.functional.feature_alpha_dropout",
        "nn.functional.fractional_max_pool2d",
        "nn.functional.fractional_max_pool3d",
        "nn.functional.multi_head_attention_forward",
        "nn.functional.rrelu",
        "nn.functional.scaled_dot_product_attention",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
    )
)
# memory without values: whatever PyTorch finds there
UNDEFINED = frozenset(("empty", "empty_like", "new_empty"))
# PyTorch takes differences of uint8, which wrap, where ours are of floats: its own answer for the
# same numbers as floats is what is expected
AS_FLOATS = frozenset(
    (
        "cumulative_trapezoid",
        "nn.functional.margin_ranking_loss",
        "nn.functional.pairwise_distance",
        "nn.functional.softmin",
        "nn.functional.triplet_margin_loss",
        "nn.functional.triplet_margin_with_distance_loss",
        "trapezoid",
        "trapz",
    )
)
# a backward stable algorithm promises numbers within the rounding of the greatest of them: a small
# element is what remains of large ones
BY_NORM = frozenset(("matrix_exp",))
# tried in place on a detached copy, which has no derivative
IN_PLACE = frozenset(("zero_", "fill"))
# PyTorch's derivative by a Cholesky factor has numbers in the triangle that is not read, too; the
# other one is compared. (which argument is the factor, and where `upper` may stand)
FACTORS = {"cholesky_solve": (1, 2), "cholesky_inverse": (0, 1)}
# loops of many steps, which the interpreter does one by one: these run on the default device
COMPILED = frozenset(
    (
        "argsort",
        "median",
        "mode",
        "msort",
        "nanmedian",
        "nn.functional.conv3d",
        "nn.functional.conv_transpose2d",
        "nn.functional.conv_transpose3d",
        "sort",
        "topk",
        "unique",
        "unique_consecutive",
        "nn.functional.ctc_loss",
        "matrix_exp",
        "nn.functional.grid_sample",
        "stft",
        "linalg.cond",
        "linalg.eigh",
        "linalg.eigvalsh",
        "linalg.lstsq",
        "linalg.matrix_norm",
        "linalg.norm",
        "linalg.svd",
        "linalg.svdvals",
        "linalg.pinv",
        "linalg.matrix_rank",
        "norm",
        "pinverse",
        "svd",
    )
)
# PyTorch's result as docs/differences.md says that ours is
THEIRS: dict[str, Callable[[Any], Any]] = {
    "max": lambda r: r[0] if isinstance(r, tuple) else r,  # values only
    "min": lambda r: r[0] if isinstance(r, tuple) else r,
    "all": lambda r: r.bool(),  # bool for uint8 too
    "any": lambda r: r.bool(),
}
# (values, indices) where PyTorch does not say which of equal elements is named: any of them is
# right, and the derivative is that of the one that was named. Where `dim` stands, and its default
CHOICES = {"topk": (1, -1), "kthvalue": (1, -1), "mode": (0, -1)}
# results that are unique only up to signs and bases: what is compared instead
UNIQUE: dict[str, Callable[[Any], Any]] = {
    "linalg.eigh": lambda r: [r[0], r[1].abs()],
    "svd": lambda r: [r[0][..., : r[1].shape[-1]].abs(), r[1], r[2][..., : r[1].shape[-1]].abs()],
    "linalg.lstsq": lambda r: r[:2],  # of one variant PyTorch's samples keep these
    "linalg.svd": lambda r: [
        r[0][..., : r[1].shape[-1]].abs(),
        r[1],
        r[2][..., : r[1].shape[-1], :].abs(),
    ],
}

# ---- why a sample misses -------------------------------------------------------------------------
# (name, miss, the entry of docs/differences.md that says why); what no row fits is a defect
ENTRIES: tuple[tuple[str, str, str], ...] = (
    (r".*", r".*OverflowError: .* does not fit", "Numbers that do not fit"),
    (r"nn\.functional\.max_unpool.*", r".*gradient", "Places written twice"),
    (r"nn\.functional\.(adaptive_)?max_pool.*", r".*gradient", "Equal extremes"),
    (r"nn\.functional\.(interpolate|upsample_.*)", r"uint8: other numbers", "Images of bytes"),
    (r"special\.bessel_j.*", r"float64: (gradient: )?other numbers", "Bessel functions"),
    (r"complex|polar|view_as_complex", r"float16: .*", "Complex halves"),
    (r"linalg\.svd|svd", r".*last vectors are not determined", "Vectors that are not determined"),
    (r"cov", r"float64: other numbers", "Weights of observations"),
    (r"nn\.functional\.grid_sample", r"b?float16: gradient", "Borders between elements"),
    (r"linspace|logspace", r"u?int\d+: other numbers", "Lines of integers"),
    (r"einsum", r"u?int\d+: dtype", "Sums of small integers"),
    (r"nn\.functional\.local_response_norm", r"int\d+: dtype", "Nothing normalized"),
)


def reason(name: str, miss: str) -> str:
    """The entry of docs/differences.md that says why a sample misses, or "defect"."""
    for names, misses, entry in ENTRIES:
        if re.fullmatch(names, name) and re.match(misses, miss):
            return entry
    return "defect"
