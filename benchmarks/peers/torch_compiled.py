"""Algorithm 1 of the continual paper in batched PyTorch, each round one program of `torch.compile`."""

import torch  # pyright: ignore[reportMissingImports]

from benchmarks.contenders import Run, Setting
from benchmarks.peers import torch_batched

take_round = torch.compile(torch_batched.take_round)


def prepare(setting: Setting) -> Run:
    """All replicates of a setting together; the first call compiles."""
    return torch_batched.prepare(setting, take_round)
