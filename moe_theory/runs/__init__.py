"""Runs of cells of replicates, and storage of results.

Names are loaded on first use, and files need no JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
