"""Figures, with roles, panels, legends, and data with their provenance."""

from typing import Any

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
Axes = Canvas = Any  # an import of matplotlib takes longer than the list of figures
