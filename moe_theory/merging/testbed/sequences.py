"""Sequences of eight symbols out of four, and eight rules for their label: other questions about the same inputs."""

import functools

import numpy as np

from moe_theory.merging.testbed.families import Family

LENGTH = 8
SYMBOLS = 4  # as many as there are classes
RULES = ("majority", "minority", "sum", "ends", "mirror", "ascents", "middle", "alternating sum")
_SIZES = (8192, 1024)  # sequences to train on and for validation, of 4^8


def base_task(rule: int, is_validation: bool) -> tuple[np.ndarray, np.ndarray]:
    """Sequences as one-hot tokens, and their labels by one of the `RULES`."""
    symbols = _sequences()[_SIZES[0] :] if is_validation else _sequences()[: _SIZES[0]]
    return np.eye(SYMBOLS)[symbols], label(symbols, rule)


def label(symbols: np.ndarray, rule: int) -> np.ndarray:
    """Labels 0 to 3 of sequences (n, 8) of symbols 0 to 3.

    The most frequent symbol (the smallest of several), the rarest, the sum, first plus last, the number of positions
    whose symbol is also at the mirrored position, the number of ascents, fourth minus fifth, or the sum with
    alternating signs: each modulo 4.
    """
    counts = np.stack([np.sum(symbols == symbol, axis=1) for symbol in range(SYMBOLS)], axis=1)
    signs = 1 - 2 * (np.arange(LENGTH) % 2)
    value = (
        lambda: np.argmax(counts, axis=1),
        lambda: np.argmin(counts, axis=1),
        lambda: np.sum(symbols, axis=1),
        lambda: symbols[:, 0] + symbols[:, -1],
        lambda: np.sum(symbols == symbols[:, ::-1], axis=1) // 2,
        lambda: np.sum(np.diff(symbols, axis=1) > 0, axis=1),
        lambda: symbols[:, 3] - symbols[:, 4],
        lambda: symbols @ signs,
    )[rule]()
    return value % SYMBOLS


@functools.lru_cache
def _sequences() -> np.ndarray:
    """Different sequences in a random order, the same in every run."""
    codes = np.random.default_rng(0).permutation(SYMBOLS**LENGTH)[: sum(_SIZES)]
    return codes[:, None] // SYMBOLS ** np.arange(LENGTH) % SYMBOLS


FAMILY = Family(RULES, SYMBOLS, LENGTH, SYMBOLS, base_task)
