"""`moe-theory bound`."""

from typing import Annotated

from moe_theory.plot.commands import Option
from moe_theory.plot.document import Document

NumExperts = Annotated[int, Option("T, number of experts.", ("--experts", "--num-experts"))]
NumActive = Annotated[int, Option("k, experts active for an input.", ("--active", "--num-active"))]
NumSamples = Annotated[
    int | None, Option("m, training samples, such as 60000 or 1e6.", ("--samples", "--num-samples"), default=60000)
]
NumFeatures = Annotated[int, Option("d, entries of an input.", ("--features", "--num-features"))]
ExpertNorm = Annotated[
    float, Option("B, a bound on |w| of a linear expert and on the Frobenius norm of a layer of expert networks.")
]
RouterNorm = Annotated[
    float,
    Option(
        "W, a bound on |v| for each row v of a linear router or of a network's last layer, and on the Frobenius norm "
        "of each other layer."
    ),
]
FeatureNorm = Annotated[float, Option("c, a bound on |x| for each input.")]
Lipschitz = Annotated[
    float, Option("C, Lipschitz constant of the loss, such as 0.5 for the ramp loss clip((1 - y f)/2, 0, 1).")
]
Delta = Annotated[float, Option("Probability with which each bound may fail.")]
ExpertWidths = Annotated[
    tuple[int, ...],
    Option(
        "Hidden units of expert networks (ReLU, no biases): one number per layer, separated by commas.",
        ("--expert-widths", "--expert-width"),
        metavar="INTEGER",
    ),
]
TrainingError = Annotated[
    float | None, Option("Mean loss of a trained model on its m samples, for bounds on the risk.", metavar="Q")
]
CodeBits = Annotated[
    int | None, Option("Length of a prefix-free code of the trained weights, such as 8 times their bytes under zlib.")
]
NumWeights = Annotated[
    int | None, Option("Number of weights of a classifier without other assumptions, such as 46.7e9.", ("--weights",))
]
Bits = Annotated[int, Option("Number of bits in which each weight is stored.")]
Bounds = Annotated[
    Document,
    Option(
        "schema, setting, known (what follows from it), notes and bounds, each with value, hypotheses, status and the "
        "like."
    ),
]


def bound(
    *,
    num_experts: NumExperts = 8,
    num_active: NumActive = 2,
    num_samples: NumSamples = None,
    num_features: NumFeatures = 784,
    expert_norm: ExpertNorm = 1.0,
    router_norm: RouterNorm = 1.0,
    feature_norm: FeatureNorm = 1.0,
    lipschitz: Lipschitz = 1.0,
    delta: Delta = 0.05,
    expert_widths: ExpertWidths = (),
    training_error: TrainingError = None,
    code_bits: CodeBits = None,
    num_weights: NumWeights = None,
    bits: Bits = 32,
) -> Bounds:
    """Compute bounds on a sparse MoE's generalization error.

    Prints the value of each bound, whether the bound holds or is refuted, and its hypotheses. The loss is in [0, 1], so
    a bound is informative below 1. The table gives the number of samples that this needs. Experts and router are linear
    by default. With --training-error the bounds are on the risk of a trained model. For a fixed router use
    `generalization.bound` in Python.

    Examples:
        moe-theory bound --experts 8 --active 1 --samples 1000000
        moe-theory bound --expert-width 64 --samples 1e9
        moe-theory bound --weights 46.7e9 --bits 16 --samples 1e12
        moe-theory bound --training-error 0.1 --code-bits 700 --samples 1437
    """
    from moe_theory.generalization import calculator, report

    setting = calculator.Setting(
        num_experts=num_experts,
        num_active=num_active,
        num_samples=calculator.Setting.num_samples if num_samples is None else num_samples,
        num_features=num_features,
        expert_norm=expert_norm,
        router_norm=router_norm,
        feature_norm=feature_norm,
        lipschitz=lipschitz,
        delta=delta,
        expert_widths=expert_widths,
        training_error=training_error,
        code_bits=code_bits,
        num_weights=num_weights,
        bits=bits,
    )
    bounds = calculator.calculate(setting)
    notes = []
    if num_samples is None:
        notes = [f"m = {calculator.Setting.num_samples:,} is the default of --samples."]
    if setting.num_weights is not None:
        notes.append("Bounds on weights of which nothing else is known do not depend on T, k and d.")
    return report.document(setting, bounds, notes)
