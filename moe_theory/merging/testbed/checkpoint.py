"""The earlier place of `moe_theory.checkpoints`."""

from moe_theory.checkpoints import load_experts as load_experts
from moe_theory.checkpoints import merge_checkpoint as merge_checkpoint
