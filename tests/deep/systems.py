"""The systems of networks, for the tests of every system; one kind is run in a plain batch here."""

from moe_theory.deep import Dims, Params, continual, edge

from ..contract.cases import Case
from .dataset_files import corners

DIMS = Dims(3, 2, max_rounds=2, num_samples=2, num_tests=2, num_epochs=1, batch_size=2)
CASES = [
    Case(
        "deep-continual",
        lambda: continual.system(DIMS, corners(), (1, 3)),
        Params(num_experts=2),
        (
            {"num_experts": 3, "learning_rate": 0.1, "expert_rate": 0.2, "centre": False, "terminate": False},
            {"multi_class": True, "positive_share": 1.0, "squared_loss": True, "num_rounds": 9},
        ),
        batched=(False,),
    ),
    Case(
        "deep-edge",
        lambda: edge.system(DIMS, corners(), (1, 3)),
        Params(num_experts=2),
        (
            {"num_experts": 3, "policy": 3, "gate_lag": 0, "weight_decay": 0.1, "per_parameter": True},
            {"max_transfer_delay": 2, "min_execution_delay": 1, "gate_scale": 1.0},
        ),
        batched=(),
    ),
]
