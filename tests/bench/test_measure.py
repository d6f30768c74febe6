"""Timing in turn: catches times given to the wrong run, or to another pass, and ratios that noise gets into."""

import numpy as np

from moe_theory.bench.measure import Ratio, calls_to_fill, interleave, ratio, timed


class Machine:
    """A clock that runs move on, slower in every pass by as much as it says."""

    def __init__(self):
        self.now = 0.0
        self.played = []

    def clock(self):
        return self.now

    def run(self, name, seconds):
        def play():
            self.played.append(name)
            self.now += seconds * (1 + self.played.count(name))  # the machine gets slower with every call

        return play


def test_every_pass_times_each_run_once_in_alternating_order():
    machine = Machine()
    runs = [machine.run("fast", 1.0), machine.run("slow", 4.0)]
    seconds = interleave(runs, [1, 1], 3, machine.clock)
    assert machine.played == ["fast", "slow", "slow", "fast", "fast", "slow"]
    np.testing.assert_array_equal(seconds, [[2, 8], [3, 12], [4, 16]])


def test_ratios_are_exact_however_the_machine_slows_down():
    machine = Machine()
    seconds = interleave([machine.run("fast", 1.0), machine.run("slow", 4.0)], [1, 1], 5, machine.clock)
    assert ratio(seconds[:, 1], seconds[:, 0]) == Ratio(4.0, 4.0, 4.0)
    assert ratio([2.0, 9.0, 4.0], [1.0, 3.0, 1.0]) == Ratio(3.0, 2.0, 4.0)


def test_several_calls_are_timed_as_one():
    machine = Machine()

    def steady():
        machine.now += 0.25

    assert interleave([steady], [4], 2, machine.clock).tolist() == [[0.25], [0.25]]
    assert timed(steady, machine.clock) == 0.25


def test_calls_fill_the_time_and_are_never_none():
    assert [calls_to_fill(1.0, one) for one in (0.3, 0.5, 1.0, 7.0)] == [4, 2, 1, 1]
