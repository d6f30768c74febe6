"""The runs that lemmas share: catches a cell that would be run again for a reading that changes nothing."""

from moe_theory.generalization import READINGS, lemma_experiments
from moe_theory.verify import Experiment
from moe_theory.verify.course import Job, twins_of

EXPERIMENTS = [value for value in vars(lemma_experiments).values() if isinstance(value, Experiment)]


def test_readings_run_once():
    jobs = [Job(experiment, reading, []) for experiment in EXPERIMENTS for reading in READINGS.values()]
    assert len(jobs) == len(READINGS) * len(EXPERIMENTS) > 0
    assert len(twins_of(jobs)) == len(jobs) - len(EXPERIMENTS)


def test_the_grid_of_routers_has_every_size_that_capacity_is_compared_over():
    cells = lemma_experiments.LINEAR_ROUTER.cells
    for experts in lemma_experiments.ROUTER_EXPERTS:
        assert cells[lemma_experiments.router_name(experts, 1, 1.0)]["num_experts"] == experts
    for norm in lemma_experiments.ROUTER_NORMS:
        for active in lemma_experiments.ROUTER_ACTIVE:
            cell = cells[lemma_experiments.router_name(lemma_experiments.SPARSE_EXPERTS, active, norm)]
            assert cell["num_active"] == active
            assert active == 1 or cell["router_norm"] == norm
