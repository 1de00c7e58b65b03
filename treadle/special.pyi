"""The functions of `treadle.special`.

Made by `tools/stubs.py --write`.
"""

import builtins
from typing import Any, overload

from treadle.tensor import Tensor
from treadle.vocabulary import Array, DTypeLike, Operand

def bessel_j0(x: Array) -> Tensor:
    """The Bessel function of the first kind of the order 0."""

def bessel_j1(x: Array) -> Tensor:
    """The Bessel function of the first kind of the order 1."""

def digamma(x: Operand) -> Tensor:
    """The derivative of `lgamma`; -inf at 0.0, inf at -0.0, NaN at the negative integers, in
    floating point."""

def entr(x: Array) -> Tensor:
    """-x * log(x), a term of the entropy: 0 of 0, -inf below."""

def erf(x: Operand) -> Tensor:
    """The error function, in floating point."""

def erfc(x: Operand) -> Tensor:
    """1 - erf(x), exact where that is small, in floating point."""

def erfcx(x: Array) -> Tensor:
    """exp(x**2) * erfc(x), which does not vanish for large x."""

def erfinv(x: Operand) -> Tensor:
    """The number whose error function is x; inf at 1, NaN outside [-1, 1], in floating point."""

def exp2(x: Operand) -> Tensor:
    """2 to the power x, in floating point."""

def expit(x: Array) -> Tensor:
    """1 / (1 + exp(-x))."""

def expm1(x: Operand) -> Tensor:
    """exp(x) - 1, exact near 0, in floating point."""

def gammaln(x: Operand) -> Tensor:
    """The logarithm of |gamma(x)|; inf at 0, the negative integers and -inf, in floating point."""

def i0(x: Array) -> Tensor:
    """The modified Bessel function of the first kind of the order 0."""

def i0e(x: Array) -> Tensor:
    """exp(-|x|) * i0(x)."""

def i1(x: Array) -> Tensor:
    """The modified Bessel function of the first kind of the order 1."""

def i1e(x: Array) -> Tensor:
    """exp(-|x|) * i1(x)."""

def log1p(x: Operand) -> Tensor:
    """log(1 + x), exact near 0, in floating point."""

def log_ndtr(x: Array) -> Tensor:
    """The logarithm of `ndtr`, which is finite where that vanishes."""

def log_softmax(
    x: Array, dim: builtins.int = -1, dtype: DTypeLike | None = None, *, axis: builtins.int = ...
) -> Tensor:
    """The logarithm of `softmax`, exact where softmax itself would be 0. dtype: what x is cast to
    first."""

def logit(x: Array, eps: builtins.float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; NaN outside [0, 1]. eps: x is first brought into
    [eps, 1 - eps], with the derivative 0 outside."""

def logsumexp(
    x: Array,
    dim: Any = None,
    keepdim: builtins.bool = False,
    *,
    axis: Any = ...,
    keepdims: builtins.bool = ...,
) -> Tensor:
    """log(sum(exp(x))), which does not overflow; -inf of nothing."""

def modified_bessel_i0(x: Array) -> Tensor:
    """The modified Bessel function of the first kind of the order 0."""

def modified_bessel_i1(x: Array) -> Tensor:
    """The modified Bessel function of the first kind of the order 1."""

def multigammaln(x: Array, p: builtins.int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p: the sum of lgamma(x - j/2)
    over j = 0 .. p - 1, and p (p - 1) / 4 log pi."""

def ndtr(x: Array) -> Tensor:
    """The probability that a normal variable is below x."""

def ndtri(p: Array) -> Tensor:
    """The number that a normal variable is below with the probability p; -inf of 0, inf of 1, NaN
    outside."""

@overload
def polygamma(n: builtins.int, x: Array) -> Tensor:
    """The derivative of `digamma` of the order n, an int of 0 or more."""

@overload
def polygamma(n: builtins.int, *, input: Array) -> Tensor:
    """The derivative of `digamma` of the order n, an int of 0 or more."""

@overload
def polygamma(n: builtins.int, *, A: Array) -> Tensor:
    """The derivative of `digamma` of the order n, an int of 0 or more."""

def psi(x: Operand) -> Tensor:
    """The derivative of `lgamma`; -inf at 0.0, inf at -0.0, NaN at the negative integers, in
    floating point."""

def round(x: Operand, decimals: builtins.int = 0) -> Tensor:
    """x rounded to the nearest whole number, halves to the even one; with `decimals`, to so many
    digits behind the point (or, below 0, before it)."""

def sinc(x: Array) -> Tensor:
    """sin(pi x) / (pi x); 1 at 0."""

def softmax(
    x: Array, dim: builtins.int = -1, dtype: DTypeLike | None = None, *, axis: builtins.int = ...
) -> Tensor:
    """exp(x) divided by its sum along a dimension: positive numbers that add up to 1."""

def spherical_bessel_j0(x: Array) -> Tensor:
    """sin(x) / x, 1 at 0."""

def xlog1py(x: Operand, other: Operand) -> Tensor:
    """x * log1p(other), which is 0 where x is 0 unless `other` is NaN."""

def xlogy(x: Operand, other: Operand) -> Tensor:
    """x * log(other), which is 0 where x is 0 unless `other` is NaN."""

def zeta(x: Operand, other: Operand) -> Tensor:
    """Hurwitz's zeta function, the sum of 1 / (q + k)**x over k = 0, 1 ..; Riemann's for q = 1."""
