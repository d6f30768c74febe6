"""Lemma 2: how far apart the gate outputs of two tasks of one cluster are."""

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, FREE, FREE_SERVERS, MARGIN, up_to_t1
from moe_theory.edge.interventions import FIRST_IDLE
from moe_theory.edge.params import PROPORTIONAL
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import limit_rate

LEMMA_2 = statement("lemma-2", module=__name__, free=(*FREE, FREE_SERVERS))


@LEMMA_2.competitor("lemma-2.constant-router", FIRST_IDLE, limit_rate(at_least=1, margin=MARGIN))
@LEMMA_2.charitable("lemma-2.outputs", BY_SCALE, limit_rate(at_least=1, margin=MARGIN))
def output_gap(run) -> np.ndarray:
    """Return the root mean square difference of an output for two tasks of a cluster, by the gates at T1 (B,)."""
    params = run.params
    signal_spread = 0.0
    if int(params.signal_law) == PROPORTIONAL:
        signal_spread = float(params.signal_scale) * float(params.cluster_spread)
    noise_variance = (run.dims.num_samples - 1) * float(params.noise_scale) ** 2
    strength_variance = (float(params.max_strength) - float(params.min_strength)) ** 2 / 12  # of a uniform law
    by_noise = (noise_variance + signal_spread**2) * up_to_t1(run, "gate_norm")[-1] ** 2
    by_strength = strength_variance * up_to_t1(run, "signal_drive")[-1] ** 2
    return np.sqrt(2 * (by_noise + by_strength))
