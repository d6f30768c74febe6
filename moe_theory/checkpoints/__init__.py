"""Published checkpoints with sparse experts: find the experts, merge them, write what libraries load. Needs no JAX."""

from moe_theory.checkpoints.forms import FORMS as FORMS
from moe_theory.checkpoints.layouts import ExpertTensors as ExpertTensors
from moe_theory.checkpoints.layouts import find_experts as find_experts
from moe_theory.checkpoints.layouts import load_experts as load_experts
from moe_theory.checkpoints.methods import METHODS as METHODS
from moe_theory.checkpoints.methods import Method as Method
from moe_theory.checkpoints.writing import Merged as Merged
from moe_theory.checkpoints.writing import merge_checkpoint as merge_checkpoint
