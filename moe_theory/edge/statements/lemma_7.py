"""Lemma 7: how evenly exploration spreads the tasks over the experts."""

import numpy as np

from moe_theory.edge.experiments import BY_RATE, BY_SERVERS, EXPLORES, MARGIN, explored
from moe_theory.edge.interventions import FIRST_IDLE_BY_RATE
from moe_theory.verify.statement import limit_rate, statement

SHARES = r"$$\left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert = \mathcal{O}(\eta^{1/2}), \quad m \in \mathbb{M}$$"
LEMMA_7 = statement(
    "lemma-7",
    where="Lemma 7, Eq. (29)",
    says=r"""When exploration ends every expert has had a share of the tasks within O(eta^0.5 / M) of 1/M, except with
    probability delta.
    $$\left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert = \mathcal{O}(\eta^{1/2} M^{-1})$$""",
    hypotheses=EXPLORES,
    note="""Its proof gives less: with Hoeffding's inequality, for independent routes, (ln(2M/delta) / (2 T1))^0.5 is
    O(eta^0.5 M^-0.5). The variance 1/M of a route, which Bernstein's inequality takes in, makes up for the rest; and
    routes are more even than independent ones, as who completes a task becomes less likely to get the next. Tried:
    strong signals, with which it fails at Fig. 3's sigma_0 = 0.6, where some experts settle, but not as sigma_0
    falls.""",
    disproof="slow_server_loads.py",
    amendment="delays of one law at all servers, drawn anew for each task; eta sigma_0/M = o(r), or noise that keeps "
    "models moving",
    why="""The proof takes the mean share for 1/M by symmetry. A server that is slower than others is idle less often,
    and gets less; if speeds are drawn by one law, but once a server, only the mean share is 1/M. And symmetry is lost
    on a path: without noise models come to rest, gates with them, and a small r then leaves the tasks to a few servers
    (`edge.proposition-2-exploration`).""",
    instance="""One server of M, which is fixed, takes two rounds, all others one, r wide beside the gates: its share is
    1/(M + 1).""",
)


@LEMMA_7.competitor("lemma-7.constant-router", FIRST_IDLE_BY_RATE, limit_rate(at_least=0.5, margin=MARGIN)).says(
    "With a constant router, to the first idle server, shares are within O(eta^(1/2)) of 1/M too, for small eta."
    f"{SHARES}"
)
@LEMMA_7.charitable("lemma-7.learning-rate", BY_RATE, limit_rate(at_least=0.5, margin=MARGIN)).says(
    f"At T1 every expert's share of the tasks is within O(eta^(1/2)) of 1/M, for small eta.{SHARES}"
)
@LEMMA_7.charitable("lemma-7.loads", BY_SERVERS, limit_rate(at_most=-1, margin=MARGIN))
def largest_gap(run) -> np.ndarray:
    r"""At T1 every expert's share of the tasks is within O(1/M) of 1/M.
    $$\left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert = \mathcal{O}(M^{-1}), \quad m \in \mathbb{M}$$"""
    return explored(run, "load_gap")[-1]
