"""Running cells of replicates, and keeping what they give: what sweeps, claims and figures share.

Names are loaded on first use, from where `__init__.pyi` says: reading and writing files needs no JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
