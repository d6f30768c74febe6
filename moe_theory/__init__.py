"""moe_theory: executable theory of Mixture-of-Experts. Each installed paper is an attribute, such as `continual`.

Everything is loaded on first use: importing this package imports neither JAX nor anything that configures it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moe_theory.core.explain import explain as explain
    from moe_theory.core.papers import Paper as Paper
    from moe_theory.core.papers import Reading as Reading
    from moe_theory.core.random import draws as draws
    from moe_theory.core.random import root_key as root_key
    from moe_theory.core.system import System as System
    from moe_theory.core.system import recorded_rounds as recorded_rounds
    from moe_theory.core.system import simulate as simulate
    from moe_theory.core.system import simulate_batch as simulate_batch
    from moe_theory.report.plots import figure as figure
    from moe_theory.runs.compilation import keep_programs as keep_programs
    from moe_theory.sweep.results import Results as Results
    from moe_theory.sweep.results import Sweep as Sweep
    from moe_theory.sweep.vary import vary as vary
    from moe_theory.verify import Claim as Claim
    from moe_theory.verify import Experiment as Experiment
    from moe_theory.verify import Status as Status
    from moe_theory.verify import Verdict as Verdict
    from moe_theory.verify import verify as verify
    from moe_theory.verify.check import check as check
    from moe_theory.verify.explore import explore as explore
    from moe_theory.verify.registry import claims as claims
    from moe_theory.verify.statement import statement as statement
    from moe_theory.verify.statement import statements as statements

__version__ = "0.1.0"  # as in pyproject.toml

_NAMES = {
    "Claim": "moe_theory.verify",
    "Experiment": "moe_theory.verify",
    "Paper": "moe_theory.core.papers",
    "Reading": "moe_theory.core.papers",
    "Results": "moe_theory.sweep.results",
    "Status": "moe_theory.verify",
    "Sweep": "moe_theory.sweep.results",
    "System": "moe_theory.core.system",
    "Verdict": "moe_theory.verify",
    "check": "moe_theory.verify.check",
    "claims": "moe_theory.verify.registry",
    "draws": "moe_theory.core.random",
    "explain": "moe_theory.core.explain",
    "explore": "moe_theory.verify.explore",
    "figure": "moe_theory.report.plots",
    "keep_programs": "moe_theory.runs.compilation",
    "recorded_rounds": "moe_theory.core.system",
    "root_key": "moe_theory.core.random",
    "simulate": "moe_theory.core.system",
    "simulate_batch": "moe_theory.core.system",
    "statement": "moe_theory.verify.statement",
    "statements": "moe_theory.verify.statement",
    "vary": "moe_theory.sweep.vary",
}

__all__ = ["__version__", "verify", *_NAMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name == "verify":  # a package and, called, its function
        return importlib.import_module("moe_theory.verify")
    if not name.startswith("_"):
        from moe_theory.core.papers import paper_names, paper_package

        if name in paper_names():
            return importlib.import_module(paper_package(name))
    raise AttributeError(f"module 'moe_theory' has no attribute {name!r}")


def __dir__() -> list[str]:
    from moe_theory.core.papers import paper_names

    return sorted([*__all__, *paper_names()])
