"""Generalization of sparse Mixture-of-Experts: classifiers, their capacity, and bounds.

In the tier `generalization:exact` gaps have closed forms, and true risks are 1/2 because labels are independent of the
inputs. `generalization:learned` trains classifiers. Their gap is a lower bound on the largest gap, so it can refute a
bound but not confirm one. `corrected` has corrections of Theorem 1. They are also tested where one of their three terms
is nearly tight.

Source: J. Zhao, P. Wang, Z. Wang, "Generalization Error Analysis for Sparse Mixture-of-Experts", 2024.
"""

from moe_theory.core.papers import Paper
from moe_theory.generalization import certificate as certificate
from moe_theory.generalization import complexity as complexity
from moe_theory.generalization import corrected as corrected
from moe_theory.generalization import counterexamples as counterexamples
from moe_theory.generalization import model as model
from moe_theory.generalization import theory as theory
from moe_theory.generalization.calculator import bound as bound
from moe_theory.generalization.data import Sample as Sample
from moe_theory.generalization.model import READINGS as READINGS
from moe_theory.generalization.model import Dims as Dims
from moe_theory.generalization.model import Params as Params
from moe_theory.generalization.model import Reading as Reading
from moe_theory.generalization.training import Info as Info
from moe_theory.generalization.training import State as State
from moe_theory.generalization.training import best_experts as best_experts
from moe_theory.generalization.training import empirical_risk as empirical_risk
from moe_theory.generalization.training import gap as gap
from moe_theory.generalization.training import learn as learn
from moe_theory.generalization.training import system as system
from moe_theory.generalization.training import true_risk as true_risk

# The paper is named only here. All code that lists papers reads this constant.
PAPER = Paper(
    name="generalization",
    package=__name__,
    title="the error of sparse Mixture-of-Experts",
    citation="""\
@misc{zhao-generalization,
  title = {Generalization Error Analysis for Sparse {Mixture-of-Experts}: A Preliminary Study},
  author = {Zhao, Jinze and Wang, Peihao and Wang, Zhangyang},
  year = {2024},
  eprint = {2403.17404},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2403.17404},
}""",
    readings=READINGS,
    default_readings=("mask-dimension", "router-dimension"),
    statements="moe_theory.generalization.statements",
    figures="moe_theory.generalization.figures:FIGURES",
    overview="moe_theory.generalization.figures.crossing:OVERVIEW",
    systems={"generalization": "moe_theory.generalization.sweeps:SWEEPABLE"},
    commands={"bound": "moe_theory.generalization.command:bound"},
    first_look={
        "generalization.theorem-1.fixed-router": "the gap exceeds (23) rarely",
        "generalization.theorem-1.any-constant": "the gap over (23) stays bounded",
        "generalization.corollary-4": "the gap over (9) stays bounded",
        "generalization.corollary-4.norms": "corrected: gap below the bound",
        "generalization.lemma-6.growth": "at most m^d k^(2d) labelings",
        "generalization.repaired.fixed-router": "corrected: gap rarely above it",
        "generalization.equation-31.ratio": "corrected: complexity ~ √(T A)",
        "generalization.remark.more-experts": "corrected: more active, simpler",
    },
    rank=2,
)
reading = PAPER.reading  # returns a reading by its name, such as `reading("router-dimension")`
