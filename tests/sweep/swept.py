"""A small sweep that tests of running share, and what a folder holds of it."""

from pathlib import Path

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


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).glob("chunks/*/*.npz")}
