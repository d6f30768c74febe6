"""Claims and verdicts. The module itself is callable: `moe_theory.verify("continual.*")`.

Names are loaded on first use, from where `__init__.pyi` says: what is recorded can be read without JAX.
"""

import sys
from types import ModuleType
from typing import Any

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _CallableModule(ModuleType):
    """The package's name is also the public function's, and importing a package binds its name to the module."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from moe_theory.verify.session import verify

        return verify(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
