"""Merging for a stream of one's own: catches slots that are lost or served twice, and streams that are misread."""

from collections.abc import Iterator

import numpy as np
import pytest

from moe_theory import merging
from moe_theory.core.errors import InvalidValueError, MoeTheoryError
from moe_theory.merging import Feedback, Params, online, policies
from moe_theory.merging.online import checked, merge_online


class Corner:
    """A stream of two tasks whose reward is the weight of one expert; it remembers what it was asked."""

    num_experts, num_tasks = 3, 2

    def __init__(self, num_slots: int) -> None:
        self.num_slots, self.asked = num_slots, []

    def slots(self) -> Iterator[int]:
        return iter(range(self.num_slots))

    def serve(self, slot: int, weights: np.ndarray) -> Feedback:
        self.asked.append((slot, weights))
        return Feedback(np.array([weights[1], 0.5]), np.array([3, 0 if slot % 2 else 1]))


def test_slots_are_served_once_and_in_order():
    stream = Corner(12)
    rows = list(merge_online(stream, policies.UNIFORM, 9))
    assert [slot for slot, _ in stream.asked] == list(range(9))
    assert [row.slot for row in rows] == list(range(1, 10))
    for row, (slot, weights) in zip(rows, stream.asked, strict=True):
        np.testing.assert_allclose(row.weights, weights, atol=1e-6)
        assert weights.sum() == pytest.approx(1)
        counts = np.array([3, 0 if slot % 2 else 1])
        assert row.reward == pytest.approx((3 * weights[1] + 0.5 * counts[1]) / counts.sum())
    assert rows[-1].mean_reward == pytest.approx(np.mean([row.reward for row in rows]))
    # The monitor knows a slot's counts from the next one on.
    np.testing.assert_allclose(rows[0].estimated_mix, 0.5)
    np.testing.assert_allclose(rows[1].estimated_mix, 0.9 * 0.5 + 0.1 * np.array([0.75, 0.25]), atol=1e-6)


def test_a_stream_that_ends_early_ends_the_run():
    assert len(list(merge_online(Corner(4), policies.AVERAGE, 100))) == 4


def test_a_policy_learns_from_what_is_served():
    rows = list(merge_online(Corner(60), policies.BEST_EXPERT, 60))
    assert [int(np.argmax(row.weights)) for row in rows[:3]] == [0, 1, 2]
    assert np.mean([row.weights[1] for row in rows[30:]]) > 0.5


def test_policies_are_compared_on_the_same_slots():
    opened = []

    def open_stream():
        opened.append(Corner(5))
        return opened[-1]

    found = merging.compare(open_stream, num_slots=4)
    assert found.keys() == policies.POLICIES.keys() - {policies.MIX}  # three experts, two tasks
    served = [stream.asked for stream in opened if stream.asked]
    assert [[slot for slot, _ in asked] for asked in served] == [[0, 1, 2, 3]] * len(found)
    for rows, asked in zip(found.values(), served, strict=True):
        np.testing.assert_allclose([row.weights for row in rows], [weights for _, weights in asked], atol=1e-6)
    few = merging.compare(open_stream, [policies.TANBR], num_slots=4, max_active=1)
    assert {np.count_nonzero(row.weights) for row in few[policies.TANBR]} == {1}
    alone = list(merge_online(Corner(4), policies.TANBR, 4, online.params_for(policies.TANBR, 3)))
    assert [row.reward for row in alone] == [row.reward for row in found[policies.TANBR]]


@pytest.mark.parametrize(
    ("slots", "options", "said"),
    [
        (3, {"names": ["tanber"]}, "Did you mean 'tanbr'"),
        (3, {"max_active": 4}, "max_active=4 must be at most num_experts=3"),
        (0, {}, "no slots"),
    ],
)
def test_policies_that_cannot_be_compared_are_refused(slots, options, said):
    with pytest.raises(MoeTheoryError, match=said):
        merging.compare(lambda: Corner(slots), **options)


@pytest.mark.parametrize(
    ("served", "said"),
    [
        (([0.5, np.nan], [1, 1]), "reward of task 1 is NaN"),
        (([0.5, 1.5], [1, 1]), "reward of task 1 is 1.5"),
        (([0.5], [1]), r"shape \(1,\) must be of shape \(2,\)"),
        (([0.5, 0.5], [0, 0]), "not all of them 0"),
        (([0.5, 0.5], [1.5, 1]), "must be whole numbers"),
        (0.5, "must return"),
    ],
)
def test_rewards_that_are_none_are_refused(served, said):
    with pytest.raises(InvalidValueError, match=said):
        checked(served, 2, 7)


def test_a_task_without_requests_may_have_any_reward():
    np.testing.assert_array_equal(checked(([np.nan, 0.25], [0, 4]), 2, 1).rewards, [0, 0.25])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "tanber"}, "Did you mean 'tanbr'"),
        ({"params": Params(smoothness_ratio=1.0)}, "smoothness_ratio=1.0"),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_first_slot(arguments, said):
    stream = Corner(3)
    with pytest.raises(MoeTheoryError, match=said):
        merge_online(stream, **{"policy": policies.AVERAGE, "num_slots": 3} | arguments)
    assert stream.asked == []


@pytest.mark.parametrize(
    ("parts", "weights"), [([], []), ([np.ones(2)], [0.5, 0.5]), ([np.ones(2), np.ones(3)], [0.5, 0.5])]
)
def test_experts_of_several_shapes_have_no_sum(parts, weights):
    with pytest.raises(InvalidValueError):
        merging.weighted_sum(parts, weights)


def test_a_sum_that_is_not_finite_is_refused():
    with pytest.raises(InvalidValueError):
        merging.weighted_sum([np.ones(2), np.array([1.0, np.nan])], np.array([0.5, 0.5]))


def test_an_expert_of_weight_0_is_not_read():
    total = merging.weighted_sum([np.ones(2), np.array([1.0, np.nan])], np.array([1.0, 0.0]))
    np.testing.assert_array_equal(total, [1, 1])


def test_a_policy_of_one_s_own_goes_by_its_name(monkeypatch):
    average = policies.POLICIES["average"]
    monkeypatch.setitem(policies.POLICIES, "mine", lambda dims, uncertainty: average(dims, uncertainty))
    mine, theirs = (list(merge_online(Corner(3), name, 3)) for name in ("mine", "average"))
    assert [row.reward for row in mine] == [row.reward for row in theirs]


def test_the_rewards_of_the_paper_s_families_are_a_stream_s_too():
    """A `Reward` served by hand: the loop in `tanbr`'s docstring, through a stream."""

    class Peaked(Corner):
        def serve(self, slot: int, weights: np.ndarray) -> Feedback:
            self.asked.append(slot)
            return Feedback(np.exp(-np.sum((weights - [0.1, 0.8, 0.1]) ** 2) * np.ones(2)), np.array([1, 1]))

    rows = list(merge_online(Peaked(40), policies.TANBR, 40, Params(split_rule=1, smoothness=0.5)))
    assert rows[-1].num_candidates > rows[0].num_candidates == 1
    assert max(row.reward for row in rows) > rows[0].reward
