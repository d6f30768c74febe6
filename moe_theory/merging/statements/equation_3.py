"""Eq. (3): how many parameters the reward network has."""

import dataclasses

import numpy as np

from moe_theory.core.random import root_key
from moe_theory.merging import network
from moe_theory.merging.experiments import DIMS, MERGES, computed
from moe_theory.verify.statement import alike, identity, statement

DEPTHS = (2, 3)  # L

EQUATION_3 = statement(
    "equation-3",
    where="below Eq. (3)",
    says="The reward network has wK + wV + w^2 (L-1) parameters. $$p = wK + wV + w^2 (L - 1)$$",
    hypotheses=[MERGES],
    why="A slip: the number counts L hidden layers, and (3) has L matrices, one of them to the outputs, and so L - 1 "
    "hidden layers: with its L the number has one w^2 too many.",
    instance="K = V = 8, w = 64, L = 2: the two matrices of (3) have 1,024 entries, and the number is 5,120.",
    corrected="With L for the matrices of (3) the last factor is L - 2. $$p = wK + wV + w^2 (L - 2)$$",
    disproof="two_layers_equation_3.py",
    amendment="with L - 2 in place of L - 1, or with L for the number of hidden layers",
    proof="equation_03.py",
    derivation="equation_03.py",
)


@EQUATION_3.charitable(
    "equation-3.hidden-layers",
    computed("1 hidden layer", "2 hidden layers"),
    identity(within=0),
    where="below Eq. (3): the number of parameters, L hidden layers",
)
def difference_of_drawn(run) -> np.ndarray:
    """The number of parameters that the paper gives is that of a drawn network with L hidden layers."""
    drawn = [network.draw(root_key(0), dataclasses.replace(DIMS, num_hidden=number)) for number in (1, 2)]
    ends = DIMS.width * (DIMS.max_experts + DIMS.num_tasks)
    sizes = [sum(layer.size for layer in each.layers) for each in drawn]
    return alike(run, [abs(size - ends - DIMS.width**2 * place) for place, size in enumerate(sizes)])


@EQUATION_3.literal(
    "equation-3.parameters",
    computed(*(f"L = {depth}" for depth in DEPTHS)),
    identity(within=0),
    where="below Eq. (3): the number of parameters",
)
def difference(run) -> np.ndarray:
    """The number of parameters that the paper gives is that of the L matrices that (3) multiplies."""
    width, ends = DIMS.width, DIMS.width * (DIMS.max_experts + DIMS.num_tasks)
    # The matrices of (3): (w, K), L - 2 times (w, w), and (V, w).
    return alike(run, [abs(ends + width**2 * (depth - 1) - (ends + width**2 * (depth - 2))) for depth in DEPTHS])
