"""What samples say: a summary with a confidence interval, and whether two runs differ.

A sample here is the median of a block (see timing.py): calls of one block are not independent, so
treating each as a sample would find differences where there are none. Nothing assumes a normal
distribution, since times have a long tail to one side:

- intervals are percentile bootstraps (Efron 1979): blocks are drawn again, with replacement, with a
  fixed seed;
- a difference is tested by ranks (Mann and Whitney 1947): is a block of one run usually slower than
  one of the other? If there are few ways to choose which blocks belong to which run, all are
  counted (an exact permutation test, with ties as they are), else the normal approximation serves.
  A difference of medians would be a poor statistic to permute: swapping extreme blocks leaves it
  as it is, so five blocks a side could never show anything;
- its size is the ratio of the medians, with an interval, and Cliff's delta (1993): how much oftener
  a block of one run is slower than one of the other, from -1 to 1.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np

CONFIDENCE = 0.95
DRAWS = 2000  # of a bootstrap
EXACT = 20000  # ways to choose that are all counted
SEED = 20231  # of every draw: the same samples give the same figures

Array = np.ndarray


@dataclass(frozen=True)
class Summary:
    """count: samples. median, mean; deviation: the standard deviation (n - 1); low, high: the
    confidence interval of the median, by bootstrap."""

    count: int
    median: float
    mean: float
    deviation: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the width of the interval, relative to the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0

    def as_json(self) -> dict[str, float]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class Difference:
    """How `after` differs from `before`. ratio: of the medians, after / before; low, high: its
    confidence interval. p: the probability of ranks at least as far apart by chance. delta: Cliff's
    delta, above 0 if `after` is mostly slower."""

    ratio: float
    low: float
    high: float
    p: float
    delta: float

    def is_significant(self, level: float = 1 - CONFIDENCE) -> bool:
        """Whether the test finds a difference and the interval does not hold 1."""
        return self.p <= level and (self.low > 1 or self.high < 1)

    def as_json(self) -> dict[str, float]:
        """The fields by name."""
        return asdict(self)


def summarise(samples: Sequence[float], confidence: float = CONFIDENCE) -> Summary:
    """A summary of samples. ValueError if there is none.

    >>> summarise([1.0, 2.0, 9.0]).median
    2.0
    """
    if not len(samples):
        raise ValueError("a summary needs at least one sample")
    values = np.asarray(samples, np.float64)
    low, high = interval([np.median(_drawn(values, 0), axis=1)], lambda m: m, confidence)
    return Summary(
        len(values),
        float(np.median(values)),
        float(values.mean()),
        float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        low,
        high,
    )


def compare(before: Sequence[float], after: Sequence[float]) -> Difference:
    """How two sets of samples differ. ValueError if one is empty.

    >>> round(compare([1.0] * 7, [2.0] * 7).ratio, 3)
    2.0
    """
    if not len(before) or not len(after):
        raise ValueError("a comparison needs at least one sample on each side")
    a, b = np.asarray(before, np.float64), np.asarray(after, np.float64)
    medians = [np.median(_drawn(values, number), axis=1) for number, values in enumerate((a, b))]
    low, high = interval(medians, lambda x, y: y / x)
    return Difference(
        float(np.median(b) / np.median(a)),
        low,
        high,
        rank_test(a, b),
        cliffs_delta(a, b),
    )


def interval(
    drawn: Sequence[Array], of: Callable[..., Array], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """The percentile interval of a figure of bootstrap draws."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(of(*drawn), (tail, 1 - tail))
    return float(low), float(high)


def _drawn(values: Array, stream: int) -> Array:
    """DRAWS samples as large as `values`, with replacement."""
    random = np.random.default_rng((SEED, stream))
    return values[random.integers(0, len(values), (DRAWS, len(values)))]


def rank_test(a: Array, b: Array) -> float:
    """The two-sided probability of the Mann-Whitney test: that the ranks of the two are at least so
    far apart if it means nothing which is which. Equal values have equal ranks."""
    n, m = len(a), len(b)
    _, inverse, ties = np.unique(np.concatenate([a, b]), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[inverse]
    middle = n * (n + m + 1) / 2
    distance = abs(float(ranks[:n].sum()) - middle)
    if math.comb(n + m, n) <= EXACT:
        chosen = np.array(list(combinations(range(n + m), n)))
        return float((np.abs(ranks[chosen].sum(axis=1) - middle) >= distance - 1e-9).mean())
    total = n + m
    correction = float((ties**3 - ties).sum()) / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - correction)
    if variance <= 0:
        return 1.0
    return math.erfc(max(0.0, distance - 0.5) / math.sqrt(2 * variance))


def cliffs_delta(a: Array, b: Array) -> float:
    """P(b > a) - P(b < a)."""
    return float(np.sign(b[:, None] - a).mean())


def mean_ratio(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]],
) -> tuple[float, float, float]:
    """The geometric mean of the ratios of medians, after / before, of several pairs (before,
    after), and its confidence interval. ValueError if there is no pair.

    >>> [round(each, 3) for each in mean_ratio([([1.0] * 5, [2.0] * 5), ([1.0] * 5, [8.0] * 5)])]
    [4.0, 4.0, 4.0]
    """
    if not pairs:
        raise ValueError("a mean needs at least one pair")
    logs = np.zeros(DRAWS)
    for number, pair in enumerate(pairs):
        before, after = (
            np.median(_drawn(np.asarray(values, np.float64), 2 * number + side), axis=1)
            for side, values in enumerate(pair)
        )
        logs += np.log(after / before) / len(pairs)
    low, high = interval([np.exp(logs)], lambda drawn: drawn)
    medians = [statistics.median(after) / statistics.median(before) for before, after in pairs]
    return geometric_mean(medians), low, high


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers."""
    return math.exp(statistics.fmean(map(math.log, values)))
