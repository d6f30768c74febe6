"""Instances of one round against brute force: every expert, every label, every cut, and exact laws of small samples.

Every statistical test fails a true law with probability below LEVEL, and its keys are fixed.
"""

import itertools
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

import moe_theory as mt
from moe_theory.core.errors import InvalidParamsError
from moe_theory.core.random import replicate_keys, step_key
from moe_theory.generalization import complexity, instances
from moe_theory.generalization.model import Dims, Params

LEVEL = 1e-7
ROOT = mt.root_key(11)
NUM_DRAWS = 6016
BLOCK = 64  # replicates of one program, which serves every test of a system
DIMS = Dims(5, 2, 40)
TOLERANCE = 1e-6  # of float32


def observed(system: Any, params: Params, replicates: int = BLOCK) -> Any:
    """The Info of every replicate, in float64."""
    info = mt.simulate_batch(system, ROOT, replicates, params, 1)[1]
    return jax.tree.map(lambda leaf: np.asarray(leaf[0], float), jax.device_get(info))


def round_key(replicate: int) -> Any:
    return step_key(replicate_keys(ROOT, jnp.asarray([replicate]))[0], jnp.asarray(1))


def ramp(labels: Any, outputs: Any) -> np.ndarray:
    return np.clip((1 - np.asarray(labels) * np.asarray(outputs)) / 2, 0, 1)


def brute_force(cells: np.ndarray, labels: np.ndarray, num_experts: int) -> dict[str, float]:
    """What `Cells` has, from the risks of all 2^T functions; cells and labels are (2, m), the ghost's second."""
    values: dict[str, list[float]] = {name: [] for name in ("difference", "paired", "mean", "memory")}
    for experts in itertools.product([-1, 1], repeat=num_experts):
        outputs = np.asarray(experts)[cells]
        risks = ramp(labels, outputs).mean(axis=1)
        # Labels all +1: the risk over x is the share of cells whose expert is -1.
        plain = ramp(1, outputs[0]).mean(), np.mean(np.asarray(experts) < 0)
        values["difference"].append(risks[0] - 0.5)
        values["paired"].append(risks[0] - risks[1])
        values["mean"].append(np.mean(labels[0] * outputs[0]))
        values["memory"].append(plain[1] - plain[0])
    return {
        "gap": np.max(np.abs(values["difference"])),
        "one_sided": max(values["difference"]),
        "paired_gap": max(values["paired"]),
        "paired_absolute": np.max(np.abs(values["paired"])),
        "masked": max(values["mean"]),
        "lone": max(np.mean(labels[0]), -np.mean(labels[0])),
        "memorised": max(values["memory"]),
    }


@pytest.mark.parametrize(("num_experts", "num_samples"), [(1, 5), (3, 1), (3, 6), (5, 4)])
def test_cells_have_the_suprema_over_all_experts(num_experts: int, num_samples: int) -> None:
    """Would catch a majority, a half or a count that is wrong, padding that counts, and cells that leave the range."""
    info = observed(instances.cells(DIMS), Params(num_experts=num_experts, num_samples=num_samples))
    for replicate in range(12):
        drawn = instances.draw_cells(round_key(replicate), DIMS.max_samples)
        inputs, labels = (np.asarray(part)[:num_samples].T for part in drawn)
        expected = brute_force(np.floor(inputs * num_experts).astype(int), labels, num_experts)
        for name, value in expected.items():
            assert abs(getattr(info, name)[replicate] - value) < TOLERANCE, name


def test_cells_have_the_law_of_all_inputs_and_labels() -> None:
    """Would catch labels or cells that are unfair, and a ghost sample that is not independent of the sample."""
    num_experts, num_samples = 2, 2
    names = ("gap", "paired_gap", "lone", "memorised")
    sample = list(itertools.product(range(num_experts), [-1, 1]))
    exact: Counter[tuple[float, ...]] = Counter()
    for drawn in itertools.product(sample, repeat=2 * num_samples):
        cells, labels = np.asarray(drawn).reshape(2, num_samples, 2).transpose(2, 0, 1)
        values = brute_force(cells, labels, num_experts)
        exact[tuple(round(values[name], 3) for name in names)] += 1
    info = observed(instances.cells(DIMS), Params(num_experts=num_experts, num_samples=num_samples), NUM_DRAWS)
    found = Counter(zip(*(np.round(getattr(info, name), 3).tolist() for name in names), strict=True))
    assert found.keys() <= exact.keys()
    expected = np.asarray(list(exact.values())) * NUM_DRAWS / len(sample) ** (2 * num_samples)
    assert expected.min() > 15, "too few draws for a chi-square"
    assert stats.chisquare([found[key] for key in exact], expected).pvalue > LEVEL


def test_means_of_cells_are_rademacher_complexities() -> None:
    """Would catch `lone` and `masked` in place of each other, or either scaled."""
    num_experts, num_samples = 3, 40
    params = Params(num_experts=num_experts, num_samples=num_samples)
    info = observed(instances.cells(DIMS), params, NUM_DRAWS)
    # A cell has n_j ~ Binomial(m, 1/T) inputs, and E|S_j| of so many signs.
    counts = np.arange(1, num_samples + 1)
    mean_sum = np.asarray([count * complexity.constants(int(count)) for count in counts])
    masked = num_experts * stats.binom.pmf(counts, num_samples, 1 / num_experts) @ mean_sum / num_samples
    limit = stats.norm.isf(LEVEL / 4) / np.sqrt(NUM_DRAWS)
    for values, mean in ((info.lone, complexity.constants(num_samples)), (info.masked, masked)):
        assert abs(values.mean() - mean) < limit * values.std()


@pytest.mark.parametrize("system", [instances.cells, instances.learned_cells])
def test_padding_and_batching_change_no_draw(system: Any) -> None:
    """Would catch draws that depend on `Dims`, and arrays beyond m or T that take part."""
    params = Params(num_experts=4, num_samples=40)
    tight = observed(system(DIMS), params)
    info = mt.simulate(system(Dims(9, 2, 83)), replicate_keys(ROOT, jnp.asarray([7]))[0], params, 1)[1]
    jax.tree.map(lambda batch, lone: np.testing.assert_allclose(batch[7], lone[0], rtol=1e-6), tight, info)


def best_in_ball(labels: np.ndarray, squared_radius: float) -> float:
    """The largest sum of 1 - 2 loss over outputs |f|^2 <= B^2, by a solver of the convex problem.

    Loss is taken as max(0, (1 - y f)/2), at least the ramp's. It is more only where y f < -1, which no best f has: an
    output of 0 there costs less norm and less loss.
    """
    count = len(labels)
    found = optimize.minimize(
        lambda point: -point[:count].sum(),  # margins t <= 1, outputs f
        np.full(2 * count, 0.1 * np.sqrt(squared_radius / count)) * np.append(np.ones(count), labels),
        method="SLSQP",
        bounds=[(-5, 1)] * count + [(-5, 5)] * count,
        constraints=[
            {"type": "ineq", "fun": lambda point: labels * point[count:] - point[:count]},
            {"type": "ineq", "fun": lambda point: squared_radius - point[count:] @ point[count:]},
        ],
    )
    assert found.success
    return -found.fun


def test_the_best_outputs_in_a_ball_are_those_of_a_convex_solver() -> None:
    """Would catch a margin without its cap of 1, B in place of its square, or a gap that depends on labels."""
    for count in range(1, 5):
        for labels in itertools.product([-1.0, 1.0], repeat=count):
            for squared_radius in (0.5, 2.0, 3.0):
                gap = instances.ball_gap(jnp.asarray([float(count)]), squared_radius, float(count))
                assert abs(best_in_ball(np.asarray(labels), squared_radius) / (2 * count) - gap) < 1e-5


@pytest.mark.parametrize(("num_experts", "num_samples"), [(3, 6), (3, 7), (4, 6), (5, 3), (1, 4)])
def test_learned_cells_cut_a_sample_evenly(num_experts: int, num_samples: int) -> None:
    """Would catch parts of wrong sizes, and a gap above what all T-part cuts of the sample reach."""
    squared_radius = num_samples / num_experts
    best = {0: 0.0} | {size: best_in_ball(np.ones(size), squared_radius) for size in range(1, num_samples + 1)}
    cuts = itertools.combinations_with_replacement(range(num_samples + 1), num_experts - 1)
    gaps = {}
    for cut in cuts:
        sizes = tuple(sorted(np.diff([0, *cut, num_samples])))
        gaps[sizes] = sum(best[size] for size in sizes) / (2 * num_samples)
    even = tuple(sorted(len(part) for part in np.array_split(np.arange(num_samples), num_experts)))
    info = observed(instances.learned_cells(DIMS), Params(num_experts=num_experts, num_samples=num_samples))
    np.testing.assert_allclose(info.gap, gaps[even], atol=2e-5)
    if num_samples % num_experts == 0:
        assert abs(gaps[even] - 0.5) < 1e-5
        assert max(gaps.values()) < gaps[even] + 1e-5


def test_dense_outputs_fit_every_labelling() -> None:
    """Would catch an output of the wrong sign, losses of another scale, and logits too close."""
    limit = np.tanh(instances.DENSE_LOGIT / 2)  # the gates' outputs for logits that are so far apart at most
    for labels in itertools.product([-1.0, 1.0], repeat=3):
        gap = 0.5 - np.mean(instances.dense_losses(jnp.asarray(labels)))
        every = itertools.product([-limit, 0, limit], repeat=3)
        assert abs(gap - max(abs(0.5 - ramp(labels, outputs).mean()) for outputs in every)) < TOLERANCE
    for num_experts in (2, 5):
        params = Params(num_experts=num_experts, num_active=num_experts, num_samples=7)
        gaps = observed(instances.dense(DIMS), params).gap
        assert np.all(gaps <= 0.5)
        assert np.all(gaps > 0.5 - 1e-6)


def test_a_coin_is_fair_and_its_ghost_another() -> None:
    """Would catch an unfair coin, samples that are shared, and members beyond m that count."""
    info = observed(instances.coin(DIMS), Params(num_experts=1, num_samples=3), NUM_DRAWS)
    pairs = np.rint(3 * info.risk) * 4 + np.rint(3 * info.ghost)
    law = stats.binom.pmf(np.arange(4), 3, 0.5)
    counts = np.bincount(pairs.astype(int), minlength=16)
    assert stats.chisquare(counts, NUM_DRAWS * np.outer(law, law).ravel()).pvalue > LEVEL


@pytest.mark.parametrize(
    ("system", "params", "named"),
    [
        (instances.cells, Params(num_experts=4, num_active=2, num_samples=5), "num_active"),
        (instances.learned_cells, Params(num_experts=4, num_active=2, num_samples=5), "num_active"),
        (instances.dense, Params(num_experts=4, num_active=2, num_samples=5), "num_active"),
        (instances.dense, Params(num_experts=1, num_active=1, num_samples=5), "num_active"),
        (instances.cells, Params(num_experts=5, num_samples=5), "num_experts"),
        (instances.coin, Params(num_experts=1, num_samples=6), "num_samples"),
        (instances.coin, Params(num_experts=1, num_samples=0), "num_samples"),
    ],
)
def test_params_that_do_not_fit_are_named(system: Any, params: Params, named: str) -> None:
    """Would catch a system that runs on them, or an error that says less than a line or more."""
    with pytest.raises(InvalidParamsError, match=f"^{named}=") as error:
        mt.simulate_batch(system(Dims(4, 1, 5)), ROOT, 2, params, 1)
    assert "\n" not in str(error.value)
