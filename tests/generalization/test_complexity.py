"""Complexities against loops over signs, linear programs and Monte Carlo; margins are for a failure in 1e7."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from moe_theory.core.errors import UnknownNameError
from moe_theory.generalization import complexity, corrected, theory
from tests.continual.cases import loop_over, refuse

from .formulas import natarajan_dimension

ERRORS = 5.5  # standard errors that many draws may be off by


def all_signs(num_samples):
    return list(itertools.product((-1, 1), repeat=num_samples))


@loop_over("num_samples", range(1, 12))
def test_constants_are_the_mean_length_of_a_walk(num_samples):
    mean = np.mean([abs(sum(signs)) / num_samples for signs in all_signs(num_samples)])
    assert complexity.constants(num_samples) == pytest.approx(mean, rel=1e-14)


@loop_over("num_samples", [150, 199, 200, 201, 1001, 5000])
def test_constants_of_many_samples_are_whole_number_arithmetic(num_samples):
    half = -(-num_samples // 2)
    expected = 2 * half * math.comb(2 * half, half) / 4**half / num_samples
    assert complexity.constants(num_samples) == pytest.approx(expected, rel=1e-14)


@loop_over("num_samples", [10**6, 10**9 + 1, 10**12])
def test_constants_keep_their_digits_at_any_size(num_samples):
    """Gamma(n + 1/2) / Gamma(n) lies between the roots of n - 1/4 and n - 1/4 + 1/(32n) + O(1/n^2)."""
    half = -(-num_samples // 2)
    low, high = (2 * math.sqrt((half - 0.25 + more / half) / math.pi) / num_samples for more in (0, 1 / 16))
    assert low * (1 - 1e-15) <= complexity.constants(num_samples) <= high * (1 + 1e-15)


def test_a_sample_of_nothing_has_no_complexity():
    refuse("num_samples", complexity.constants, 0)


def test_lemma_3_is_above_what_networks_of_its_class_reach():
    """One hidden unit along +-sum_i sigma_i x_i has the norms allowed, and its best sign is a lower estimate."""
    generator = np.random.default_rng(8)
    first, second = generator.normal(size=(5, 3)), generator.normal(size=5)
    features = generator.normal(size=(40, 3))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    norms, rows = np.array([np.linalg.norm(first, 2), np.linalg.norm(second)]), np.linalg.norm(first, axis=1).sum()
    scale = np.prod(norms)

    def lower(signs):
        directions = signs @ features
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        hidden = np.stack([np.maximum(side * directions @ features.T, 0) for side in (1, -1)])
        return scale * np.max(np.abs(np.sum(hidden * signs, axis=2)), axis=0) / 40

    reached = lower(generator.choice([-1.0, 1.0], (2000, 40)))
    most = np.mean(reached) + ERRORS * np.std(reached) / math.sqrt(len(reached))
    bound = theory.lemma_3(40, 1.0, norms, [rows, norms[1]])
    assert bound == pytest.approx(scale / math.sqrt(40) * ((rows / norms[0]) ** (2 / 3) + 1) ** 1.5, rel=1e-12)
    assert 0.2 * scale / math.sqrt(40) < most < bound


Label = tuple[tuple[int, ...], np.ndarray | None]  # the experts active, and their log gates where these are asked for


def constraints(point, label, num_experts):
    """Rows (A, b, A_eq, b_eq) in the T d entries of the router's matrix.

    Ties go to the lower index; where gates are asked for, so that logits have a scale, to any.
    """
    active, log_gates = label

    def difference(low, high):
        row = np.zeros((num_experts, len(point)))
        row[low], row[high] = point, -point
        return row.ravel()

    upper, limits, equal, values = [], [], [], []
    for high in active:
        for low in set(range(num_experts)) - set(active):
            upper.append(difference(low, high))
            limits.append(0.0 if high < low or log_gates is not None else -1.0)
    if log_gates is not None:
        for place in range(1, len(active)):
            equal.append(difference(active[place], active[0]))
            values.append(log_gates[place] - log_gates[0])
    return upper, limits, equal, values


def is_realisable(points, labels, num_experts):
    """Whether some linear router gives the first points these labels."""
    rows = [constraints(point, label, num_experts) for point, label in zip(points, labels, strict=False)]
    upper, limits, equal, values = (list(itertools.chain.from_iterable(parts)) for parts in zip(*rows, strict=True))
    size = num_experts * points.shape[1]
    found = optimize.linprog(
        np.zeros(size), upper or None, limits or None, equal or None, values or None, bounds=(None, None)
    )
    assert found.status in (0, 2), found.message
    return found.status == 0


def mask_labelings(points, num_experts, num_active):
    """Every labeling of the points by masks that some linear router gives them, (F, n) numbers of masks."""
    masks = list(itertools.combinations(range(num_experts), num_active))

    def extend(chosen):
        if len(chosen) == len(points):
            yield chosen
            return
        for mask in range(len(masks)):
            longer = (*chosen, mask)
            if is_realisable(points, [(masks[number], None) for number in longer], num_experts):
                yield from extend(longer)

    return np.array(list(extend(())))


def gates_of(router, point, num_active):
    """Eq. (5) for one input, in a loop."""
    logits = [float(row @ point) for row in router]
    active = sorted(range(len(logits)), key=lambda expert: (-logits[expert], expert))[:num_active]
    total = sum(math.exp(logits[expert]) for expert in active)
    return np.array([math.exp(logits[e]) / total if e in active else 0.0 for e in range(len(logits))])


@loop_over(
    ("num_experts", "num_active", "num_features"),
    [(2, 1, 1), (2, 1, 2), (2, 1, 3), (3, 1, 1), (3, 2, 1), (3, 1, 2), (3, 2, 2), (4, 2, 1)],
)
def test_masks_of_linear_routers_have_no_more_than_the_bound(num_experts, num_active, num_features):
    bound = complexity.natarajan("linear", num_experts, num_active, num_features)
    points = np.random.default_rng(num_features).normal(size=(int(bound) + 1, num_features))
    labelings = mask_labelings(points, num_experts, num_active)
    dimension = natarajan_dimension(labelings)
    assert dimension <= bound
    assert dimension == bound if num_experts == 2 else dimension >= num_features
    count = math.log(len(labelings))
    assert count <= corrected.log_mask_patterns(num_experts, num_active, len(points), num_features)
    assert count <= theory.lemma_6(len(points), math.comb(num_experts, num_active), bound)


def test_labelings_from_programs_are_those_of_routers_drawn():
    """Ties apart, which only routers of a set of measure 0 have, routers drawn at random find them all."""
    generator = np.random.default_rng(2)
    points = generator.normal(size=(3, 2))
    found = {tuple(row) for row in mask_labelings(points, 3, 2)}
    masks = list(itertools.combinations(range(3), 2))
    drawn = set()
    for router in generator.normal(size=(4000, 3, 2)):
        gates = [gates_of(router, point, 2) for point in points]
        drawn.add(tuple(masks.index(tuple(np.flatnonzero(row).tolist())) for row in gates))
    assert drawn <= found
    assert len(drawn) >= 0.9 * len(found)


def test_a_constant_feature_more_is_a_point_more():
    """Routers with an offset exceed the bound for routers without: the bound is no larger than it must be at T = 2."""
    points = np.column_stack([np.random.default_rng(3).normal(size=(4, 2)), np.ones(4)])
    dimension = natarajan_dimension(mask_labelings(points, 2, 1))
    assert dimension == complexity.natarajan("linear", 2, 1, 3) > complexity.natarajan("linear", 2, 1, 2)


@loop_over(("num_experts", "num_features"), [(2, 2), (3, 2), (3, 4)])
def test_dense_routers_shatter_as_many_points_as_there_are_features(num_experts, num_features):
    generator = np.random.default_rng(num_experts)
    bound = complexity.natarajan("linear", num_experts, num_experts, num_features, "router-dimension")
    assert bound == num_features
    points = generator.normal(size=(num_features, num_features))
    logits = generator.normal(size=(2, num_features, num_experts))  # of f_0 and f_1 at each point
    for choice in itertools.product((0, 1), repeat=num_features):
        wanted = np.array([logits[which, place] for place, which in enumerate(choice)])
        router = np.linalg.solve(points, wanted).T
        for point, target in zip(points, wanted, strict=True):
            softmax = np.exp(target) / sum(np.exp(target))
            np.testing.assert_allclose(gates_of(router, point, num_experts), softmax, rtol=1e-8)


@loop_over(("num_experts", "num_features"), [(2, 2), (3, 2), (3, 4)])
def test_dense_routers_shatter_no_point_more(num_experts, num_features):
    """Log ratios at n points are X U': those of a router that follows f_1 at one point alone are out of X's range."""
    generator = np.random.default_rng(num_experts)
    points = generator.normal(size=(num_features + 1, num_features))
    complement = np.linalg.svd(points.T)[2][-1]  # combination of the points that is 0
    for _ in range(50):
        first, second = generator.normal(size=(2, num_experts, num_features))
        ratios = [points @ (router[1:] - router[0]).T for router in (first, second)]
        mixed = ratios[0].copy()
        place = generator.integers(num_features + 1)
        mixed[place] = ratios[1][place]
        np.testing.assert_allclose(complement @ ratios[0], 0, atol=1e-12)
        assert np.max(np.abs(complement @ mixed)) > 1e-6


SPARSE = [(3, 2, 2), (4, 2, 2), (4, 3, 2), (3, 2, 3), (3, 3, 3)]


@loop_over(("num_experts", "num_active", "num_features"), SPARSE)
def test_whole_routers_shatter_what_the_construction_says(num_experts, num_active, num_features):
    """Some experts are always active and one other in each of T - k + 1 cones: (T - k + 1) d points, all at k = 2."""
    generator = np.random.default_rng(num_active)
    others = range(num_active - 1, num_experts)
    router = np.zeros((num_experts, num_features))
    slopes = np.arange(len(others), dtype=float)
    router[: num_active - 1, 0] = 2 + (slopes[-1] + 1) ** 2
    router[others, 0], router[others, 1] = -(slopes**2), slopes  # tangents of a parabola, each highest around 2 slope
    points, changes = [], []  # change i adds 1 to the logit of the one that is highest at point i, there alone
    for expert, slope in zip(others, slopes, strict=True):
        group = generator.uniform(-0.5, 0.5, (num_features, num_features))
        group[:, 0], group[:, 1] = 1, group[:, 1] + 2 * slope
        points.extend(group)
        for row in np.linalg.inv(group).T:
            change = np.zeros_like(router)
            change[expert] = row
            changes.append(change)
    bound = complexity.natarajan("linear", num_experts, num_active, num_features, "router-dimension")
    assert len(points) == (num_experts - num_active + 1) * num_features <= bound
    assert len(points) == bound or 2 < num_active < num_experts

    def gates(choice):
        moved = router + 1e-3 * np.tensordot(choice, changes, 1)
        return np.array([gates_of(moved, point, num_active) for point in points])

    first, second = gates((0,) * len(points)), gates((1,) * len(points))
    assert np.all(np.max(np.abs(first - second), axis=1) > 1e-9)
    for choice in itertools.product((0, 1), repeat=len(points)):
        np.testing.assert_allclose(
            gates(choice), np.where(np.array(choice)[:, None], second, first), rtol=1e-11, atol=0
        )


def labels_of_two(seed, num_points):
    """Points, and the labels that two close 2-of-3 routers give them; some are where a mask is about to change."""
    generator = np.random.default_rng(seed)
    routers = generator.normal(size=(3, 2)) + np.stack([np.zeros((3, 2)), 0.05 * generator.normal(size=(3, 2))])
    points = generator.normal(size=(num_points, 2))
    for point in points[: generator.integers(num_points)]:
        least, middle = np.argsort(routers[0] @ point)[:2]
        across = routers[0][least] - routers[0][middle]
        point -= generator.uniform(0.975, 1.025) * (point @ across) / (across @ across) * across

    def label(router, point):
        gates = gates_of(router, point, 2)
        active = tuple(np.flatnonzero(gates).tolist())
        return active, np.log(gates[list(active)])

    return points, [(label(routers[0], point), label(routers[1], point)) for point in points]


def is_shattered(points, labels):
    choices = itertools.product((0, 1), repeat=len(points))
    return all(
        is_realisable(points, [labels[place][which] for place, which in enumerate(choice)], 3) for choice in choices
    )


def test_sparse_whole_routers_shatter_no_more_than_the_bound():
    """d = 2, k = 2 of T = 3: up to D = 4 points are shattered, of five none; some by their masks, others by gates."""
    bound = int(complexity.natarajan("linear", 3, 2, 2, "router-dimension"))
    shattered: dict[int, list[bool]] = {}  # by the number of points: for each set, whether masks differ anywhere in it
    for num_points, num_sets in ((bound - 1, 20), (bound, 20), (bound + 1, 40)):
        sets = [labels_of_two(seed, num_points) for seed in range(num_sets)]
        shattered[num_points] = [
            any(first[0] != second[0] for first, second in labels)
            for points, labels in sets
            if is_shattered(points, labels)
        ]
    assert any(shattered[bound - 1])
    assert shattered[bound]
    assert not shattered[bound + 1]


NAMES = ("mask-dimension", "router-dimension")


@loop_over("reading", NAMES)
@loop_over("router", ["fixed", "linear", "network", "free"])
def test_one_expert_shatters_nothing(router, reading):
    assert complexity.natarajan(router, 1, 1, 5, reading) == 0


def test_one_mask_shatters_nothing_and_one_router_neither():
    assert [complexity.natarajan(router, 3, 3, 5, num_parameters=9) for router in ("linear", "network", "free")] == [
        0
    ] * 3
    assert [complexity.natarajan("fixed", 3, 2, 5, reading) for reading in NAMES] == [0, 0]


def test_networks_have_lemma_2():
    for active, reading in ((1, NAMES[0]), (4, NAMES[1])):
        assert complexity.natarajan("network", 4, active, 5, reading, num_parameters=30) == 4 * 30**2


def test_a_reading_that_the_class_does_not_have_is_one_clear_line():
    for argument, sizes in (
        ("reading", ("free", 3, 2, 5)),
        ("reading", ("free", 3, 3, 5, "router-dimension")),
        ("num_parameters", ("network", 3, 2, 5)),  # without a number of parameters
        ("num_parameters", ("network", 3, 2, 5, "mask-dimension", 0)),
        ("num_active", ("linear", 2, 3, 5)),
        ("num_active", ("linear", 2, 0, 5)),
        ("num_features", ("linear", 2, 1, 0)),
    ):
        refuse(argument, complexity.natarajan, *sizes)
    nearest = refuse("router", complexity.natarajan, "linaer", 2, 1, 2, kind=UnknownNameError)
    assert "Did you mean 'linear'" in nearest
    refuse("reading", complexity.natarajan, "free", 2, 1, 2, "mask", kind=UnknownNameError)
