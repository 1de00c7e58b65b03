"""Minimax polynomials for `treadle/ir/polynomials.py`: prints that table.

    python tools/minimax.py            print every row, with the error it reaches
    python tools/minimax.py EXP        print the rows whose name begins so

A row approximates g(t) by c0 + c1 t + .. + cn t^n so that the largest |(g - p) w| is least
(Lawson's algorithm), in decimal arithmetic of 60 digits. Coefficients are then rounded to the dtype
one by one, the most important first, and the others fitted again around what is rounded.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, getcontext
from fractions import Fraction
from math import comb

import numpy as np

getcontext().prec = 60
POINTS = 160
Function = Callable[[Decimal], Decimal]
ONE = Decimal(1)


def solve(matrix: list[list[Decimal]], right: list[Decimal]) -> list[Decimal]:
    """The solution of a square linear system, by elimination with pivots."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda r: abs(rows[r][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column]
        for row in rows[column + 1 :]:
            factor = row[column] / head[column]
            for k in range(column, size + 1):
                row[k] -= factor * head[k]
    found = [Decimal(0)] * size
    for r in reversed(range(size)):
        known = sum(rows[r][k] * found[k] for k in range(r + 1, size))
        found[r] = (rows[r][size] - known) / rows[r][r]
    return found


def evaluate(coefficients: Sequence[Decimal], t: Decimal) -> Decimal:
    """The polynomial at t."""
    total = Decimal(0)
    for coefficient in reversed(coefficients):
        total = total * t + coefficient
    return total


@dataclass
class Fit:
    """Approximate g on [low, high] by a polynomial of this degree, with weight w."""

    g: Function
    w: Function
    low: Decimal
    high: Decimal
    degree: int

    def __post_init__(self) -> None:
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        angles = np.pi * (np.arange(POINTS) + 0.5) / POINTS
        self.points = [middle - half * Decimal(float(np.cos(a))) for a in angles]
        self.values = [self.g(t) for t in self.points]
        self.weights = [self.w(t) for t in self.points]

    def errors(self, coefficients: Sequence[Decimal]) -> list[Decimal]:
        """The weighted error at every point."""
        rows = zip(self.points, self.values, self.weights, strict=True)
        return [w * (g - evaluate(coefficients, t)) for t, g, w in rows]

    def around(self, fixed: Sequence[Decimal], rounds: int) -> list[Decimal]:
        """All coefficients, the first ones given. Lawson: least squares whose weights grow where
        the error is large converge to the least maximum."""
        first, free = len(fixed), self.degree + 1 - len(fixed)
        emphasis = [ONE / POINTS] * POINTS
        residues = [g - evaluate(fixed, t) for t, g in zip(self.points, self.values, strict=True)]
        best, least = list(fixed), Decimal("Infinity")
        for _ in range(rounds):
            # normal equations: with monomials the matrix has one number per sum of exponents
            matrix = [Decimal(0)] * (2 * free)
            right = [Decimal(0)] * free
            for t, w, r, e in zip(self.points, self.weights, residues, emphasis, strict=True):
                term = e * w * w * t**first
                for k in range(free):
                    right[k] += term * r * t**k
                term *= t**first
                for k in range(2 * free):
                    matrix[k] += term
                    term *= t
            found = solve([matrix[k : k + free] for k in range(free)], right)
            sizes = [abs(error) for error in self.errors([*fixed, *found])]
            if max(sizes) < least:
                best, least = [*fixed, *found], max(sizes)
            total = sum(e * s for e, s in zip(emphasis, sizes, strict=True))
            emphasis = [e * s / total for e, s in zip(emphasis, sizes, strict=True)]
        return best


def rounded(value: Decimal, bits: int) -> Decimal:
    """The value as float32 or float64 holds it."""
    number = float(value)
    return Decimal(float(np.float32(number)) if bits == 32 else number)


def coefficients(fit: Fit, bits: int) -> tuple[list[float], float]:
    """Coefficients that the dtype holds, and the largest weighted error with them."""
    fixed: list[Decimal] = []
    for k in range(fit.degree + 1):
        found = fit.around(fixed, rounds=40 if k < 4 else 8)
        fixed.append(rounded(found[k], bits))
    return [float(c) for c in fixed], float(max(map(abs, fit.errors(fixed))))


# ---- functions that decimal does not have, by their series --------------------------------------


def series(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """first + first r(1) + first r(1) r(2) .. until the terms no longer count."""
    total, term, n = first, first, 1
    while abs(term) > Decimal("1e-70"):
        term *= ratio(n)
        total += term
        n += 1
    return total


def sin(x: Decimal) -> Decimal:
    return series(x, lambda n: -x * x / (2 * n * (2 * n + 1)))


def cos(x: Decimal) -> Decimal:
    return series(ONE, lambda n: -x * x / (2 * n * (2 * n - 1)))


def atanh(x: Decimal) -> Decimal:
    return series(x, lambda n: x * x * (2 * n - 1) / (2 * n + 1))


def atan(x: Decimal) -> Decimal:
    return series(x, lambda n: -x * x * (2 * n - 1) / (2 * n + 1))


def erf(x: Decimal) -> Decimal:
    """2/sqrt(pi) e^(-x^2) (x + x^3 2/3 + x^5 4/15 ..): all terms positive."""
    total = series(x, lambda n: 2 * x * x / (2 * n + 1))
    return 2 / PI.sqrt() * (-x * x).exp() * total


PI = 16 * atan(ONE / 5) - 4 * atan(ONE / 239)
LN2 = Decimal(2).ln()


def erfcx(a: Decimal) -> Decimal:
    """e^(a^2) (1 - erf(a)) for a >= 0: by erf, or by the continued fraction of Laplace."""
    if a < 3:
        return (a * a).exp() * (1 - erf(a))
    rest = a
    for n in range(300, 0, -1):
        rest = a + Decimal(n) / 2 / rest
    return 1 / (PI.sqrt() * rest)


def erfcinv(q: Decimal) -> Decimal:
    """The y >= 0 with 1 - erf(y) = q, for q <= 1: Newton's steps on ln(1 - erf(y)) - ln(q)."""
    y = (-q.ln()).sqrt() if q < 1 else Decimal(0)
    for _ in range(200):
        scaled = erfcx(y)
        step = (scaled.ln() - y * y - q.ln()) * scaled * PI.sqrt() / 2
        y += step
        if abs(step) < Decimal("1e-45"):
            break
    return y


def bernoulli(count: int) -> list[Fraction]:
    """The Bernoulli numbers B2, B4 .. as many as asked for."""
    found = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        found.append(-sum(comb(m + 1, k) * b for k, b in enumerate(found)) / (m + 1))
    return found[2::2]


BERNOULLI = [Decimal(b.numerator) / b.denominator for b in bernoulli(25)]


def stirling(x: Decimal) -> Decimal:
    """ln gamma(x) - ((x - 1/2) ln(x) - x + ln(2 pi)/2), for x > 0: its series in 1/x^2 far out,
    brought back by the recurrence of gamma."""

    def main(x: Decimal) -> Decimal:
        return (x - Decimal("0.5")) * x.ln() - x

    far = x + 60
    rest = sum(
        b / (2 * k * (2 * k - 1)) / far ** (2 * k - 1) for k, b in enumerate(BERNOULLI, start=1)
    )
    product = ONE
    for k in range(60):
        product *= x + k
    return rest + main(far) - product.ln() - main(x)


def log_gamma(x: Decimal) -> Decimal:
    return (x - Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2 + stirling(x)


def digamma_rest(x: Decimal) -> Decimal:
    """ln(x) - 1/(2x) - digamma(x), for x > 0."""
    far = x + 60
    rest = sum(b / (2 * k) / far ** (2 * k) for k, b in enumerate(BERNOULLI, start=1))
    digamma = far.ln() - 1 / (2 * far) - rest - sum(1 / (x + k) for k in range(60))
    return x.ln() - 1 / (2 * x) - digamma


# ---- the rows ------------------------------------------------------------------------------------


def row(g: Function, w: Function, low: str | Decimal, high: str | Decimal, degree: int) -> Fit:
    return Fit(g, w, Decimal(low), Decimal(high), degree)


def in_square(f: Function) -> Function:
    """f as a function of z = x^2."""
    return lambda z: f(z.sqrt())


def exp_row(degree: int) -> Fit:
    """e^r = 1 + r + r^2 p(r), relative to e^r - 1, for r in +-ln(2)/2."""
    return row(
        lambda r: (r.exp() - 1 - r) / r**2,
        lambda r: r**2 / (r.exp() - 1),
        -LN2 * Decimal("0.5001"),
        LN2 * Decimal("0.5001"),
        degree,
    )


def exp2_row(degree: int) -> Fit:
    """2^r = 1 + r p(r), relative to 2^r, for r in +-1/2."""
    return row(
        lambda r: ((r * LN2).exp() - 1) / r,
        lambda r: r / (r * LN2).exp(),
        Decimal("-0.5001"),
        Decimal("0.5001"),
        degree,
    )


def log_row(degree: int, base: int | None = None) -> Fit:
    """log(1 + f) = f/ln(base) + f^2 p(f), relative, for 1 + f from sqrt(1/2) to sqrt(2)."""
    unit = ONE if base is None else Decimal(base).ln()
    return row(
        lambda f: ((1 + f).ln() - f) / unit / f**2,
        lambda f: f**2 / ((1 + f).ln() / unit),
        Decimal("0.5").sqrt() - 1,
        Decimal(2).sqrt() - 1,
        degree,
    )


def atanh_row(degree: int, edge: str) -> Fit:
    """atanh(s) = s + s^3 p(s^2), relative, for s up to the edge."""
    return row(
        in_square(lambda s: (atanh(s) / s - 1) / s**2),
        in_square(lambda s: s**3 / atanh(s)),
        "1e-9",
        Decimal(edge) ** 2,
        degree,
    )


def sin_row(degree: int) -> Fit:
    """sin(y) = y + y^3 p(y^2), relative, for y up to pi/4."""
    return row(
        in_square(lambda y: (sin(y) / y - 1) / y**2),
        in_square(lambda y: y**3 / sin(y)),
        "1e-9",
        (PI / 4) ** 2 * Decimal("1.001"),
        degree,
    )


def cos_row(degree: int) -> Fit:
    """cos(y) = 1 - y^2/2 + y^4 p(y^2), for y up to pi/4."""
    return row(
        in_square(lambda y: (cos(y) - 1 + y * y / 2) / y**4),
        lambda z: z**2,
        "1e-9",
        (PI / 4) ** 2 * Decimal("1.001"),
        degree,
    )


def atan_row(degree: int) -> Fit:
    """atan(t) = t + t^3 p(t^2), relative, for t up to 1/2."""
    return row(
        in_square(lambda t: (atan(t) / t - 1) / t**2),
        in_square(lambda t: t**3 / atan(t)),
        "1e-9",
        "0.2501",
        degree,
    )


def tanh_row(degree: int) -> Fit:
    """tanh(x) = x + x^3 p(x^2), relative, for x up to 0.55."""

    def tanh(x: Decimal) -> Decimal:
        return 1 - 2 / ((2 * x).exp() + 1)

    return row(
        in_square(lambda x: (tanh(x) / x - 1) / x**2),
        in_square(lambda x: x**3 / tanh(x)),
        "1e-9",
        "0.3026",
        degree,
    )


def erf_near_row(degree: int, edge: str) -> Fit:
    """erf(x) = x + x p(x^2), relative, for x up to the edge."""
    return row(
        in_square(lambda x: erf(x) / x - 1),
        in_square(lambda x: x / erf(x)),
        "1e-9",
        Decimal(edge) ** 2,
        degree,
    )


def erf_far_row(degree: int, edge: str, end: str, middle: str) -> Fit:
    """erf(a) = 1 - e^-p(a - middle), relative, from the edge to where the result is 1."""
    return row(
        lambda t: -(1 - erf(t + Decimal(middle))).ln(),
        lambda t: (1 - erf(t + Decimal(middle))) / erf(t + Decimal(middle)),
        Decimal(edge) - Decimal(middle),
        Decimal(end) - Decimal(middle),
        degree,
    )


def erfc_row(degree: int, middle: int, end: str) -> Fit:
    """(1 + 2a) e^(a^2) erfc(a) = p(t), relative, for t = (a - middle)/(a + middle) and a from 0 to
    where erfc(a) is 0."""

    def g(t: Decimal) -> Decimal:
        a = middle * (1 + t) / (1 - t)
        return (1 + 2 * a) * erfcx(a)

    last = (Decimal(end) - middle) / (Decimal(end) + middle)
    return row(g, lambda t: 1 / g(t), "-1", last, degree)


def normal_tail_row(degree: int, end: str) -> Fit:
    """The normal distribution function at -a is 2^p(a), absolute, for a from 0 to the end."""

    def phi(a: Decimal) -> Decimal:
        return (1 - erf(a / Decimal(2).sqrt())) / 2

    return row(lambda a: phi(a).ln() / LN2, lambda a: phi(a) * LN2, "0", end, degree)


def erfinv_row(degree: int, low: str, high: str, far: bool) -> Fit:
    """erfinv(x) = x p(w) with w = -ln(1 - x^2), relative; far: x p(sqrt(w) - 3)."""

    def g(t: Decimal) -> Decimal:
        w = (t + 3) ** 2 if far else t
        x = (1 - (-w).exp()).sqrt()
        return erfcinv((-w).exp() / (1 + x)) / x

    return row(g, lambda t: 1 / g(t), low, high, degree)


def log_gamma_row(degree: int) -> Fit:
    """ln gamma(2 + t) = t p(t), relative, for t in +-1/2."""

    def g(t: Decimal) -> Decimal:
        return log_gamma(2 + t) / t

    return row(g, lambda t: 1 / g(t), "-0.5001", "0.5001", degree)


def stirling_row(degree: int) -> Fit:
    """ln gamma(x) - ((x - 1/2) ln(x) - x + ln(2 pi)/2) = p(1/x^2)/x, for x from 8 on, relative to
    ln gamma(8)."""
    return row(
        in_square(lambda s: stirling(1 / s) / s),
        in_square(lambda s: s / 8),
        "1e-4",
        "0.01563",
        degree,
    )


def digamma_row(degree: int) -> Fit:
    """ln(x) - 1/(2x) - digamma(x) = p(1/x^2)/x^2, for x from 8 on, relative to digamma(8)."""
    return row(
        in_square(lambda s: digamma_rest(1 / s) / s**2), lambda z: z / 2, "1e-4", "0.01563", degree
    )


# name, bits -> the fit
ROWS: dict[tuple[str, int], Callable[[], Fit]] = {
    ("EXP", 32): lambda: exp_row(4),
    ("EXP", 64): lambda: exp_row(10),
    ("EXP2", 32): lambda: exp2_row(5),
    ("EXP2", 64): lambda: exp2_row(11),
    ("LOG", 32): lambda: log_row(8),
    ("LOG2", 32): lambda: log_row(8, base=2),
    ("ATANH", 32): lambda: atanh_row(3, "0.1717"),
    ("ATANH", 64): lambda: atanh_row(7, "0.1717"),
    ("SIN", 32): lambda: sin_row(2),
    ("SIN", 64): lambda: sin_row(5),
    ("COS", 32): lambda: cos_row(2),
    ("COS", 64): lambda: cos_row(5),
    ("ATAN", 32): lambda: atan_row(4),
    ("ATAN", 64): lambda: atan_row(11),
    ("TANH", 32): lambda: tanh_row(3),
    ("TANH", 64): lambda: tanh_row(9),
    ("ERF_NEAR", 32): lambda: erf_near_row(5, "0.92"),
    ("ERF_NEAR", 64): lambda: erf_near_row(10, "0.75"),
    ("ERF_FAR", 32): lambda: erf_far_row(7, "0.92", "4", "0"),
    ("ERF_FAR", 64): lambda: erf_far_row(18, "0.75", "5.95", "1"),
    ("ERFC", 32): lambda: erfc_row(11, 2, "10.2"),
    ("ERFC", 64): lambda: erfc_row(22, 4, "27.3"),
    ("NORMAL_TAIL", 32): lambda: normal_tail_row(8, "5.6"),
    ("ERFINV_NEAR", 32): lambda: erfinv_row(10, "1e-9", "5", far=False),
    ("ERFINV_NEAR", 64): lambda: erfinv_row(7, "1e-9", "5", far=False),
    ("ERFINV_FAR", 32): lambda: erfinv_row(10, "-0.77", "1.1", far=True),
    ("ERFINV_FAR", 64): lambda: erfinv_row(11, "-0.77", "3.1", far=True),
    ("LOG_GAMMA", 32): lambda: log_gamma_row(9),
    ("LOG_GAMMA", 64): lambda: log_gamma_row(20),
    ("STIRLING", 32): lambda: stirling_row(1),
    ("STIRLING", 64): lambda: stirling_row(5),
    ("DIGAMMA", 32): lambda: digamma_row(1),
    ("DIGAMMA", 64): lambda: digamma_row(5),
}


def text(prefix: str = "") -> str:
    """The tables whose names begin with `prefix` (`SIN:` is SIN alone), as the module has them."""
    lines = []
    for name in dict.fromkeys(name for name, _ in ROWS if f"{name}:".startswith(prefix)):
        lines.append(f"{name}: dict[int, tuple[float, ...]] = {{")
        for bits in (bits for known, bits in ROWS if known == name):
            found, error = coefficients(ROWS[name, bits](), bits)
            lines.append(f"    {bits}: (  # 2^{np.log2(error):.1f}")
            for c in found:
                lines.append(f"        {np.float32(c) if bits == 32 else np.float64(c)!s},")
            lines.append("    ),")
        lines.append("}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("prefix", nargs="?", default="", help="how the names of the rows begin")
    print(text(parser.parse_args().prefix), end="")


if __name__ == "__main__":
    main()
