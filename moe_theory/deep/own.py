"""Registration of a user's own networks, data sets and presets under a name."""

import importlib
import os
import sys
from typing import TypeVar

from moe_theory.core.errors import InvalidValueError, described
from moe_theory.deep.datasets import DATASETS, DataSet, Loader
from moe_theory.deep.networks import NETWORKS, Network
from moe_theory.deep.presets import PRESETS, Preset

Thing = TypeVar("Thing", Network, DataSet, Preset)
_BUILT_IN = frozenset({*NETWORKS, *DATASETS, *PRESETS})


def register(thing: Thing) -> Thing:
    """Make a network, a data set or a preset known by its name to `Dims`, `Preset.data` and `moe-theory deep`.

    It replaces your earlier one of this name.

    Returns: the argument.
    Raises: InvalidValueError for a name of the package, or another argument.

    Examples:
        >>> from moe_theory import deep
        >>> network = deep.register(deep.networks.mlp("wide", widths=(64,)))
        >>> deep.Dims(max_experts=2, num_classes=2, max_rounds=2, network="wide").network
        'wide'
    """
    if not isinstance(thing, (Network, DataSet, Preset)):
        raise InvalidValueError(f"{described_type(thing)} is no Network, DataSet or Preset. Register one of these.")
    if thing.name in _BUILT_IN:
        raise InvalidValueError(f"{thing.name!r} is built in. Give yours another name.")
    if isinstance(thing, Network):
        NETWORKS[thing.name] = thing
    elif isinstance(thing, Preset):
        PRESETS[thing.name] = thing
    else:
        DATASETS[thing.name] = Loader(thing.title, lambda _: thing)
    return thing


def described_type(thing: object) -> str:
    return f"a value of type {type(thing).__name__}"


def network_named(name: str | None) -> str | None:
    """Return a network's name, after importing and registering MODULE:NAME.

    Raises: InvalidValueError for an unimportable module, or without a network of that name.
    """
    if name is None or ":" not in name:
        return name
    module, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())  # as `python -m` does
    try:
        network = getattr(importlib.import_module(module), attribute)
    except Exception as failure:  # whatever the user's module raises is reported in one line
        raise InvalidValueError(f"--network {name} cannot be imported: {described(failure)}") from failure
    finally:
        sys.path.pop(0)
    if not isinstance(network, Network):
        raise InvalidValueError(f"--network {name} is {described_type(network)}, no moe_theory.deep.networks.Network.")
    return register(network).name
