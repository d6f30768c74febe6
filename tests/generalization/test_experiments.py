"""The runs that claims share: catches a cell that would be run again for a reading that changes nothing."""

from moe_theory.generalization import READINGS, experiments
from moe_theory.verify import Experiment
from moe_theory.verify.request import resolve

NEED_READING = [experiments.DENSE, experiments.NATURAL]
SHARED = [
    value for value in vars(experiments).values() if isinstance(value, Experiment) and value not in NEED_READING
] + list(experiments.TRAINED.values())


def test_readings_run_once():
    studies = resolve([(experiment, reading, []) for experiment in SHARED for reading in READINGS.values()]).studies
    assert len(studies) == len(READINGS) * len(SHARED) > 0
    assert sum(study.same_as is None for study in studies) == len(SHARED)


def test_the_grid_of_routers_has_every_size_that_capacity_is_compared_over():
    cells = experiments.LINEAR_ROUTER.cells
    for experts in experiments.ROUTER_EXPERTS:
        assert cells[experiments.router_name(experts, 1, 1.0)]["num_experts"] == experts
    for norm in experiments.ROUTER_NORMS:
        for active in experiments.ROUTER_ACTIVE:
            cell = cells[experiments.router_name(experiments.SPARSE_EXPERTS, active, norm)]
            assert cell["num_active"] == active
            assert active == 1 or cell["router_norm"] == norm
