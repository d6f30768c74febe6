"""All ways in the paper to serve a slot with a K-expert MoE, by name.

Each build of a method has an entry `NAME-BUILD`. Builds of a method hardly differ in results. Only task-level methods
need the requests' tags, which are their tasks.
"""

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
from jaxtyping import Array, Float, Int, PyTree

from moe_theory.merging.serving import merge, routing
from moe_theory.merging.serving.routing import KINDS, Kind, Routers
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import Examples
from moe_theory.merging.testbed.transformer import Model

MERGED = "merged"  # the reference for costs: one merged expert per layer, with weights chosen when a slot begins

Loaded = PyTree[Array]  # everything that must be in memory to serve a slot


class Deployment(NamedTuple):
    model: Model
    routers: Mapping[str, Routers]  # routers of the methods in use, by the names of their kinds
    calibration: Examples  # training inputs with their tasks, for merges that use data


class ServingMethod(NamedTuple):
    name: str
    prepare: Callable[[Deployment], Loaded]  # called once, before the first slot
    serve: Callable[[Loaded, Float[Array, "n s p"], Int[Array, " n"]], Float[Array, "n C"]]  # (loaded, inputs, tags)
    merge: Callable[[Loaded, Float[Array, " K"]], Loaded] | None = None  # called once per slot, for `serve`
    router: str | None = None  # name of the kind of router that the method needs
    answers_like: str | None = None  # another build with the same logits


def loaded_bytes(loaded: Loaded) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(loaded))


def begin_slot(method: ServingMethod, loaded: Loaded, weights: Float[Array, " K"]) -> Loaded:
    """Return what `method.serve` takes in a slot with these weights."""
    if method.merge is None:
        return loaded
    return method.merge(loaded, weights)


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


def _routed(name: str, router: str, make: Callable[..., transformer.MoE], answers_like: str | None) -> ServingMethod:
    """Return a method that serves with `make(routers, kind, tags=tags)` as its `MoE`."""
    return ServingMethod(
        name=name,
        prepare=lambda deployment: (deployment.model, deployment.routers[router]),
        serve=functools.partial(_serve_routed, make, KINDS[router]),
        router=router,
        answers_like=answers_like,
    )


def _sparse(router: str) -> list[ServingMethod]:
    methods = []
    for build, dispatch in routing.SPARSE_BUILDS.items():
        answers_like = f"{router}-dense" if build == "ragged" else None
        make = functools.partial(routing.sparse, dispatch=dispatch)
        methods.append(_routed(f"{router}-{build}", router, make, answers_like))
    return methods


def _all() -> dict[str, ServingMethod]:
    methods = [
        ServingMethod("average", lambda deployment: merge.average(deployment.model), _serve_one),
        ServingMethod("fisher", lambda deployment: merge.fisher(deployment.model, deployment.calibration), _serve_one),
        ServingMethod(
            "regmean", lambda deployment: merge.regmean(deployment.model, deployment.calibration), _serve_one
        ),
        ServingMethod(MERGED, lambda deployment: deployment.model, _serve_one, merge=merge.weighted),
    ]
    for name in ("smear-example", "smear-token"):
        for build, soft_merge in routing.SOFT_BUILDS.items():
            answers_like = f"{name}-linear" if build == "materialised" else None
            make = functools.partial(routing.soft, build=soft_merge)
            methods.append(_routed(f"{name}-{build}", name, make, answers_like))
    for router in ("token-top-1", "token-top-2", "token-top-3", "rl"):
        methods += _sparse(router)
    for router in ("task-top-1", "task-top-2", "task-top-3"):
        methods += _sparse(router)
        # This build takes batches of a single task.
        methods.append(_routed(f"{router}-one-task", router, routing.of_one_task, f"{router}-dense"))
    return {method.name: method for method in methods}


METHODS = _all()
