"""Claims and verdicts: `moe_theory.verify("continual.*")`.

Names are loaded on first use, so recorded results can be read without JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
