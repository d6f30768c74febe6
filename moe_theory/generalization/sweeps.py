"""Names for sweeps of trained sparse-MoE classifiers."""

from moe_theory.generalization.data import DATA
from moe_theory.generalization.model import READINGS, Dims
from moe_theory.generalization.training import empirical_risk, gap, system, true_risk
from moe_theory.sweep.systems import Observable, Sweepable, observables

SWEEPABLE = Sweepable(
    about="sparse-MoE classifiers fitted to a sample, and how far their risk on it is from the true one",
    dims=Dims,
    default_dims={"num_features": 8, "max_samples": 128},
    readings=READINGS,
    choices={"data": {name: name for name in DATA}},
    build=system,
    observables=observables(
        Observable("gap", "|L_S(f) - L_D(f)| of the ramp loss (3), with the exact L_D", gap),
        Observable("empirical_risk", "L_S(f), mean ramp loss over the sample", empirical_risk),
        Observable("true_risk", "L_D(f), mean ramp loss over the distribution, exact", true_risk),
        Observable("loss", "mean of -y f / 2 before the step, which is minimised", lambda state, info: info.loss),
        Observable("error", "share of the sample with the wrong sign before the step", lambda state, info: info.error),
        Observable(
            "mean_square_gate",
            "mean of |a(x_i)|^2 over the sample before the step: 1 for k = 1, at least 1/k",
            lambda state, info: info.mean_square_gate,
        ),
    ),
    default_observables=("gap", "empirical_risk"),
)
