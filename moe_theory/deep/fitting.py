"""Presets fitted to what a user has: other sizes, another data set, a gate drive to reach, some minutes.

What is measured here (seconds, gate drives) is measured on the first rounds of one run, the pilot, and said.
"""

import dataclasses
import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from moe_theory.core.errors import InvalidParamsError, InvalidRunError
from moe_theory.deep.datasets import DataSet, Images
from moe_theory.deep.gate import mean_image
from moe_theory.deep.presets import CONTINUAL, EDGE, Preset
from moe_theory.deep.runs import WITHOUT_EFFECT, Plan, digest_of, pilot, set_by
from moe_theory.deep.tasks import pool_of, sample_rows
from moe_theory.runs.files import read_json, write_whole
from moe_theory.verify.interim import alpha_spent

CHOSEN = "chosen.json"  # beside the results
# Median kappa that is aimed at by default: where early termination decides, or where servers specialise.
DRIVES = {CONTINUAL: 3.0, EDGE: 30.0}
PILOT_ROUNDS = 10
EARLY_ROUNDS = 3  # in which an expert that diverges does so mostly
PROBE_STEPS = (2, 12)  # gradient steps of rounds that are timed
PROBE_ROUNDS, BRIEF = 40, 0.3  # of a run that is timed if two rounds take less than 0.3 seconds
PROBE_IMAGES = 500  # test images of a run that is timed
FEWEST, ENOUGH, MOST = 4, 60, 128  # seeds: that a run may have, that are aimed at, that are taken at most
LOOKED_AT = 12  # seeds whose first rounds show whether experts diverge
SHORTEST = 20  # rounds
MEASURED_TASKS = 200  # whose mean images give sigma_0
MARGIN = 0.8  # share of the minutes that is planned for
HALVINGS = 4  # of an expert's step size that diverges
SMALLER = {"five-layer": "five-layer-small", "resnet18": "resnet18-small"}


class Sizes(NamedTuple):
    """Sizes that replace those of a preset; None keeps the preset's."""

    network: str | None = None  # a key of `networks.NETWORKS`
    num_epochs: int | None = None
    num_samples: int | None = None  # training images of a task
    batch_size: int | None = None
    num_rounds: int | None = None
    experts: tuple[int, ...] | None = None  # the numbers M that are compared
    classes: tuple[int, ...] | None = None  # of the data set, that tasks are to recognise
    test_images: int | None = None  # of the data set, that experts are evaluated on; all unless given


class FittedPlan(NamedTuple):
    """Plan and sizes chosen for a time limit or a gate drive, and how they were found."""

    plan: Plan
    told: list[str]
    sizes: Sizes = Sizes()  # in place of those of the plan before


def resized(preset: Preset, sizes: Sizes) -> Preset:
    """The preset with other sizes. A batch is never larger than the samples.

    Raises: UnknownNameError for an unknown network; InvalidDimsError for sizes below 1, or a batch that does not divide
        the samples; InvalidRunError for no number of experts, or one twice.
    """
    experts = preset.experts if sizes.experts is None else sizes.experts
    if not experts or len(set(experts)) < len(experts):
        raise InvalidRunError(f"experts={list(experts)} must be one or more different numbers. Change experts.")
    classes = preset.classes if sizes.classes is None else tuple(sizes.classes)
    own = {
        "num_classes": len(classes),
        "network": sizes.network,
        "num_epochs": sizes.num_epochs,
        "num_samples": sizes.num_samples,
        "batch_size": sizes.batch_size,
        "max_rounds": sizes.num_rounds,
        "max_experts": max(experts),
    }
    changes = {name: value for name, value in own.items() if value is not None}
    samples = changes.get("num_samples", preset.dims.num_samples)
    if "batch_size" not in changes:
        changes["batch_size"] = min(preset.dims.batch_size, max(samples, 1))
    dims = dataclasses.replace(preset.dims, **changes)
    return dataclasses.replace(preset, dims=dims, experts=tuple(experts), classes=classes)


def thinned(data: DataSet, test_images: int | None) -> DataSet:
    """The data set with `test_images` test images, evenly spread over all. Raises: InvalidRunError for none."""
    if test_images is None or test_images >= len(data.test.labels):
        return data
    if test_images < 1:
        raise InvalidRunError(f"test_images={test_images} must be at least 1. Raise test_images.")
    rows = np.linspace(0, len(data.test.labels) - 1, test_images).round().astype(int)
    return dataclasses.replace(data, test=Images(data.test.pixels[rows], data.test.labels[rows]))


def check(plan: Plan, minutes: float | None, kappa: float | None, is_literal: bool = False) -> None:
    """Refuse what cannot be asked for, before anything runs.

    Raises: InvalidRunError for minutes, and InvalidParamsError for a gate drive, that are not above 0, or for a drive
        where gate_scale is set as well, or differs between the cells.
    """
    if minutes is not None and not 0 < minutes < math.inf:
        raise InvalidRunError(f"minutes={minutes} must be above 0. Raise minutes.")
    if kappa is not None and not 0 < kappa < math.inf:
        raise InvalidParamsError(f"kappa={kappa} must be above 0. Raise kappa.")
    if kappa is not None and "gate_scale" in plan.settings:
        raise InvalidParamsError("gate_scale and kappa decide the same: drop one of both.")
    if is_literal and (kappa is not None or _compares_scales(plan)):
        raise InvalidParamsError("--literal leaves the gate's input as it is: drop it, or what scales that input.")
    if kappa is not None and _compares_scales(plan):
        raise InvalidParamsError(f"{plan.preset.name} compares scales of the gate's input: drop kappa.")


def _compares_scales(plan: Plan) -> bool:
    """Whether its cells differ in the scale of the gate's input."""
    return "gate_scale" in set_by(plan.preset)


def fit(
    plan: Plan, given: Sizes, minutes: float | None, kappa: float | None, num_claims: int, error: float
) -> FittedPlan:
    """`within` the minutes, if given, with a step size at which experts converge; then `at_drive`. The plan's settings
    and `given` are kept, which have passed `check`.

    Raises: InvalidRunError for a pilot that chooses nothing.
    """
    told, sizes = [], Sizes()
    if minutes is not None:
        plan, told, sizes = within(plan, given, minutes, num_claims, error)
        if not {"expert_rate", "final_rate"} & {*plan.settings}:
            plan, more, _ = converging(plan)
            told += more
    if kappa is not None or not (_compares_scales(plan) or "gate_scale" in plan.settings):
        plan, more, _ = at_drive(plan, DRIVES[plan.preset.paper] if kappa is None else kappa)
        told += more
    return FittedPlan(plan, told, sizes)


def keep(path: Path, choice: FittedPlan, plan: Plan, given: Sizes, minutes: float | None, kappa: float | None) -> None:
    """Write what was chosen for this request, which timings would choose otherwise another time."""
    found = {
        "sizes": choice.sizes._asdict(),
        "replicates": choice.plan.replicates,
        "settings": dict(choice.plan.settings),
    }
    request = _request(plan, given, minutes, kappa)
    write_whole(path, json.dumps({"request": request, **found, "told": choice.told}, indent=1).encode())


def kept_choice(path: Path, plan: Plan, given: Sizes, minutes: float | None, kappa: float | None) -> FittedPlan | None:
    """The earlier choice for the same request; None if there is no readable one."""
    try:
        found = read_json(path)
        if found["request"] != json.loads(json.dumps(_request(plan, given, minutes, kappa))):
            return None
        sizes = Sizes(**found["sizes"])
        resumed = dataclasses.replace(_resized_plan(plan, sizes), replicates=found["replicates"])
        chosen = dataclasses.replace(resumed, settings=found["settings"])
        return FittedPlan(chosen, ["as chosen before:", *found["told"]], sizes)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _request(plan: Plan, given: Sizes, minutes: float | None, kappa: float | None) -> dict[str, Any]:
    about = (plan.preset.name, digest_of(plan.data), plan.reading.name, plan.seed, dict(plan.settings))
    return {"of": about, "given": given, "minutes": minutes, "kappa": kappa}


def literal(plan: Plan) -> FittedPlan:
    """The parameters that the theorems ask for, at the measured sigma_0 of an element of the mean images across tasks,
    and these images as they are: eta = alpha = sigma_0^.5 and lambda = Gamma = sigma_0^1.25; of servers eta and lambda.

    Source: Section 3.2 and Theorem 1 of `continual`, Section VI of `edge`.
    Raises: InvalidParamsError where one of them is set as well.
    """
    deviation = deviation_of(plan)
    own = {
        "gate_scale": 1.0,
        "centre": False,
        "learning_rate": deviation**0.5,
        "balance_weight": deviation**0.5,
        "perturbation_scale": deviation**1.25,
        "termination_threshold": deviation**1.25,
    }
    own = {name: value for name, value in own.items() if name not in WITHOUT_EFFECT[plan.preset.paper]}
    if both := sorted(own.keys() & plan.settings.keys()):
        raise InvalidParamsError(f"--literal sets {both[0]}: drop one of both.")
    chosen = {name: value if isinstance(value, bool) else float(f"{value:.3g}") for name, value in own.items()}
    listed = ", ".join(f"{name}={value}" for name, value in chosen.items())
    told = f"sigma_0 of the mean images of {MEASURED_TASKS} tasks is {deviation:.3g}: {listed}"
    return FittedPlan(_with_settings(plan, chosen), [told])


def deviation_of(plan: Plan) -> float:
    """Root of the variance across tasks of an element of their normalised mean images, mean over elements."""
    pool, dims = pool_of(plan.data, plan.preset.classes), plan.preset.dims
    params, rng = next(iter(plan.params().values())), np.random.default_rng(plan.seed)
    means = []
    for _ in range(MEASURED_TASKS):
        task, uniforms = int(rng.integers(dims.num_classes)), rng.random(dims.num_samples, np.float32)
        rows = sample_rows(pool.train, jnp.asarray(task), jnp.asarray(uniforms), params.positive_share)
        means.append(np.asarray(mean_image(jnp.asarray(pool.train.pixels[np.asarray(rows)]))))
    return float(np.sqrt(np.mean(np.var(means, axis=0))))


def at_drive(plan: Plan, target: float) -> FittedPlan:
    """The scale of the gate's input at which the pilot's median kappa is the target: kappa goes as its square. The plan
    has passed `check`. Raises: InvalidRunError for a pilot without a gate drive.
    """
    cell, params = _largest(plan)
    records = pilot(plan, cell, _pilot_rounds(plan)).records
    found = float(np.median(records.drive[records.expert >= 0]))
    if not math.isfinite(found) or found <= 0:
        raise InvalidRunError(
            f"the pilot's median kappa is {found:g}: its experts diverge or stay as they are. Lower expert_rate, "
            "or set gate_scale."
        )
    scale = float(f"{float(params.gate_scale) * math.sqrt(target / found):.3g}")
    told = (
        f"gate_scale {float(params.gate_scale):g} has a median kappa of {found:.2g} in {_pilot_rounds(plan)} pilot "
        f"rounds of {cell}: {scale:g} is taken, for {target:g}"
    )
    return FittedPlan(_with_settings(plan, {"gate_scale": scale}), [told])


def converging(plan: Plan) -> FittedPlan:
    """The expert's step size halved until it diverges in none of the first rounds of the first seeds, with the fewest
    experts and with the most. Raises: InvalidRunError if four halvings do not do.
    """
    cells = plan.params()
    ends = {number(cells.items(), key=lambda item: int(item[1].num_experts))[0] for number in (min, max)}
    params = next(iter(cells.values()))
    for halvings in range(HALVINGS + 1):
        rates = {name: float(getattr(params, name)) / 2**halvings for name in ("expert_rate", "final_rate")}
        tried = _with_settings(plan, rates) if halvings else plan
        if all(
            _converges(tried, cell, seed) for seed in range(min(plan.replicates, LOOKED_AT)) for cell in sorted(ends)
        ):
            was, now = float(params.expert_rate), rates["expert_rate"]
            told = f"experts diverge in the pilot at expert_rate={was:g}: {now:g} is taken"
            return FittedPlan(tried, [told] if halvings else [])
    raise InvalidRunError(
        f"experts diverge in the pilot even at expert_rate={float(params.expert_rate) / 2**HALVINGS:g}. Change network."
    )


def _converges(plan: Plan, cell: str, seed: int) -> bool:
    rounds = min(EARLY_ROUNDS, plan.preset.num_rounds)
    return bool(np.all(np.isfinite(pilot(plan, cell, rounds, replicate=seed).records.locality)))


def within(plan: Plan, given: Sizes, minutes: float, num_claims: int, error: float) -> FittedPlan:
    """Sizes and seeds with which all cells take about `minutes`: the preset's own if they do, else smaller ones.

    Smaller are, one after the other, the test images, the epochs, the network; the first with which `ENOUGH` seeds can
    be run (`MOST` with all test images) is taken, else the last, with fewer rounds if `FEWEST` seeds need that.

    Args:
        given: what the user has chosen, which stays.
        num_claims, error: of the preset's figure, to say what the seeds can decide.
    Raises: InvalidRunError for minutes that are too few.
    """
    told, seconds, sizes, began = [], math.inf, Sizes(), time.monotonic()
    cells, budget = len(plan.preset.cells()), MARGIN * 60 * minutes
    for sizes in ladder(plan.preset, given):
        tried = _resized_plan(plan, sizes)
        seconds = seconds_per_round(tried)
        told.append(f"{words(tried)}: {_seconds(seconds)} a round")
        budget = min(MARGIN * 60 * minutes, 60 * minutes - (time.monotonic() - began))  # the pilots' time is up, too
        is_whole = sizes.test_images is given.test_images is None
        wanted = MOST if is_whole else ENOUGH  # few of all test images are a task's
        if budget / (cells * tried.preset.num_rounds * seconds) >= wanted:
            break
    rounds = plan.preset.num_rounds
    seeds = int(budget / (cells * rounds * seconds))
    if seeds < FEWEST:
        seeds, rounds = FEWEST, int(budget / (cells * FEWEST * seconds))
        if rounds < SHORTEST:
            least = math.ceil((cells * FEWEST * SHORTEST * seconds / MARGIN + time.monotonic() - began) / 60)
            raise InvalidRunError(
                f"minutes={minutes:g} are too few: {FEWEST} seeds of {SHORTEST} rounds take about {least}. "
                "Raise minutes."
            )
        sizes = sizes._replace(num_rounds=rounds)
    seeds = min(seeds, MOST)
    chosen = dataclasses.replace(_resized_plan(plan, sizes), replicates=seeds)
    expected = cells * rounds * seeds * seconds / 60
    told.append(
        f"chosen: {words(chosen)}, {rounds} rounds, {seeds} seeds, about {expected:.2g} of {minutes:g} minutes; "
        f"{deciding(chosen.looks, error / max(num_claims, 1))}"
    )
    return FittedPlan(chosen, told, sizes)


def ladder(preset: Preset, given: Sizes) -> list[Sizes]:
    """Sizes from the preset's own to ever faster ones; those that are given are kept."""
    dims = preset.dims
    fewer = Sizes(test_images=2000, num_epochs=min(dims.num_epochs, 60))
    found = [Sizes(), Sizes(test_images=2000), fewer]
    brief = fewer._replace(test_images=1000, num_epochs=min(dims.num_epochs, 20))
    if dims.network in SMALLER:
        smaller = SMALLER[dims.network]
        found += [fewer._replace(network=smaller, test_images=1000), brief._replace(network=smaller)]
        found.append(brief._replace(network=smaller, num_epochs=min(dims.num_epochs, 10)))
    if dims.network != "mlp":
        found += [fewer._replace(network="mlp"), brief._replace(network="mlp")]
    chosen: dict[str, Any] = {name: None for name, value in given._asdict().items() if value is not None}
    return list(dict.fromkeys(each._replace(**chosen) for each in found))


def seconds_per_round(plan: Plan) -> float:
    """Time one run alone, which has all cores to itself as two at once do, in rounds of few gradient steps and of more,
    with few test images, since training and evaluation grow with the steps and with the images.
    """
    dims, images, times = plan.preset.dims, len(plan.data.test.labels), []
    for steps in PROBE_STEPS:
        probe = dataclasses.replace(dims, num_epochs=steps, num_samples=dims.batch_size)
        few = thinned(plan.data, PROBE_IMAGES)
        preset = dataclasses.replace(plan.preset, dims=probe)
        timed, cell = dataclasses.replace(plan, preset=preset, data=few, folder=None), _largest(plan)[0]
        rounds, seconds = 2, pilot(timed, cell, 2, is_timed=True).seconds
        if seconds < BRIEF:  # most of which is not of the rounds
            rounds, seconds = PROBE_ROUNDS, pilot(timed, cell, PROBE_ROUNDS, is_timed=True).seconds
        times.append(seconds / rounds)
    step = max(times[1] - times[0], 0.0) / (PROBE_STEPS[1] - PROBE_STEPS[0])
    rest = max(times[0] - PROBE_STEPS[0] * step, 0.0)
    return dims.num_steps * step + rest * max(images / PROBE_IMAGES, 1.0)


def deciding(looks: Sequence[int], error: float) -> str:
    """Number of seeds at each look that must go one way to decide a claim about most runs."""
    from scipy import stats  # takes longer to import than all the rest

    found = []
    for number, seeds in enumerate(looks, start=1):
        spent = error / 4 if len(looks) == 1 else alpha_spent(error, number) / 4
        counts = range(seeds // 2, seeds + 1)
        needed = next((count for count in counts if stats.binom.sf(count - 1, seeds, 0.5) <= spent), None)
        found += [] if needed is None else [f"{needed} of {seeds}"]
    if not found:
        return "too few seeds to decide anything"
    return f"an order of two cells is decided, and no more seeds are run, if it is the same in {' or '.join(found)}"


def words(plan: Plan) -> str:
    """The sizes that a fit may change."""
    dims = plan.preset.dims
    return (
        f"network {dims.network}, {dims.num_epochs} epochs of {dims.num_samples} images in batches of "
        f"{dims.batch_size}, {len(plan.data.test.labels):,} test images"
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"


def _resized_plan(plan: Plan, sizes: Sizes) -> Plan:
    return dataclasses.replace(plan, preset=resized(plan.preset, sizes), data=thinned(plan.data, sizes.test_images))


def _with_settings(plan: Plan, settings: Mapping[str, Any]) -> Plan:
    return dataclasses.replace(plan, settings={**plan.settings, **settings})


def _largest(plan: Plan) -> tuple[str, Any]:
    """The cell with the most experts, and its parameters."""
    cells = plan.params()
    return max(cells.items(), key=lambda item: int(item[1].num_experts))


def _pilot_rounds(plan: Plan) -> int:
    """All where classes arrive one after the other: the first rounds of those are of one class alone."""
    rounds = plan.preset.num_rounds
    return rounds if _largest(plan)[1].incremental else min(PILOT_ROUNDS, rounds)
