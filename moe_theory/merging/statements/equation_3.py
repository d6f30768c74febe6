"""Eq. (3): the number of parameters of the reward network."""

import dataclasses

import numpy as np

from moe_theory.core.random import root_key
from moe_theory.merging import network
from moe_theory.merging.experiments import DIMS, computed
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import alike, identity

DEPTHS = (2, 3)  # L

EQUATION_3 = statement("equation-3", module=__name__)


@EQUATION_3.charitable("equation-3.hidden-layers", computed("1 hidden layer", "2 hidden layers"), identity(within=0))
def difference_of_drawn(run) -> np.ndarray:
    networks = [network.draw(root_key(0), dataclasses.replace(DIMS, num_hidden=number)) for number in (1, 2)]
    ends = DIMS.width * (DIMS.max_experts + DIMS.num_tasks)
    sizes = [sum(layer.size for layer in drawn_network.layers) for drawn_network in networks]
    return alike(run, [abs(size - ends - DIMS.width**2 * place) for place, size in enumerate(sizes)])


@EQUATION_3.literal("equation-3.parameters", computed(*(f"L = {depth}" for depth in DEPTHS)), identity(within=0))
def difference(run) -> np.ndarray:
    width = DIMS.width
    ends = DIMS.width * (DIMS.max_experts + DIMS.num_tasks)
    # The matrices in (3) are one of shape (w, K), L - 2 of shape (w, w), and one of shape (V, w).
    return alike(run, [abs(ends + width**2 * (depth - 1) - (ends + width**2 * (depth - 2))) for depth in DEPTHS])
