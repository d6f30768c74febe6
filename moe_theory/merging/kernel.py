"""The neural tangent kernel of the reward network (3), in the limit of infinite width, over pairs of weights and mix.

Source: Definition 1 and its references [29], [50]; Y. Cho, L. Saul, "Kernel methods for deep learning", 2009.
"""

import numpy as np
from jaxtyping import Float

from moe_theory.core.errors import InvalidParamsError


def neural_tangent_kernel(
    points: Float[np.ndarray, "n K"],
    mixes: Float[np.ndarray, "n V"] | None = None,
    num_layers: int = 2,
    output_variance: float = 1.0,
) -> Float[np.ndarray, "n n"]:
    """The limit of <g, g'>/w, g the gradient of psi' f(x, theta) in theta, for a ReLU network of L layers.

    Entries of hidden layers are N(0, 2/w), so that layers keep norms; those of the last are N(0, s/w). Then with
    S_1 = <x, x'>, S_{l+1} = 2 E[relu(a) relu(b)] and D_l = 2 E[1(a > 0) 1(b > 0)] for (a, b) normal with the covariance
    that S_l gives, the last layer has <psi, psi'> S_L, layer l < L has <psi, psi'> (s/2) S_l D_l ... D_{L-1}. At s = 1
    and one output this is the H of [29]; at s = 2 the kernel before it is halved.

    The network is homogeneous in x, so that |x| = 1 is not needed, which Assumption 2 asks for and weights on the
    simplex have at its corners alone. A candidate that stays is an arm again in later slots: rows are equal, so that
    the smallest eigenvalue over all slots is 0, not the lambda_0 > 0 of Assumption 2.

    Args:
        mixes: psi, one a point; all of them equal to one output if None.
        num_layers: L, matrices of the network, at least 2. output_variance: s.
    Source: Eq. (3), Definition 1. Raises: InvalidParamsError for fewer than 2 layers.
    """
    if num_layers < 2:
        raise InvalidParamsError(f"num_layers={num_layers} must be at least 2, a hidden one and the last. Raise it.")
    inputs = np.asarray(points, float)
    covariance = inputs @ inputs.T
    squares = np.diag(covariance)
    norms = np.sqrt(np.outer(squares, squares))
    tangent = np.zeros_like(covariance)
    for _ in range(num_layers - 1):
        cosine = np.clip(covariance / np.where(norms > 0, norms, 1), -1, 1)
        np.fill_diagonal(cosine, 1)  # rounding here would be magnified by the root and the arc cosine at 1
        angle = np.arccos(cosine)
        slopes = 1 - angle / np.pi
        tangent = (tangent + covariance) * slopes
        covariance = norms * (np.sqrt(1 - cosine**2) + cosine * (np.pi - angle)) / np.pi
    shared = 1.0 if mixes is None else np.asarray(mixes, float) @ np.asarray(mixes, float).T
    return shared * (covariance + output_variance / 2 * tangent)
