"""What the statistics of `treadle bench` say of samples whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from treadle.tools.bench.statistics import (
    cliffs_delta,
    compare,
    geometric_mean,
    rank_test,
    summarise,
)


def test_a_summary_has_the_textbook_figures() -> None:
    found = summarise([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert found.count == 8
    assert found.median == 4.5
    assert found.mean == 5.0
    assert found.deviation == pytest.approx(math.sqrt(32 / 7))
    assert found.low <= found.median <= found.high


def test_equal_samples_have_an_interval_of_no_width() -> None:
    found = summarise([3.0] * 5)
    assert (found.low, found.high, found.deviation, found.spread) == (3.0, 3.0, 0.0, 0.0)


def test_one_sample_is_a_summary_and_none_is_an_error() -> None:
    assert summarise([1.5]).deviation == 0.0
    with pytest.raises(ValueError, match="at least one sample"):
        summarise([])
    with pytest.raises(ValueError, match="at least one sample"):
        compare([1.0], [])


def test_the_interval_of_a_median_holds_it_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        found = summarise(list(random.exponential(size=25)))
        held += found.low <= math.log(2) <= found.high
    assert 0.88 <= held / 200 <= 0.99


def test_few_samples_are_ranked_exactly() -> None:
    # of the 20 ways to choose 3 of 6, only this one and its mirror part them
    assert rank_test(np.array([1.0, 2, 3]), np.array([11.0, 12, 13])) == pytest.approx(0.1)
    assert rank_test(np.arange(5.0), np.arange(5.0) + 10) == pytest.approx(2 / 252)
    # rank sums 9 .. of 1 3 5 6, 2 4 7 8: from the table of the exact distribution, U = 5
    assert rank_test(np.array([1.0, 3, 5, 6]), np.array([2.0, 4, 7, 8])) == pytest.approx(34 / 70)


def test_equal_samples_are_not_apart() -> None:
    assert rank_test(np.ones(7), np.ones(7)) == 1.0
    assert rank_test(np.ones(30), np.ones(30)) == 1.0


def test_many_samples_are_ranked_by_the_normal_approximation() -> None:
    # U = 0 of 10 x 10: mean 50, deviation sqrt(100 * 21 / 12), with correction for continuity
    z = 49.5 / math.sqrt(100 * 21 / 12)
    found = rank_test(np.arange(10.0), np.arange(10.0) + 20)
    assert found == pytest.approx(math.erfc(z / math.sqrt(2)))


def test_ties_make_ranks_say_less() -> None:
    a, b = np.array([1.0, 1, 2, 2]), np.array([2.0, 2, 3, 3])
    assert rank_test(a, b) > rank_test(np.array([1.0, 1.1, 2, 2.1]), np.array([2.2, 2.3, 3, 3.1]))


def test_cliffs_delta_counts_pairs() -> None:
    assert cliffs_delta(np.array([1.0, 2]), np.array([3.0, 4])) == 1.0
    assert cliffs_delta(np.array([1.0, 2]), np.array([1.0, 2])) == 0.0
    assert cliffs_delta(np.array([1.0, 4]), np.array([2.0, 3])) == 0.0
    assert cliffs_delta(np.array([3.0]), np.array([1.0, 2, 5])) == pytest.approx(-1 / 3)


@pytest.mark.parametrize(("factor", "significant"), [(1.0, False), (1.5, True), (0.6, True)])
def test_a_difference_is_found_if_it_is_there(factor: float, significant: bool) -> None:
    random = np.random.default_rng(2)
    before = 1 + 0.02 * random.normal(size=9)
    after = factor * (1 + 0.02 * random.normal(size=9))
    found = compare(list(before), list(after))
    assert found.is_significant() is significant
    assert found.ratio == pytest.approx(factor, rel=0.05)
    assert found.low <= found.ratio <= found.high


def test_noise_alone_is_seldom_significant() -> None:
    random = np.random.default_rng(3)
    found = [compare(*random.lognormal(sigma=0.1, size=(2, 7))) for _ in range(60)]
    assert sum(each.is_significant() for each in found) <= 4


def test_the_same_samples_give_the_same_figures() -> None:
    samples = list(np.random.default_rng(4).normal(size=11))
    assert summarise(samples) == summarise(samples)


def test_geometric_mean() -> None:
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
