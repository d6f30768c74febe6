"""The rounds of a run and its records. Random numbers are drawn for a block of rounds at once."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from moe_theory.core.constraints import is_known

# Rounds that are prepared at once. This is enough to amortise the cost, and fits the cache.
ROUNDS_AHEAD = 16
# A CPU program with room for several records has room for at least FEWEST_RECORDS. Up to MOST_RECORDS it has room for a
# power of two, so that runs of other lengths share it.
FEWEST_RECORDS = 16
MOST_RECORDS = 2**12
MOST_SPARE = 0.1  # most unused rounds, relative to all rounds, for longer blocks


class Blocks(NamedTuple):
    """How a run is divided into blocks. Its lengths are fixed here, or passed to a program that runs share."""

    ahead: int  # rounds per block
    room: int  # room for this many records
    shared: int  # records per block, or 0 if a record takes several blocks
    fixed: tuple[int, int] | None = None  # the number of rounds, and the number between records


def planned(num_rounds: int, record_every: int, fewest: int = FEWEST_RECORDS) -> tuple[Blocks, Any]:
    """Return a run's blocks and lengths. If it has several records, there is room for at least `fewest`."""
    count = -(-num_rounds // record_every)  # rounded up
    if max(num_rounds, record_every) > np.iinfo(np.int32).max:  # lengths are passed as int32
        return fixed_blocks(num_rounds, record_every), ()
    room = count
    if 1 < count <= MOST_RECORDS:
        room = max(1 << (count - 1).bit_length(), fewest)  # rounded up to a power of two
    lengths = (np.int32(num_rounds), np.int32(record_every))
    if record_every > ROUNDS_AHEAD:
        return Blocks(ahead=_block_length(min(record_every, num_rounds)), room=room, shared=0), lengths
    shared = _block_length(count, ROUNDS_AHEAD // record_every)
    return Blocks(ahead=shared * record_every, room=room, shared=shared), lengths


def fixed_blocks(num_rounds: int, record_every: int) -> Blocks:
    num_records = -(-num_rounds // record_every)
    return Blocks(ahead=0, room=num_records, shared=0, fixed=(num_rounds, record_every))


def _block_length(number: int, longest: int = ROUNDS_AHEAD) -> int:
    """Return a length of blocks that cover `number` with few unused rounds. It exceeds `longest` / 2 if possible."""
    most = min(longest, number)
    lengths = range(most, longest // 2, -1) or (most,)  # one block if `number` is at most `longest` / 2
    spare = {length: -(-number // length) * length - number for length in lengths}  # unused rounds
    good_lengths = [length for length in lengths if spare[length] <= MOST_SPARE * number]
    return good_lengths[0] if good_lengths else min(spare, key=spare.__getitem__)


def without_room(records: Any, blocks: Blocks, count: int, platform: str | None) -> Any:
    def first_records(leaf: Any) -> Any:
        if platform != "cpu" or not is_known(leaf) or not isinstance(leaf.dtype, np.dtype):
            return leaf[:count]  # all records that the run has written
        return on_device_of(leaf, np.asarray(leaf)[:count].copy())  # a view would keep the whole array

    return records if blocks.room == count else jax.tree.map(first_records, records)


def on_device_of(leaf: Any, array: np.ndarray) -> Any:
    """Return a NumPy array as a JAX array, on the device of `leaf` if the user chose one."""
    return jax.device_put(array, leaf.sharding if leaf.committed else None)


class Machine(NamedTuple):
    """A system's step, batched and in parts, for one root key and one setting of the parameters."""

    draw: Callable[[Any], Any]  # rounds before (K,) -> prepared values of the next ones (K, ...)
    act: Callable[[Any, Any], tuple[Any, list[Any]]]  # prepared values, state -> state, observed leaves
    record: Callable[[Any, list[Any]], Any]  # state, observed leaves -> the record
    blank: list[Any]  # zeros like the observed leaves, for the start of a loop


def run_records(
    machine: Machine, state: Any, blocks: Blocks, num_rounds: Any, stride: Any, num_before: int = 0
) -> tuple[Any, Any]:
    """Run `num_rounds` rounds after round `num_before`. Record after every `stride` rounds and after the last round."""
    rounds = _Rounds(machine, blocks, num_rounds, stride, num_before)
    if isinstance(num_rounds, int):
        return _stack_records(rounds, state)
    return _write_records(rounds, state)


class _Rounds(NamedTuple):
    machine: Machine
    blocks: Blocks
    num_rounds: Any  # an int if strides and blocks are full, so that loops can be differentiated
    stride: Any  # rounds per record
    num_before: int  # rounds before these

    @property
    def num_records(self) -> Any:
        return -(-self.num_rounds // self.stride)

    def limited(self, full: Any, num_left: Any) -> Any:
        """Return the smaller number, which is `full` if all strides and blocks are full."""
        return full if isinstance(self.num_rounds, int) else jnp.minimum(full, num_left)

    def rounds_of(self, record: Any) -> Any:
        return self.limited(self.stride, self.num_rounds - record * self.stride)

    def play(self, carry: Any, draws: Any, start: Any, length: Any) -> Any:
        def one_round(number: Any, carry: Any) -> Any:
            round_draws = jax.tree.map(
                lambda leaf: jax.lax.dynamic_index_in_dim(leaf, start + number, keepdims=False), draws
            )
            state, _ = carry
            return self.machine.act(round_draws, state)

        return _repeat(length, one_round, carry)

    def after_long_stride(self, record: Any, state: Any) -> Any:
        """Return state and observed leaves after the rounds of a record, which take several blocks."""
        rounds = self.rounds_of(record)
        ahead = self.blocks.ahead

        def block(number: Any, carry: Any) -> Any:
            first = number * ahead
            draws = self.machine.draw(self.num_before + record * self.stride + first + jnp.arange(ahead))
            return self.play(carry, draws, start=0, length=self.limited(ahead, rounds - first))

        return _repeat(-(-rounds // ahead), block, (state, self.machine.blank))

    def draw_block(self, number: Any) -> Any:
        return self.machine.draw(self.num_before + number * self.blocks.ahead + jnp.arange(self.blocks.ahead))

    def after_short_stride(self, draws: Any, number: Any, place: Any, state: Any) -> Any:
        """Return state and observed leaves after the rounds of record `place` in block `number`."""
        first = place * (self.blocks.ahead // self.blocks.shared)
        rounds = self.rounds_of(number * self.blocks.shared + place)
        return self.play((state, self.machine.blank), draws, start=first, length=rounds)


def _stack_records(rounds: _Rounds, state: Any) -> tuple[Any, Any]:
    """Run the rounds without carrying the records, because a gradient would store all of them at every record."""
    machine = rounds.machine
    blocks = rounds.blocks

    def long_stride(state: Any, record: Any) -> Any:
        state, info = rounds.after_long_stride(record, state)
        return state, machine.record(state, info)

    def short_strides(state: Any, number: Any) -> Any:
        draws = rounds.draw_block(number)

        def short_stride(state: Any, place: Any) -> Any:
            state, info = rounds.after_short_stride(draws, number, place, state)
            return state, machine.record(state, info)

        return _stacked(blocks.shared, short_stride, state)

    count = rounds.num_records
    if not blocks.shared:
        return _stacked(count, long_stride, state)
    state, records = _stacked(rounds.num_rounds // blocks.ahead, short_strides, state)
    return state, jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), records)


def _write_records(rounds: _Rounds, state: Any) -> tuple[Any, Any]:
    """Run the rounds and write each record into a carried array, which may have room for more."""
    machine = rounds.machine
    blocks = rounds.blocks
    count = rounds.num_records

    def write_record(records: Any, record: Any, state: Any, info: Any) -> Any:
        write = functools.partial(jax.lax.dynamic_update_index_in_dim, index=record, axis=0)
        return jax.tree.map(write, records, machine.record(state, info))

    def with_long_stride(record: Any, carry: Any) -> Any:
        state, records = carry
        state, info = rounds.after_long_stride(record, state)
        return state, write_record(records, record, state, info)

    def with_short_strides(number: Any, carry: Any) -> Any:
        draws = rounds.draw_block(number)

        def one_record(place: Any, carry: Any) -> Any:
            state, records = carry
            state, info = rounds.after_short_stride(draws, number, place, state)
            return state, write_record(records, number * blocks.shared + place, state, info)

        num_left = count - number * blocks.shared
        num_records = 1 if blocks.shared == 1 else jnp.minimum(blocks.shared, num_left)
        return _repeat(num_records, one_record, carry)

    shapes = jax.eval_shape(machine.record, state, machine.blank)
    records = jax.tree.map(lambda leaf: jnp.zeros((blocks.room, *leaf.shape), leaf.dtype), shapes)
    if blocks.shared:
        return _repeat(-(-rounds.num_rounds // blocks.ahead), with_short_strides, (state, records))
    return _repeat(count, with_long_stride, (state, records))


def _stacked(times: int, body: Callable[[Any, Any], Any], state: Any) -> tuple[Any, Any]:
    if times > 1:
        return jax.lax.scan(body, state, jnp.arange(times))
    state, record = body(state, 0)
    return state, jax.tree.map(lambda leaf: leaf[None], record)


def _repeat(times: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    if isinstance(times, int) and times == 1:
        return body(0, carry)
    return jax.lax.fori_loop(0, times, body, carry)


def whole_blocks(num_rounds: int, stride: int) -> Blocks:
    """Return blocks without unused rounds, for a number of rounds that `stride` divides."""
    count = num_rounds // stride
    if stride > ROUNDS_AHEAD:
        return Blocks(ahead=_largest_divisor(stride, ROUNDS_AHEAD), room=count, shared=0)
    shared = _largest_divisor(count, ROUNDS_AHEAD // stride)
    return Blocks(ahead=stride * shared, room=count, shared=shared)


def _largest_divisor(number: int, limit: int) -> int:
    return max(divisor for divisor in range(1, max(limit, 1) + 1) if number % divisor == 0)
