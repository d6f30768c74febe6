"""Lemma 2: how far apart the gate outputs of two tasks of one cluster are."""

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, EXPLORES, FREE, FREE_SERVERS, MARGIN, explored
from moe_theory.edge.interventions import FIRST_IDLE
from moe_theory.edge.params import PROPORTIONAL
from moe_theory.verify.statement import limit_rate, statement

LEMMA_2 = statement(
    "lemma-2",
    where="Lemma 2, Eq. (14)",
    says=r"""Arrivals of one cluster have gate outputs of the same expert within O(sigma_0) of each other.
    $$\left\lvert h_m(\mathbf{X}, \theta_t^{(m)}) - h_m(\tilde{\mathbf{X}}, \theta_t^{(m)}) \right\rvert =
    \mathcal{O}(\sigma_0), \quad \mathbf{w}, \tilde{\mathbf{w}} \in \mathcal{W}_n$$""",
    hypotheses=EXPLORES,
    note="""Where servers are alike it holds because the gates themselves are of smaller order than sigma_0, whatever
    the noise. Tried: strengths down to 0, noise that does not vanish with sigma_0, signals ten times as long.""",
    disproof="slow_servers_gates.py",
    amendment="delays of one law at all servers, drawn anew for each task, up to a factor ln(M/delta)^0.5; eta = "
    "O(sigma_0^0.5); for t = O(T_1), or r = O(sigma_0^0.5)",
    why="""Strengths beta_t of one cluster differ, so that outputs do by the order of the gates, which is above
    sigma_0 where servers differ in speed, and where r is wide long after T_1: gates diffuse until r balances them, at
    (eta sigma_0 r)^0.5. The proof leaves that out. For eta see `edge.lemma-8`.""",
    instance="""Servers of three, two and one round, beta_t 1/2 or 1: outputs of one kind differ by <0.007> sigma_0^0.5
    ln(M/delta) with chance 1/2.""",
    free=(*FREE, FREE_SERVERS),
)


@LEMMA_2.competitor("lemma-2.constant-router", FIRST_IDLE, limit_rate(at_least=1, margin=MARGIN)).says(
    "With a constant router, to the first idle server, outputs are within O(sigma_0) too, in root mean square."
)
@LEMMA_2.charitable("lemma-2.outputs", BY_SCALE, limit_rate(at_least=1, margin=MARGIN))
def output_gap(run) -> np.ndarray:
    r"""Two tasks of one cluster have gate outputs within O(sigma_0) of each other, in root mean square.
    $$\left( \mathbb{E}\left\lvert h_m(\mathbf{X}, \theta_t^{(m)}) - h_m(\tilde{\mathbf{X}},
    \theta_t^{(m)}) \right\rvert^2 \right)^{1/2} = \mathcal{O}(\sigma_0),
    \quad \mathbf{w}, \tilde{\mathbf{w}} \in \mathcal{W}_n$$"""
    # Given the gates at T1, over experts and kinds: the s - 1 noise columns add 2 (s - 1) sigma_t^2 |theta|^2,
    # unequal strengths 2 Var(beta) <theta, v>^2, signals along own truths (with beta = 1) 2 c^2 tau^2 |theta|^2.
    params = run.params
    follows = int(params.signal_law) == PROPORTIONAL
    spread = float(params.signal_scale) * float(params.cluster_spread) if follows else 0.0
    noise = (run.dims.num_samples - 1) * float(params.noise_scale) ** 2
    strength_variance = (float(params.max_strength) - float(params.min_strength)) ** 2 / 12
    by_noise = (noise + spread**2) * explored(run, "gate_norm")[-1] ** 2
    return np.sqrt(2 * (by_noise + strength_variance * explored(run, "signal_drive")[-1] ** 2))
