"""Records of benchmarks with round numbers, made by hand."""

import dataclasses

from moe_theory.bench.history import Compilation, Measurement, OnAccelerator, Record
from moe_theory.bench.setting import Setting

TINY = Setting("continual", 2, 2, 3, 2, batch=4, num_rounds=16)
PAPER = Setting("continual", 10, 6, 10, 6, batch=64, num_rounds=1000)


def measurement(contender="moe_theory", seconds=(0.064, 0.128), yardstick=(0.01, 0.01), **changes):
    """One of 64 replicates over 1,000 rounds: 0.064 seconds are 1,000 ns a replicate-round."""
    made = Measurement("peers", "continual, batch 64", contender, PAPER, "one", 64, 1.064, seconds, yardstick)
    return dataclasses.replace(made, **changes)


def scaling(axis, name, costs):
    """Measurements at doubled sizes from 8 on, with these costs in ns a replicate-round."""
    return [
        measurement(
            seconds=(cost * 1e-9 * 64 * setting.num_rounds,),
            yardstick=(0.01,),
            part=f"scaling {axis}",
            group=f"continual, growing {axis}",
            setting=setting,
        )
        for place, cost in enumerate(costs)
        for setting in [dataclasses.replace(PAPER, **{name: 8 * 2**place})]
    ]


def record(*measurements, **changes):
    made = Record(
        time="2026-01-02T03:04:05+00:00",
        command="moe-theory bench",
        provenance={"processor": "a processor", "cores": 2, "versions": {"jax": "0.10"}, "commit": "abc"},
        is_complete=True,
        measurements=list(measurements),
    )
    return dataclasses.replace(made, **changes)


def full():
    """A record with every part."""
    automatic = {"setting": dataclasses.replace(PAPER, batch=16), "replicates": 16, "is_automatic": True}
    return record(
        measurement(),
        measurement("NumPy loop", (2.0, 4.0), replicates=1),
        measurement("batched Torch", (), (), skipped="torch is not installed"),
        measurement(part="precision", group="continual, precisions"),
        measurement(
            part="precision",
            group="continual, precisions",
            seconds=(0.128, 0.256),
            setting=dataclasses.replace(PAPER, precision="float64"),
        ),
        measurement(part="grid", group="continual, M = 10, d = 10"),
        measurement(part="grid", group="continual, M = 10, d = 10", **automatic),
        *scaling("M", "num_experts", (500, 1000, 2000, 4000)),
        *scaling("s", "num_samples", (500, 1000, 4000, 16000)),
        compilations=[
            Compilation("figure-2", "cold", "one", 5.0, (0.01,)),
            Compilation("figure-2", "kept", "one", 1.0, (0.01,)),
        ],
        accelerator=[
            OnAccelerator(dataclasses.replace(PAPER, batch=100_000), "a GPU", (0.1, 0.2), 10**8, 2e12),
            OnAccelerator(PAPER, "cpu", skipped="JAX sees no accelerator here"),
        ],
    )
