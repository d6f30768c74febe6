"""Algorithm 1 of the continual paper in batched PyTorch: all replicates at once, one Python loop over the rounds.

On the processor that JAX computes on. The replicates are the last axis of every array, so that each call is long
contiguous arithmetic, and what does not depend on the models (arrivals, gate inputs, orthonormal bases of the samples)
is made for a block of rounds at once.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from jaxtyping import Bool, Float, Int
from torch import Tensor  # pyright: ignore[reportMissingImports]

from benchmarks.contenders import Run, Setting
from benchmarks.peers.rounds import Constants, Trajectory, constants_of, draw_truths
from moe_theory.continual import Params

# What is drawn together: on a CPU as much as stays in the cache, on a GPU as much as fills it.
BLOCK_WIDTH = 2048  # replicate-rounds, on a CPU
BLOCK_LENGTH = 16  # rounds, on a GPU


class Block(NamedTuple):
    """What all replicates meet in K rounds."""

    tasks: Int[Tensor, "K B"]  # n_t
    features: Float[Tensor, "s d K B"]  # X_t
    perturbations: Float[Tensor, "K M B"]  # r_t


def prepare(setting: Setting, one_round: Callable[..., Trajectory] | None = None) -> Run:
    """All replicates of a setting together, each with a pool of its own, from one generator; `one_round` in the place
    of `take_round`.
    """
    constants = constants_of(Params(num_experts=setting.num_experts))
    device = "cuda" if jax.default_backend() == "gpu" and torch.cuda.is_available() else "cpu"

    @torch.inference_mode()
    def run() -> np.ndarray:
        generator = torch.Generator(device).manual_seed(setting.seed)
        pools = draw_truths(np.random.default_rng(setting.seed), setting, constants)
        truths = torch.as_tensor(pools, device=device).permute(2, 1, 0).contiguous()
        blocks = draw_blocks(generator, setting, constants, truths)
        (last,) = deque(play_blocks(constants, truths, blocks, one_round), maxlen=1)  # the last round
        return last.generalization_error.cpu().numpy()

    return run


def play(
    constants: Constants,
    truths: Float[Tensor, "B N d"],
    tasks: Int[Tensor, "T B"],
    features: Float[Tensor, "T B d s"],
    perturbations: Float[Tensor, "T B M"],
    one_round: Callable[..., Trajectory] | None = None,
) -> Trajectory:
    """All replicates' rounds on given arrivals, in the precision of `truths`."""
    with torch.inference_mode():
        block = Block(tasks, features.permute(3, 2, 0, 1).contiguous(), perturbations.mT.contiguous())
        rounds = play_blocks(constants, truths.permute(2, 1, 0).contiguous(), [block], one_round)
        return Trajectory(*map(torch.stack, zip(*rounds, strict=True)))  # each field over all rounds


def draw_blocks(
    generator: torch.Generator, setting: Setting, constants: Constants, truths: Float[Tensor, "d N B"]
) -> Iterator[Block]:
    """The arrivals of Definition 1 and the perturbations of (1), block by block."""
    B, M, N, d, s = setting.batch, setting.num_experts, setting.num_tasks, setting.num_features, setting.num_samples
    number: dict[str, Any] = {"generator": generator, "device": truths.device}
    real = {**number, "dtype": truths.dtype}
    replicates = torch.arange(B, device=truths.device)
    length = BLOCK_LENGTH if truths.is_cuda else max(BLOCK_WIDTH // B, 1)
    for start in range(0, setting.num_rounds, length):
        K = min(length, setting.num_rounds - start)
        tasks = torch.randint(N, (K, B), **number)
        slots = torch.randint(s, (1, 1, K, B), **number)
        strengths = (
            torch.rand(K, B, **real) * (constants.max_strength - constants.min_strength) + constants.min_strength
        )
        features = torch.randn(s, d, K, B, **real).mul_(constants.noise_scale)
        own = truths.view(d, N * B)[:, tasks * B + replicates]
        features.scatter_(0, slots.expand(1, d, K, B), (strengths * constants.signal_scale * own)[None])
        yield Block(tasks, features, torch.rand(K, M, B, **real).mul_(constants.perturbation_scale))


class Carry(NamedTuple):
    """All replicates between two rounds, changed in place.

    Experts and replicates share an axis, so that one flat index of the chosen expert serves every look-up.
    """

    experts: Float[Tensor, "d M*B"]
    gates: Float[Tensor, "d M B"]
    visits: Float[Tensor, " M*B"]
    converged: Bool[Tensor, "M B"]
    is_terminated: Bool[Tensor, " B"]
    served: Float[Tensor, "N M*B"]  # arrivals of each task at each expert
    forgotten: Float[Tensor, " B"]  # (t - 1) F_t
    remaining: Float[Tensor, " B"]  # t G_t
    replicates: Int[Tensor, " B"]  # 0, ..., B - 1


class Arrivals(NamedTuple):
    """What all replicates meet in one round."""

    task: Int[Tensor, " B"]
    gate_input: Float[Tensor, "d B"]  # sum_i X_i
    basis: Float[Tensor, "s d B"]  # orthonormal, spans the samples
    perturbation: Float[Tensor, "M B"]


def play_blocks(
    constants: Constants,
    truths: Float[Tensor, "d N B"],
    blocks: Iterable[Block],
    one_round: Callable[..., Trajectory] | None = None,
) -> Iterator[Trajectory]:
    """What each round shows, leaves (B,)."""
    one_round = take_round if one_round is None else one_round
    M, (d, N, B) = constants.num_experts, truths.shape
    zeros: Callable[..., Tensor] = truths.new_zeros
    carry = Carry(
        experts=zeros(d, M * B),
        gates=zeros(d, M, B),
        visits=zeros(M * B),
        converged=zeros(M, B, dtype=torch.bool),
        is_terminated=zeros(B, dtype=torch.bool),
        served=zeros(N, M * B),
        forgotten=zeros(B),
        remaining=zeros(B),
        replicates=torch.arange(B, device=truths.device),
    )
    t = 0
    for block in blocks:
        gate_inputs, bases = block.features.sum(0), orthonormal(block.features)
        for k, (task, perturbation) in enumerate(zip(block.tasks, block.perturbations, strict=True)):
            t += 1
            yield one_round(
                constants, truths, carry, Arrivals(task, gate_inputs[:, k], bases[:, :, k], perturbation), t
            )


def take_round(
    constants: Constants, truths: Float[Tensor, "d N B"], carry: Carry, arrivals: Arrivals, t: int
) -> Trajectory:
    """One round of all replicates.

    Source: Eqs. (1)-(9), (14)-(16) and Algorithm 1 of `continual`, flags accumulating and q = 1 in (6).
    """
    d, N, B = truths.shape
    outputs = (carry.gates * arrivals.gate_input[:, None]).sum(0)
    expert = (outputs + arrivals.perturbation).max(0).indices
    chosen = expert * B + carry.replicates
    one = truths.new_ones(B)

    before = carry.experts.index_select(1, chosen)
    gap = truths.view(d, N * B).index_select(1, arrivals.task * B + carry.replicates) - before
    change = ((arrivals.basis * gap).sum(1, keepdim=True) * arrivals.basis).sum(0)
    after = before + change
    carry.experts.index_copy_(1, chosen, after)
    carry.visits.index_add_(0, chosen, one)

    probabilities = torch.softmax(outputs, 0)
    balance = constants.balance_weight * constants.num_experts / t**2
    cost = (change * change).sum(0).sqrt_() + carry.visits.take(chosen) * balance
    pull = constants.learning_rate * cost * probabilities.take(chosen)
    slopes = (probabilities * -pull).view(-1).index_add_(0, chosen, pull).view_as(outputs)
    if t > constants.exploration_rounds:
        carry.converged.logical_or_((outputs - outputs.take(chosen)).abs_() < constants.termination_threshold)
        if constants.terminate:
            carry.is_terminated.logical_or_(carry.converged.all(0))
        slopes.masked_fill_(carry.is_terminated, 0)
    carry.gates.addcmul_(slopes, arrivals.gate_input[:, None], value=-1)

    # Only this expert's errors on past tasks change: |w' - w_n|^2 - |w - w_n|^2 in centred form.
    shifts = (change * (before + after)).sum(0) - 2 * (truths * change[:, None]).sum(0)
    total = (carry.served.index_select(1, chosen) * shifts).sum(0)
    missing = gap - change
    carry.served.view(-1).index_add_(0, arrivals.task * len(carry.visits) + chosen, one)
    carry.forgotten.add_(total)
    carry.remaining.add_(total + (missing * missing).sum(0))
    return Trajectory(expert, carry.remaining / t, carry.forgotten / max(t - 1, 1))


def orthonormal(features: Float[Tensor, "s d K B"]) -> Float[Tensor, "s d K B"]:
    """Orthonormal bases of the samples by modified Gram-Schmidt, so that P = sum_i q_i q_i' is the projector of (5)."""
    basis = features.clone()
    for i in range(basis.shape[0]):
        pivot, later = basis[i], basis[i + 1 :]
        pivot *= (pivot * pivot).sum(0).rsqrt_()
        later.addcmul_((pivot * later).sum(1, keepdim=True), pivot, value=-1)
    return basis
