"""A small sweep that tests of running share."""

from moe_theory.sweep.results import Sweep

ARGUMENTS = {
    "system": "continual",
    "rounds": 30,
    "record_every": 10,
    "axes": {"num_experts": [2, 3, 5], "learning_rate": [0.1, 0.5]},
    "replicates": 40,
    "chunk_width": 16,
}
SWEEP = Sweep(**ARGUMENTS)
