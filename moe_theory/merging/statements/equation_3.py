"""Eq. (3): the number of parameters of the reward network."""

import dataclasses

import numpy as np

from moe_theory.core.random import root_key
from moe_theory.merging import network
from moe_theory.merging.experiments import DIMS, computed
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import alike, identity

DEPTHS = (2, 3)  # L
ENDS = DIMS.width * (DIMS.max_experts + DIMS.num_tasks)  # entries of the first and the last matrix

EQUATION_3 = statement("equation-3", module=__name__)


@EQUATION_3.charitable("equation-3.hidden-layers", computed("1 hidden layer", "2 hidden layers"), identity(within=0))
def difference_of_drawn(run) -> np.ndarray:
    networks = [network.draw(root_key(0), dataclasses.replace(DIMS, num_hidden=number)) for number in (1, 2)]
    sizes = [sum(layer.size for layer in drawn_network.layers) for drawn_network in networks]
    return alike(run, [abs(size - ENDS - DIMS.width**2 * num_square) for num_square, size in enumerate(sizes)])


@EQUATION_3.literal("equation-3.parameters", computed(*(f"L = {depth}" for depth in DEPTHS)), identity(within=0))
def difference(run) -> np.ndarray:
    # The matrices in (3) are one of shape (w, K), L - 2 of shape (w, w), and one of shape (V, w).
    square = DIMS.width**2
    return alike(run, [abs(ENDS + square * (depth - 1) - (ENDS + square * (depth - 2))) for depth in DEPTHS])
