"""Lemma 6: the order of an expert's routing probabilities when exploration ends."""

import dataclasses
import math

import numpy as np

from moe_theory.core.random import normals
from moe_theory.edge import experiments, interventions
from moe_theory.edge.experiments import BY_SCALE, MARGIN, log_probabilities, signal_outputs
from moe_theory.edge.statements.setting import statement
from moe_theory.runs.draws import draws_of
from moe_theory.verification.statement import limit_probability, limit_rate

QUIETER = dataclasses.replace(experiments.FREE_NOISE, low=experiments.QUIET)
FREE = [QUIETER if axis is experiments.FREE_NOISE else axis for axis in experiments.FREE]  # down to `QUIET`
LEMMA_6 = statement("lemma-6", module=__name__, free=(*FREE, experiments.FREE_SERVERS))
VANISHES = limit_probability(to=0, margin=0.15)


@LEMMA_6.charitable("lemma-6.features", experiments.BY_SCALE_QUIET, VANISHES)
def any_disorder_of_features(run) -> np.ndarray:
    signals = run.state.pool.signals.astype(np.float64)
    params = run.params
    num_tasks, num_features, _ = signals.shape
    least = float(params.min_strength)
    most = float(params.max_strength)
    strengths = least + (most - least) * draws_of(run, num_tasks, stream=1).T
    columns = draws_of(run, num_tasks * num_features, stream=2, law=normals).T.reshape(num_tasks, num_features, -1)
    noise = float(params.noise_scale) * math.sqrt(run.dims.num_samples - 1) * columns  # sum of s - 1 noise columns
    logs = log_probabilities(experiments.outputs_at_t1(run, strengths[:, None] * signals + noise))
    return np.any(signal_outputs(run).argmax(axis=1) != logs.argmax(axis=1), axis=0)


@LEMMA_6.replacement("lemma-6.order", BY_SCALE, VANISHES)
def any_disorder(run) -> np.ndarray:
    outputs = signal_outputs(run)
    return np.any(outputs.argmax(axis=1) != log_probabilities(outputs).argmax(axis=1), axis=0)


EQUATION_28 = statement("equation-28", module=__name__)
KINDS_APART = limit_rate(at_most=0.5, margin=MARGIN)


@EQUATION_28.intervention("equation-28.long-signals", interventions.WITHOUT_SMALL_OUTPUTS, KINDS_APART)
@EQUATION_28.suspect("equation-28.no-noise", interventions.WITHOUT_NOISE, KINDS_APART)
@EQUATION_28.charitable("equation-28.kinds", BY_SCALE, KINDS_APART, instead="equation-33.all-pairs")
def gap_of_kinds(run) -> np.ndarray:
    return np.ptp(np.exp(log_probabilities(signal_outputs(run))), axis=1).max(axis=0)
