"""A verdict from a single analysis, for tests of claims on given runs."""

from moe_theory.verification.evidence import find_nan_runs
from moe_theory.verification.interim import SequentialTest
from moe_theory.verification.request import blank_verdict


def judge(claim, reading, runs, seed, error):
    """Return the verdict on a claim from a single analysis of runs, with the whole error."""
    num_replicates = len(next(iter(runs.values())).replicates)
    test = SequentialTest(claim, blank_verdict(claim, reading, seed, error), num_replicates, is_single_look=True)
    test.extend(runs, find_nan_runs(runs))
    if not test.has_ended:
        test.look(num_replicates)
    return test.latest
