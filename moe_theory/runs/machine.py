"""The memory that a chunk needs."""

from typing import Any, NamedTuple

from moe_theory.core.engine import STATE_COPIES, bytes_of

# Of records: by batch and joined, in an archive and its bytes, on their way to the disk; measured: 4.9.
RECORD_COPIES = 6


class ChunkMemory(NamedTuple):
    """Bytes that computing a chunk takes: whatever its width, and for each replicate of it."""

    fixed: int
    each: int

    def of(self, width: int) -> int:
        return self.fixed + width * self.each

    def widest(self, available: float) -> int:
        """Replicates of the widest chunk that fits; 0 where none does."""
        return max(int((available - self.fixed) / self.each), 0)


def chunk_memory(state: Any, records: Any, num_records: int, batch: int) -> ChunkMemory:
    """Memory that a chunk takes whose replicates run `batch` at a time, from the shapes of one's state and records."""
    kept = num_records * bytes_of(records)
    return ChunkMemory(fixed=batch * (STATE_COPIES * bytes_of(state) + kept), each=RECORD_COPIES * kept)
