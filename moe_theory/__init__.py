"""moe_theory, executable theory of Mixture-of-Experts. Each installed paper is an attribute, such as `continual`.

Everything is loaded on first use, so an import of this package neither imports nor configures JAX. Its names are listed
in `__init__.pyi`, which type checkers read.
"""

import importlib

import lazy_loader

from moe_theory.core.notebook import register_pages as _register_pages

__version__ = "0.2.0"  # pyproject.toml reads it here

_lazy, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["__version__", *_names]  # pyright: ignore[reportUnsupportedDunderAll]
_register_pages(lambda: importlib.import_module("moe_theory.report.notebook"))


def __getattr__(name: str) -> object:
    if name in _names:
        return _lazy(name)
    if not name.startswith("_"):
        from moe_theory.core.papers import paper_names, paper_package

        if name in paper_names():
            return importlib.import_module(paper_package(name))
    raise AttributeError(f"module 'moe_theory' has no attribute {name!r}")


def __dir__() -> list[str]:
    from moe_theory.core.papers import paper_names

    return sorted([*__all__, *paper_names()])
