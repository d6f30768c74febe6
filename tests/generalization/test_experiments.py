"""The runs that claims share: catches a cell that would be run again for a reading that changes nothing."""

from moe_theory.generalization import experiments
from moe_theory.verification.request import check_request


def test_readings_run_once():
    again = [study for study in check_request("generalization").studies if study.reading.name == "router-dimension"]
    assert {study.experiment for study in again} == {experiments.DENSE, experiments.NATURAL}


def test_the_grid_of_routers_has_every_size_that_capacity_is_compared_over():
    cells = experiments.LINEAR_ROUTER.cells
    for experts in experiments.ROUTER_EXPERTS:
        assert cells[experiments.router_name(experts, 1, 1.0)]["num_experts"] == experts
    for norm in experiments.ROUTER_NORMS:
        for active in experiments.ROUTER_ACTIVE:
            cell = cells[experiments.router_name(experiments.SPARSE_EXPERTS, active, norm)]
            assert cell["num_active"] == active
            assert active == 1 or cell["router_norm"] == norm
