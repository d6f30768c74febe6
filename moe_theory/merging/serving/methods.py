"""Every way of the paper's evaluation to serve a slot with a K-expert MoE, by name.

A method that is built in several ways has as many entries, `NAME-BUILD`: what it computes is one thing, what it costs
another. All serve requests that have no tags, but for the task-level ones.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float, Int, PyTree

from moe_theory.core.errors import unknown_name
from moe_theory.merging.serving import merge, routing
from moe_theory.merging.serving.routing import KINDS, TASK, Kind, Routers
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import Examples
from moe_theory.merging.testbed.transformer import Model

MERGED = "merged"  # one merged expert a layer, with weights that a slot begins with: what all costs are relative to
ONE_TASK = "one-task"  # the build of task-level routing that takes batches of a single task
EXACT_BUILD = "dense"  # the build of sparse routing that is a plain sum over experts

Loaded = PyTree[Array]  # all that must be in memory to serve a slot


class Deployment(NamedTuple):
    """What there is before the first slot."""

    model: Model
    routers: Mapping[str, Routers]  # by their kinds' names; those that the methods in question need
    calibration: Examples  # training inputs with their tasks, for merges that look at data


class Method(NamedTuple):
    """How slots are served."""

    name: str
    summary: str
    prepare: Callable[[Deployment], Loaded]  # once, before the first slot
    serve: Callable[[Loaded, Float[Array, "n s p"], Int[Array, " n"]], Float[Array, "n C"]]  # (.., inputs, tags)
    merge: Callable[[Loaded, Float[Array, " K"]], Loaded] | None = None  # once a slot; then `serve` takes what it gives
    router: str | None = None  # the kind of router that it needs
    needs_tags: bool = False  # at inference, of every request
    needs_calibration: bool = False  # inputs with their tasks, once
    needs_mix: bool = False  # the slot's, as a monitor estimates it, or rewards: whoever gives `merge` its weights
    takes_one_task: bool = False  # a batch must be of a single task
    answers_like: str | None = None  # another build, which gives the same logits


def loaded_bytes(loaded: Loaded) -> int:
    """Bytes of its arrays."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(loaded))


def begin_slot(method: Method, loaded: Loaded, weights: Float[Array, " K"]) -> Loaded:
    """What serves the slot: for a method that merges slot by slot, its merge with these weights."""
    return loaded if method.merge is None else method.merge(loaded, weights)


def named(name: str) -> Method:
    """Raise UnknownNameError for a method that there is not."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


def _serve_one(model: Model, inputs: Float[Array, "n s p"], tags: Int[Array, " n"]) -> Float[Array, "n C"]:
    del tags
    return transformer.forward(model, inputs, merge.single)


def _serve_routed(
    make: Callable[..., transformer.MoE],
    kind: Kind,
    loaded: tuple[Model, Routers],
    inputs: Float[Array, "n s p"],
    tags: Int[Array, " n"],
) -> Float[Array, "n C"]:
    model, routers = loaded
    return transformer.forward(model, inputs, make(routers, kind, tags=tags))


def _routed(name: str, router: str, make: Callable[..., transformer.MoE], summary: str, **also: Any) -> Method:
    kind = KINDS[router]
    return Method(
        name=name,
        summary=summary,
        prepare=lambda deployment: (deployment.model, deployment.routers[router]),
        serve=functools.partial(_serve_routed, make, kind),
        router=router,
        needs_tags=kind.level == TASK,
        **also,
    )


def _sparse_methods(router: str, summary: str) -> list[Method]:
    made = []
    for build, run in routing.SPARSE_BUILDS.items():
        make = functools.partial(routing.sparse, dispatch=run)
        same = f"{router}-{EXACT_BUILD}" if build == "ragged" else None
        words = f"{summary}, {_BUILD_WORDS[build]}"
        made.append(_routed(f"{router}-{build}", router, make, words, answers_like=same))
    return made


def _soft(routers: Routers, kind: Kind, tags: Int[Array, " n"], build: routing.SoftMerge) -> transformer.MoE:
    del tags
    return routing.soft(routers, kind, build)


def _one_task(routers: Routers, kind: Kind, tags: Int[Array, " n"]) -> transformer.MoE:
    return routing.of_one_task(routers, kind, tags)


def _static_merges() -> list[Method]:
    return [
        Method(
            "average", "one expert, the average of all", lambda deployment: merge.average(deployment.model), _serve_one
        ),
        Method(
            "fisher",
            "one expert, averaged by Fisher information",
            lambda deployment: merge.fisher(deployment.model, deployment.calibration),
            _serve_one,
            needs_calibration=True,
        ),
        Method(
            "regmean",
            "one expert, RegMean's least squares",
            lambda deployment: merge.regmean(deployment.model, deployment.calibration),
            _serve_one,
            needs_calibration=True,
        ),
        Method(
            MERGED,
            "one expert, merged for every slot with given weights",
            lambda deployment: deployment.model,
            _serve_one,
            merge=merge.weighted,
            needs_mix=True,
        ),
    ]


_BUILD_WORDS = {
    "capacity": f"experts with room for {routing.CAPACITY_FACTOR} times an even share",
    "dense": "all experts computed and gated",
    "ragged": "tokens sorted by expert",
    "linear": "merged in what enters the experts",
    "materialised": "merged parameters held in memory",
}


def _all() -> dict[str, Method]:
    made = _static_merges()
    for level in ("example", "token"):
        for build, run in routing.SOFT_BUILDS.items():
            words = f"SMEAR: a merge for every {level}, {_BUILD_WORDS[build]}"
            name = f"smear-{level}"
            same = f"{name}-linear" if build == "materialised" else None
            made.append(_routed(f"{name}-{build}", name, functools.partial(_soft, build=run), words, answers_like=same))
    for k in (1, 2, 3):
        made += _sparse_methods(f"token-top-{k}", f"Switch: {k} of the experts for every token")
    made += _sparse_methods("rl", "one expert for every token, learnt by REINFORCE")
    for k in (1, 2, 3):
        router = f"task-top-{k}"
        made += _sparse_methods(router, f"{k} of the experts for every task, by tags")
        words = f"{k} of the experts for every task, by tags, a batch of one task"
        same = f"{router}-{EXACT_BUILD}"
        name = f"{router}-{ONE_TASK}"
        made.append(_routed(name, router, _one_task, words, takes_one_task=True, answers_like=same))
    return {method.name: method for method in made}


METHODS = _all()
