"""Algorithm 1 of the continual paper in Numba: a tile of replicates through all rounds, loops over lanes innermost.

The best that can be had from pip without a compiler of one's own: `limit.cpp` by the same plan, but its vectors are
what LLVM makes of loops. Its draws are cheaper than the engine's: xoshiro128+ and not threefry.
"""

import math
from typing import Any

import numba  # pyright: ignore[reportMissingImports]
import numpy as np
from jaxtyping import Float, Int

from benchmarks.contenders import Run, Setting
from benchmarks.peers.rounds import Constants, RunPart, Trajectory, in_parts

TILE = 16  # replicates
compiled = numba.njit(fastmath={"contract", "arcp", "nsz", "reassoc"}, nogil=True, error_model="numpy")


def prepare(setting: Setting) -> Run:
    """All replicates of a setting, each with a pool of its own, in equal parts on the cores of the process."""

    def prepare_part(constants: Constants, truths: np.ndarray) -> RunPart:
        def run_part(first: int, last: int, errors: np.ndarray) -> None:
            generator = np.random.default_rng([setting.seed, first])
            num_tiles = math.ceil((last - first) / TILE)
            words = generator.integers(1, 2**32, (num_tiles, 4, TILE), np.uint32)
            sizes = setting.num_samples, setting.num_rounds
            run_tiles(numbers(constants, truths.dtype), truths, first, last, *sizes, words, errors)

        return run_part

    return in_parts(setting, TILE, prepare_part)


def play(
    constants: Constants,
    truths: Float[np.ndarray, "B N d"],
    tasks: Int[np.ndarray, "T B"],
    features: Float[np.ndarray, "T B d s"],
    perturbations: Float[np.ndarray, "T B M"],
) -> Trajectory:
    """All replicates' rounds on given arrivals, in the precision of `truths`."""
    T, B = tasks.shape
    experts, errors, forgetting = np.empty((T, B), np.int64), np.empty((T, B)), np.empty((T, B))
    play_tiles(numbers(constants, truths.dtype), truths, tasks, features, perturbations, experts, errors, forgetting)
    return Trajectory(experts, errors, forgetting)


def numbers(constants: Constants, dtype: Any) -> tuple[Any, ...]:
    """Return the constants that compiled code reads by place: `names` (0 to 7), M (8), `terminate` (9) and T1 (10).

    Those of `names` are in the precision of the run.
    """
    names = (
        *("learning_rate", "balance_weight", "perturbation_scale", "termination_threshold", "signal_scale"),
        *("min_strength", "max_strength", "noise_scale"),
    )
    reals = tuple(np.dtype(dtype).type(getattr(constants, name)) for name in names)
    return (*reals, constants.num_experts, constants.terminate, constants.exploration_rounds)


@compiled
def begin(constants, truths, first, last):
    M, (_, N, d), zero = constants[8], truths.shape, truths.dtype.type(0)
    own = np.empty((N, d, TILE), truths.dtype)
    for lane in range(TILE):
        own[:, :, lane] = truths[min(first + lane, last - 1)]
    experts, gates = np.full((M, d, TILE), zero), np.full((M, d, TILE), zero)
    visits, served = np.full((M, TILE), zero), np.full((M, N, TILE), zero)
    flags = np.zeros((M + 1, TILE), np.bool_)  # of the experts, and whether the gates stand still
    return own, experts, gates, visits, served, flags, np.full((2, TILE), zero)


@compiled
def bits(words, out):
    for lane in range(TILE):
        a, b, c, d = words[0, lane], words[1, lane], words[2, lane], words[3, lane]
        out[lane] = a + d
        c, d = c ^ a, d ^ b
        words[1, lane], words[0, lane] = b ^ c, a ^ d
        words[2, lane] = c ^ (b << np.uint32(9))
        words[3, lane] = (d << np.uint32(11)) | (d >> np.uint32(21))


@compiled
def uniforms(words, drawn, out):
    bits(words, drawn)
    for lane in range(TILE):
        out[lane] = (out.dtype.type(drawn[lane] >> np.uint32(8)) + out.dtype.type(0.5)) * out.dtype.type(2.0**-24)


@compiled
def draw(constants, truths, words, drawn, task, features, perturbation):
    """An arrival of Definition 1, its signal in the last column, and the perturbation of (1)."""
    (N, d, _), s, real = truths.shape, len(features), truths.dtype.type
    one, other = np.empty(TILE, truths.dtype), np.empty(TILE, truths.dtype)
    uniforms(words, drawn, one)
    for lane in range(TILE):
        task[lane] = min(int(one[lane] * real(N)), N - 1)
    count = (s - 1) * d
    flat = features.reshape(s * d, TILE)
    for place in range(0, count, 2):
        uniforms(words, drawn, one)
        uniforms(words, drawn, other)
        for lane in range(TILE):
            radius = constants[7] * np.sqrt(real(-2) * np.log(one[lane]))
            turn = real(2 * np.pi) * other[lane]
            flat[place, lane] = radius * np.cos(turn)
            flat[place + 1, lane] = radius * np.sin(turn)
    uniforms(words, drawn, one)
    for lane in range(TILE):
        one[lane] = constants[4] * (constants[5] + (constants[6] - constants[5]) * one[lane])
    for k in range(d):
        for lane in range(TILE):
            features[s - 1, k, lane] = one[lane] * truths[task[lane], k, lane]
    for m in range(len(perturbation)):
        uniforms(words, drawn, perturbation[m])
        for lane in range(TILE):
            perturbation[m, lane] *= constants[2]


@compiled
def project(features, left):
    """What the span of the samples leaves of `left`, in place, and of the samples, by modified Gram-Schmidt."""
    s, d, _ = features.shape
    part, inverse = np.empty(TILE, left.dtype), np.empty(TILE, left.dtype)
    for i in range(s):
        inverse[:] = 0
        for k in range(d):
            for lane in range(TILE):
                inverse[lane] += features[i, k, lane] * features[i, k, lane]
        for lane in range(TILE):
            inverse[lane] = 1 / inverse[lane]
        for j in range(i + 1, s + 1):
            column = features[j] if j < s else left
            part[:] = 0
            for k in range(d):
                for lane in range(TILE):
                    part[lane] += features[i, k, lane] * column[k, lane]
            for lane in range(TILE):
                part[lane] *= inverse[lane]
            for k in range(d):
                for lane in range(TILE):
                    column[k, lane] -= part[lane] * features[i, k, lane]


@compiled
def take_round(constants, tile, task, features, perturbation, t, expert):
    """Round t = 1, 2, ... of a tile.

    Source: Eqs. (1)-(9), (14)-(16) and Algorithm 1 of `continual`, flags accumulating and q = 1 in (6).
    """
    truths, experts, gates, visits, served, flags, sums = tile
    (N, d, _), M, s, real = truths.shape, constants[8], len(features), truths.dtype.type
    gate_input, outputs = np.zeros((d, TILE), truths.dtype), np.zeros((M, TILE), truths.dtype)
    for i in range(s):
        for k in range(d):
            for lane in range(TILE):
                gate_input[k, lane] += features[i, k, lane]
    for m in range(M):
        for k in range(d):
            for lane in range(TILE):
                outputs[m, lane] += gates[m, k, lane] * gate_input[k, lane]
    best, own = outputs[0] + perturbation[0], outputs[0].copy()
    expert[:] = 0
    for m in range(1, M):
        for lane in range(TILE):
            score = outputs[m, lane] + perturbation[m, lane]
            is_better = score > best[lane]
            best[lane] = score if is_better else best[lane]
            own[lane] = outputs[m, lane] if is_better else own[lane]
            expert[lane] = m if is_better else expert[lane]

    before, left = np.empty((d, TILE), truths.dtype), np.empty((d, TILE), truths.dtype)
    for k in range(d):
        for lane in range(TILE):
            before[k, lane] = experts[expert[lane], k, lane]
            left[k, lane] = truths[task[lane], k, lane] - before[k, lane]
    gap = left.copy()
    project(features, left)
    moved, shift, missing = np.zeros((3, TILE), truths.dtype)
    for k in range(d):
        for lane in range(TILE):
            change = gap[k, lane] - left[k, lane]
            gap[k, lane] = change
            moved[lane] += change * change
            shift[lane] += change * (2 * before[k, lane] + change)
            missing[lane] += left[k, lane] * left[k, lane]
    total, product = np.zeros(TILE, truths.dtype), np.empty(TILE, truths.dtype)
    for n in range(N):
        product[:] = 0
        for k in range(d):
            for lane in range(TILE):
                product[lane] += truths[n, k, lane] * gap[k, lane]
        for lane in range(TILE):
            # Only this expert's errors on past tasks change: |w' - w_n|^2 - |w - w_n|^2 in centred form.
            total[lane] += served[expert[lane], n, lane] * (shift[lane] - 2 * product[lane])
    scale = np.zeros(TILE, truths.dtype)
    for m in range(M):
        for lane in range(TILE):
            outputs[m, lane] -= own[lane]
    if t > constants[10]:
        for lane in range(TILE):
            are_all = True
            for m in range(M):
                flags[m, lane] |= abs(outputs[m, lane]) < constants[3]
                are_all &= flags[m, lane]
            flags[M, lane] |= constants[9] and are_all
    for m in range(M):
        for lane in range(TILE):
            outputs[m, lane] = np.exp(outputs[m, lane])
            scale[lane] += outputs[m, lane]
    for lane in range(TILE):
        m = expert[lane]
        visits[m, lane] += 1
        served[m, task[lane], lane] += 1
        cost = np.sqrt(moved[lane]) + constants[1] * M / (real(t) * real(t)) * visits[m, lane]
        scale[lane] = 1 / scale[lane]
        product[lane] = real(0) if flags[M, lane] else constants[0] * cost * scale[lane]
        sums[0, lane] += total[lane]
        sums[1, lane] += total[lane] + missing[lane]
    for k in range(d):
        for lane in range(TILE):
            experts[expert[lane], k, lane] = before[k, lane] + gap[k, lane]
    for m in range(M):
        for k in range(d):
            for lane in range(TILE):
                slope = product[lane] * ((expert[lane] == m) - outputs[m, lane] * scale[lane])
                gates[m, k, lane] -= slope * gate_input[k, lane]


@compiled
def run_tiles(constants, truths, first, last, num_samples, num_rounds, words, errors):
    """G_T of the replicates from `first` up to `last`, on arrivals of their own."""
    M, (_, _, d), dtype = constants[8], truths.shape, truths.dtype
    task, expert, drawn = np.empty(TILE, np.int64), np.empty(TILE, np.int64), np.empty(TILE, np.uint32)
    # An odd number of normals reaches one beyond its rows, into the signal's, which is written afterwards.
    features, perturbation = np.empty((num_samples, d, TILE), dtype), np.empty((M, TILE), dtype)
    for start in range(first, last, TILE):
        own = words[(start - first) // TILE]
        tile = begin(constants, truths, start, last)
        for t in range(1, num_rounds + 1):
            draw(constants, tile[0], own, drawn, task, features, perturbation)
            take_round(constants, tile, task, features, perturbation, t, expert)
        for lane in range(min(TILE, last - start)):
            errors[start + lane] = tile[6][1, lane] / num_rounds


@compiled
def play_tiles(constants, truths, tasks, features, perturbations, experts, errors, forgetting):
    """m_t, G_t and F_t (T, B) on given arrivals."""
    (T, B), d, M, s = tasks.shape, truths.shape[2], constants[8], features.shape[3]
    task, expert = np.empty(TILE, np.int64), np.empty(TILE, np.int64)
    own, perturbation = np.empty((s, d, TILE), truths.dtype), np.empty((M, TILE), truths.dtype)
    for start in range(0, B, TILE):
        tile = begin(constants, truths, start, B)
        for t in range(T):
            for lane in range(TILE):
                replicate = min(start + lane, B - 1)
                task[lane] = tasks[t, replicate]
                own[:, :, lane] = features[t, replicate].T
                perturbation[:, lane] = perturbations[t, replicate]
            take_round(constants, tile, task, own, perturbation, t + 1, expert)
            for lane in range(min(TILE, B - start)):
                experts[t, start + lane] = expert[lane]
                errors[t, start + lane] = tile[6][1, lane] / (t + 1)
                forgetting[t, start + lane] = tile[6][0, lane] / max(t, 1)
