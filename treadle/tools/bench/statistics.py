"""What samples say: a summary with a confidence interval, and whether two runs differ.

A sample here is the median of a block (see timing.py): calls of one block are not independent, so
treating each as a sample would find differences where there are none. Nothing assumes a normal
distribution, since times have a long tail to one side:

- intervals are percentile bootstraps (Efron 1979): blocks are drawn again, with replacement, with a
  fixed seed;
- a difference is tested by permuting which run a block belongs to (Fisher 1935): exactly if there
  are few ways to do so, else by sampling; and by the Mann-Whitney rank test, which asks whether one
  run is usually faster, not by how much;
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
DRAWS = 2000  # of a bootstrap, and of a permutation test that is too large to be exact
EXACT = 20000  # ways to permute that are all tried
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
    confidence interval. permutation: the probability of a difference of medians at least as large
    by chance; rank: the same of the Mann-Whitney test. delta: Cliff's delta, above 0 if `after` is
    mostly slower."""

    ratio: float
    low: float
    high: float
    permutation: float
    rank: float
    delta: float

    def is_significant(self, level: float = 1 - CONFIDENCE) -> bool:
        """Whether both tests find a difference and the interval does not hold 1."""
        outside = self.low > 1 or self.high < 1
        return outside and self.permutation <= level and self.rank <= level

    def as_json(self) -> dict[str, float]:
        """The fields by name."""
        return asdict(self)


def summarise(samples: Sequence[float], confidence: float = CONFIDENCE) -> Summary:
    """A summary of samples. ValueError if there is none.

    >>> summarise([1.0, 2.0, 9.0]).median
    2.0
    """
    if not samples:
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
    if not before or not after:
        raise ValueError("a comparison needs at least one sample on each side")
    a, b = np.asarray(before, np.float64), np.asarray(after, np.float64)
    medians = [np.median(_drawn(values, number), axis=1) for number, values in enumerate((a, b))]
    low, high = interval(medians, lambda x, y: y / x)
    return Difference(
        float(np.median(b) / np.median(a)),
        low,
        high,
        permutation_test(a, b),
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


def permutation_test(a: Array, b: Array) -> float:
    """The probability that medians differ at least so much if the labels mean nothing."""
    pooled = np.concatenate([a, b])
    observed = abs(float(np.median(b) - np.median(a)))
    ways = math.comb(len(pooled), len(a))
    if ways <= EXACT:
        chosen = np.array(list(combinations(range(len(pooled)), len(a))))
    else:
        random = np.random.default_rng((SEED, 2))
        shuffled = random.permuted(np.tile(np.arange(len(pooled)), (DRAWS, 1)), axis=1)
        chosen = shuffled[:, : len(a)]
    is_first = np.zeros((len(chosen), len(pooled)), bool)
    np.put_along_axis(is_first, chosen, True, axis=1)
    everyone = np.broadcast_to(pooled, is_first.shape)
    first = np.median(everyone[is_first].reshape(len(chosen), -1), axis=1)
    second = np.median(everyone[~is_first].reshape(len(chosen), -1), axis=1)
    slack = 1e-12 * max(1.0, observed)
    count = int((np.abs(second - first) >= observed - slack).sum())
    if ways <= EXACT:
        return count / ways
    return (count + 1) / (len(chosen) + 1)  # the observed labelling is one of them


def rank_test(a: Array, b: Array) -> float:
    """The two-sided probability of the Mann-Whitney test: normal approximation with corrections for
    ties and continuity (Mann and Whitney 1947)."""
    n, m = len(a), len(b)
    greater = (b[:, None] > a).sum() + 0.5 * (b[:, None] == a).sum()
    _, ties = np.unique(np.concatenate([a, b]), return_counts=True)
    total = n + m
    correction = float((ties**3 - ties).sum()) / (total * (total - 1)) if total > 1 else 0.0
    variance = n * m / 12 * (total + 1 - correction)
    if variance <= 0:
        return 1.0
    distance = max(0.0, abs(float(greater) - n * m / 2) - 0.5)
    return math.erfc(distance / math.sqrt(variance) / math.sqrt(2))


def cliffs_delta(a: Array, b: Array) -> float:
    """P(b > a) - P(b < a)."""
    return float(np.sign(b[:, None] - a).mean())


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers."""
    return math.exp(statistics.fmean(map(math.log, values)))
