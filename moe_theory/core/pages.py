"""What makes pages and pictures, as the layer of reports registers it: nothing here imports that layer."""

import types

_loaders: list[types.FunctionType] = []


def register_pages(load: types.FunctionType) -> None:
    """Let `load` import, on first use, the module that has `html(thing)`, `plot(verdict)` and `report(found, path)`."""
    _loaders.append(load)


def pages() -> types.ModuleType:
    """The module that makes pages and pictures."""
    return _loaders[-1]()
