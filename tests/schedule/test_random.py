"""Random graphs: the schedule means what the graph means, whatever the target allows."""

from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import Generator
from running import agree

from treadle.backend.base import Target
from treadle.graph import simplify

SMALL = Target("small", "cpu", buffers=5, ops=4)
WIDE = Target("wide", "gpu", min_parallel=1 << 20)
SEEDS = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_a_schedule_keeps_the_meaning(seed: int) -> None:
    made = Generator(seed)
    roots = made.roots()
    agree(roots, made.inputs, made.assigns(roots), tolerance=1e-6)


@settings(deadline=None, max_examples=100)
@given(SEEDS)
def test_a_schedule_keeps_the_meaning_on_small_targets(seed: int) -> None:
    made = Generator(seed, steps=20)
    roots = made.roots()
    assigns = made.assigns(roots)
    agree(roots, made.inputs, assigns, target=SMALL, tolerance=1e-6)
    agree(roots, made.inputs, assigns, target=WIDE, tolerance=1e-6)


@settings(deadline=None, max_examples=100)
@given(SEEDS)
def test_simplified_graphs_too(seed: int) -> None:
    made = Generator(seed)
    roots = made.roots()
    agree(simplify.simplify(roots), made.inputs, made.assigns(roots), tolerance=1e-6)
