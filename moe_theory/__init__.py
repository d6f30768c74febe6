"""moe_theory: executable theory of Mixture-of-Experts.

Everything is loaded on first use: importing this package imports neither JAX nor anything that configures it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moe_theory import continual as continual
    from moe_theory.core.random import root_key as root_key
    from moe_theory.core.system import System as System
    from moe_theory.core.system import recorded_rounds as recorded_rounds
    from moe_theory.core.system import simulate as simulate
    from moe_theory.core.system import simulate_batch as simulate_batch

__version__ = "0.1.0"

_NAMES = {
    "System": "moe_theory.core.system",
    "recorded_rounds": "moe_theory.core.system",
    "root_key": "moe_theory.core.random",
    "simulate": "moe_theory.core.system",
    "simulate_batch": "moe_theory.core.system",
}
_MODULES = ("continual",)

__all__ = ["__version__", *_NAMES, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"moe_theory.{name}")
    raise AttributeError(f"module 'moe_theory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
