"""How a long transform is made of short ones: the factors of its length.

A transform of length r * m is m transforms of length r, a turn of every element, and r transforms
of length m (Cooley and Tukey, Math. Comp. 19, 1965). The short ones are products with an r x r
matrix: their work grows with r, while every step reads and writes the whole signal once.
"""

from __future__ import annotations

from functools import lru_cache

LARGEST = 64  # the longest transform that is chosen to be one matrix product
DIRECT = 128  # up to here a prime length is a matrix product; beyond it is a convolution
STEP = 16  # what a step costs beside its product, in units of a product's work per unit of length


def prime_factors(n: int) -> list[int]:
    """The primes whose product is n >= 1, in ascending order."""
    found = []
    prime = 2
    while prime * prime <= n:
        while n % prime == 0:
            found.append(prime)
            n //= prime
        prime += 1
    return [*found, n] if n > 1 else found


@lru_cache(maxsize=256)
def radices(n: int) -> tuple[int, ...]:
    """Lengths whose product is n, in the order of their steps: those that cost least in sum.

    >>> radices(4096), radices(1000), radices(2 * 1009)
    ((16, 16, 16), (10, 10, 10), (2, 1009))
    """
    primes = prime_factors(n)
    smooth = n
    for prime in primes:
        smooth //= prime if prime > LARGEST else 1
    best: dict[int, tuple[int, tuple[int, ...]]] = {1: (0, ())}
    # ascending, so that what is left of a divisor is known before the divisor is
    for divisor in _divisors(smooth):
        choices = [
            (best[divisor // radix][0] + STEP + radix, (*best[divisor // radix][1], radix))
            for radix in range(2, min(divisor, LARGEST) + 1)
            if divisor % radix == 0
        ]
        if choices:
            best[divisor] = min(choices, key=lambda choice: (choice[0], len(choice[1])))
    large = [prime for prime in primes if prime > LARGEST]
    return (*sorted(best[smooth][1], reverse=True), *large) or (1,)


def _divisors(n: int) -> list[int]:
    """All divisors, in ascending order."""
    found = {1}
    for prime in prime_factors(n):
        found |= {prime * each for each in found}
    return sorted(found)


@lru_cache(maxsize=256)
def roomy(least: int) -> int:
    """The length of at least `least` whose transform costs least: a power of two, perhaps times 3,
    5 or 9."""
    choices = []
    for odd in (1, 3, 5, 9):
        length = odd
        while length < least:
            length *= 2
        choices.append((length * sum([STEP + radix for radix in radices(length)]), length))
    return min(choices)[1]
