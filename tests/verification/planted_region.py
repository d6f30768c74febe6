"""A system whose claim holds in a known region: scale + tilt < 3, up to a little noise."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from moe_theory import System
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.papers import Paper, Reading
from moe_theory.verification import Claim, Experiment
from moe_theory.verification.criteria import UpperBound

BOUND, NOISE = 3.0, 0.1  # the noise is uniform and of this width


class Params(NamedTuple):
    """One parameter of each type, and one that the cell decides."""

    scale: float = 1.0
    tilt: float = 0.0
    count: int = 3
    is_doubled: bool = False
    fixed: float = 0.0


class State(NamedTuple):
    value: jax.Array
    round: jax.Array


def init(key, params):
    del key
    if not isinstance(params.scale, jax.core.Tracer) and params.scale > 1000:
        raise InvalidValueError(f"scale={params.scale} must be at most 1000. Lower scale.")
    return State(jnp.float32(0), jnp.int32(0))


def step(key, state, params):
    noise = NOISE * (jax.random.uniform(key) - 0.5)
    value = jnp.where(params.is_doubled, 2.0, 1.0) * (params.scale + params.tilt) + noise
    return State(jnp.float32(value), state.round + 1), value


def observe_value(state, info):
    del info
    return state.value


EXPERIMENT = Experiment(
    name="planted",
    dims=None,
    system=System(init, step),
    cells={"only": {"fixed": 1.0}},
    num_rounds=2,
    record_every=2,
    observe=observe_value,
    replicates=512,
)
READINGS = {
    "plain": Reading("plain", "as it is", Params()),
    "tilted": Reading("tilted", "tilt = 1", Params(), {"tilt": 1.0}),
}
PAPER = Paper("planted", __name__, "planted", READINGS)
CLAIM = Claim(
    id="planted.region",
    paper="planted",
    where="here",
    statement="The value is below three.",
    experiment=EXPERIMENT,
    observe=lambda runs: runs["only"].records[-1],
    criterion=UpperBound(lambda runs: np.float64(BOUND)),
    module=__name__,
)
