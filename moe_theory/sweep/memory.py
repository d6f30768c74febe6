"""What work needs of a machine's memory, and what there is."""

import math
import os
from pathlib import Path
from typing import Any

import jax

# The state before and after a round, what is between, and numbers drawn ahead: 5 to 6.5 by XLA's own account.
STATE_COPIES = 8
RECORD_COPIES = 3  # in the program, on the host, and as the bytes of a file
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory() -> int:
    """Bytes of memory that this process may use: of the machine, or of the container it runs in."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP_LIMITS:
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)


def bytes_of(shapes: Any) -> int:
    """Bytes of the arrays of these shapes and types."""
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def chunk_bytes(state: Any, records: Any, num_records: int, width: int, batch: int) -> int:
    """Bytes that computing a chunk takes, from the shapes of one replicate's state and records."""
    kept = num_records * bytes_of(records)
    return batch * (STATE_COPIES * bytes_of(state) + kept) + width * RECORD_COPIES * kept
