"""Lemma 11: how often no set is empty, of experts that fall into sets independently and uniformly."""

import math


def all_occupied(num_sets: int, num_experts: int) -> float:
    """The probability itself, by inclusion and exclusion of empty sets, in integers."""
    ways = ((-1) ** empty * math.comb(num_sets, empty) * (num_sets - empty) ** num_experts for empty in range(num_sets))
    return sum(ways) / num_sets**num_experts


def product(num_sets: int, num_experts: int) -> float:
    """(1 - (1 - 1/N)^M)^N: what it would be if the sets filled independently of each other.

    An expert in one set is in no other, so this is above the probability. Source: proof of Lemma 11 of `continual`,
    which has it below.
    """
    return (1 - (1 - 1 / num_sets) ** num_experts) ** num_sets


def union(num_sets: int, num_experts: int) -> float:
    """1 - N (1 - 1/N)^M, a lower bound by the union bound. Source: proof of Lemma 11 of `continual`."""
    return 1 - num_sets * (1 - 1 / num_sets) ** num_experts
