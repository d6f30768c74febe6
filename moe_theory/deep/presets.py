"""The papers' deep experiments. Each has a small version on scikit-learn's digits."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from moe_theory.core.errors import unknown_name
from moe_theory.core.system import System
from moe_theory.deep import continual, edge
from moe_theory.deep.params import ADAM, Dims
from moe_theory.deep.tasks import Source
from moe_theory.edge.policies import POLICIES

CONTINUAL = "continual"
EDGE = "edge"
SMALL = "-small"  # suffix of the small versions


@dataclasses.dataclass(frozen=True)
class Preset:
    """An experiment of a paper, with data, sizes and cells."""

    name: str
    where: str  # its place in `paper`, such as "Fig. 5"
    paper: str  # CONTINUAL or EDGE
    data: str  # a key of `datasets.DATASETS`, used unless a plan has other data
    classes: tuple[int, ...]
    experts: tuple[int, ...]  # the numbers M to compare
    dims: Dims
    choices: Mapping[str, float]  # parameters that differ from a reading's
    scales: tuple[float, ...] = ()  # scales of the gate's input, if cells differ in it
    others: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)  # changes to the first cell
    test_images: int | None = None  # number of evenly spread test images for evaluation, or None for all

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def num_rounds(self) -> int:
        """T, the number of rounds."""
        return self.dims.max_rounds

    @property
    def replicates(self) -> int:
        """The default number of seeds. 12 just suffice to show a majority."""
        if self.name.endswith(SMALL):
            return 32
        return 12

    def cells(self) -> dict[str, dict[str, float]]:
        """Return parameters by cell: experts with and without termination for each gate scale, or servers by policy."""
        fixed = {**self.choices, "num_rounds": self.num_rounds}
        cells = {}
        if self.paper == EDGE:
            first_cell = {"num_experts": self.experts[0], "policy": 0}
            for number in self.experts:
                for place, policy in enumerate(POLICIES):
                    cells[server_cell(number, policy)] = {**fixed, "num_experts": number, "policy": place}
        else:
            first_cell = {"num_experts": 1, "terminate": True}
            for scale in self.scales or (None,):
                scaled = fixed if scale is None else {**fixed, "gate_scale": scale}
                for number in self.experts:
                    endings = (True,) if number == 1 else (True, False)  # one expert has no gates to stop
                    for terminate in endings:
                        name = expert_cell(number, terminate, scale)
                        cells[name] = {**scaled, "num_experts": number, "terminate": terminate}
        return cells | {name: {**fixed, **first_cell, **changes} for name, changes in self.others.items()}

    def system(self, source: Source) -> System:
        """Return the system of all cells, for a data set or a function that reads it.

        Source: Algorithm 1 of the preset's paper.
        """
        return {CONTINUAL: continual, EDGE: edge}[self.paper].system(self.dims, source, self.classes)


def expert_cell(num_experts: int, terminate: bool = True, gate_scale: float | None = None) -> str:
    scale = "" if gate_scale is None else f"scale {gate_scale:g}, "
    ending = "" if terminate or num_experts == 1 else ", no termination"
    return f"{scale}M = {num_experts}{ending}"


def server_cell(num_experts: int, policy: str = "adaptive") -> str:
    return f"M = {num_experts}, {policy}"


def preset(name: str) -> Preset:
    """Return the preset called `name`. Raises: UnknownNameError.

    Examples:
        >>> from moe_theory import deep
        >>> small = deep.preset("continual-mnist-small")
        >>> small.data, small.classes, list(small.cells())[:2]
        ('digits', (1, 4, 7), ['M = 1', 'M = 4'])
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]


# Parameters of presets. The scales make gate steps balance the locality losses of these experts. The papers give none.
_GATE = {"gate_scale": 20.0}
_EDGE = {"learning_rate": 0.2, "perturbation_scale": 0.1, "gate_scale": 80.0}
# Appendices A.3, A.5 and A.6 of `continual` use Adam from 5e-4 to 1e-6 along a cosine, weight decay 0.005 and 5 epochs.
_ADAM = {**_GATE, "expert_rate": 5e-4, "final_rate": 1e-6, "weight_decay": 0.005}
_SMALL_ADAM = {**_GATE, "expert_rate": 1e-2, "final_rate": 1e-3, "weight_decay": 0.005}
_SGD = {"expert_rate": 0.2, "final_rate": 0.2}
# Scales of the gate's input at which kappa is below and above the range where the router freezes.
WEAK = 20.0
STRONG = 100.0

# Telephone, bee, mountain, bear, turtle and tractor, as Appendix A.5 names them. Its numbers belong to other classes.
_SIX_CIFAR = (86, 6, 49, 3, 93, 89)
_DIGITS = (1, 4, 7)
_SIX_TINY = (20, 50, 83, 145, 168, 179)
_EVEN = (0, 2, 4, 6, 8, 9)
_ODD = (1, 3, 5, 7, 8, 9)


def _five_layer(num_experts: int, rounds: int) -> Dims:
    return Dims(num_experts, num_classes=3, max_rounds=rounds, num_tests=1000, num_epochs=600, network="five-layer")


def _resnet(num_experts: int, num_classes: int, rounds: int, images: int, tests: int) -> Dims:
    return Dims(
        num_experts, num_classes, rounds, images, tests, num_epochs=5, batch_size=32, network="resnet18", optimizer=ADAM
    )


def _mlp(rounds: int) -> Dims:
    return Dims(10, num_classes=6, max_rounds=rounds, num_samples=96, num_epochs=5, batch_size=32, optimizer=ADAM)


_NO_BASELINE = {"baseline_weight": 0.0}
# Changes to the first cell, by cell.
_BASELINE_CELLS = {
    "M = 4, baseline": {"num_experts": 4, "terminate": False, "baseline_weight": 1.0},
    "M = 4, baseline and termination": {"num_experts": 4, "baseline_weight": 1.0},
    "M = 4, larger gate": {"num_experts": 4, "gate_scale": STRONG},
}
_SERVER_BASELINE_CELLS = {"M = 5, baseline": {"baseline_weight": 1.0}}

_ALL = (  # arguments in order: name, where, paper, data, classes, experts, dims, choices
    Preset("continual-mnist", "Fig. 5", CONTINUAL, "mnist", _DIGITS, (1, 4, 7), _five_layer(7, 60), _GATE | _SGD),
    Preset(
        "continual-cifar10", "Figs. 3 and 4", CONTINUAL, "cifar10", (0, 4, 5, 9), (1, 4, 12),
        _resnet(12, 4, 300, 512, 2000), _ADAM, test_images=2000,
    ),
    Preset(
        "continual-cifar100", "Fig. 6 and Table 1", CONTINUAL, "cifar100", _SIX_CIFAR, (1, 8, 10),
        _resnet(10, 6, 350, 192, 600), _ADAM, test_images=5000,
    ),
    Preset(
        "continual-tiny-imagenet", "Fig. 7 and Table 2", CONTINUAL, "tiny-imagenet", _SIX_TINY, (1, 8, 10),
        _resnet(10, 6, 300, 192, 300), _ADAM, test_images=5000,
    ),
    Preset("edge-mnist", "Fig. 4", EDGE, "mnist", _DIGITS, (5, 10), _five_layer(10, 100), _EDGE | _SGD),
    Preset(
        "gate-drive", "Sec. 6", CONTINUAL, "mnist", _DIGITS, (4,), _five_layer(4, 60), _SGD, scales=(WEAK, STRONG)
    ),
    Preset(
        "continual-baseline", "beside Fig. 5", CONTINUAL, "mnist", _DIGITS, (1, 4),
        dataclasses.replace(_five_layer(4, 60), compares=True), _GATE | _SGD | _NO_BASELINE, others=_BASELINE_CELLS,
    ),
    Preset(
        "edge-baseline", "beside Fig. 4", EDGE, "mnist", _DIGITS, (5,),
        dataclasses.replace(_five_layer(5, 100), compares=True), _EDGE | _SGD | _NO_BASELINE,
        others=_SERVER_BASELINE_CELLS,
    ),
    Preset(
        "continual-mnist-small", "Fig. 5", CONTINUAL, "digits", _DIGITS, (1, 4, 7),
        Dims(7, 3, 60, network="five-layer-small"), _GATE,
    ),
    Preset(
        "continual-cifar10-small", "Figs. 3 and 4", CONTINUAL, "digits", (0, 4, 5, 9), (1, 4, 12),
        Dims(12, 4, 60, num_samples=64, num_epochs=3, batch_size=32, network="resnet18-small", optimizer=ADAM),
        _SMALL_ADAM | {"expert_rate": 5e-3},
    ),
    Preset(
        "continual-cifar100-small", "Fig. 6 and Table 1", CONTINUAL, "digits", _EVEN, (1, 8, 10),
        _mlp(120), _SMALL_ADAM,
    ),
    Preset(
        "continual-tiny-imagenet-small", "Fig. 7 and Table 2", CONTINUAL, "digits", _ODD, (1, 8, 10),
        _mlp(100), _SMALL_ADAM,
    ),
    Preset("edge-mnist-small", "Fig. 4", EDGE, "digits", _DIGITS, (5, 10), Dims(10, 3, 100), _EDGE),
    Preset(
        "continual-baseline-small", "beside Fig. 5", CONTINUAL, "digits", _DIGITS, (1, 4),
        Dims(4, 3, 60, compares=True), _GATE | _NO_BASELINE, others=_BASELINE_CELLS,
    ),
    Preset(
        "edge-baseline-small", "beside Fig. 4", EDGE, "digits", _DIGITS, (5,), Dims(5, 3, 100, compares=True),
        _EDGE | _NO_BASELINE, others=_SERVER_BASELINE_CELLS,
    ),
    Preset("gate-drive-small", "Sec. 6", CONTINUAL, "digits", _DIGITS, (4,), Dims(7, 3, 60), {}, scales=(WEAK, STRONG)),
)  # fmt: skip

# The papers' presets by name, followed by their small versions.
PRESETS: dict[str, Preset] = {preset.name: preset for preset in _ALL}
SMALL_PRESETS = tuple(preset for preset in _ALL if preset.name.endswith(SMALL))


class PrintedTable(NamedTuple):
    where: str
    accuracies: Mapping[str, float]  # in [0, 1], by a preset's cells


def printed(preset: Preset) -> PrintedTable | None:
    return _TABLES.get(preset.name.removesuffix(SMALL))


def incremental_accuracy(accuracy: Float[np.ndarray, "T *batch"]) -> Float[np.ndarray, "*batch"]:
    """Return the mean over t of A_t, which is the mean accuracy on the tasks up to t (Rebuffi et al., iCaRL, 2017)."""
    return np.asarray(np.mean(accuracy, axis=0, dtype=np.float64))


def _printed_table(where: str, accuracies: dict[int, tuple[float, ...]]) -> PrintedTable:
    """Return a printed table. By number of experts it has the accuracies with and without termination."""
    cells = {}
    for size, values in accuracies.items():
        cells |= {expert_cell(size, terminate): value for terminate, value in zip((True, False), values, strict=False)}
    return PrintedTable(where, cells)


_TABLES = {
    "continual-cifar100": _printed_table("Table 1", {1: (0.171,), 8: (0.255, 0.103), 10: (0.329, 0.091)}),
    "continual-tiny-imagenet": _printed_table("Table 2", {1: (0.174,), 8: (0.376, 0.105), 10: (0.283, 0.103)}),
}
