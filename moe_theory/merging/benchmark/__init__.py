"""Recorded streams on which every way to merge experts is scored on the same requests.

`streams` has what arrives and the experts, `runs` serves the streams with a policy, `scoring` reads and compares
scores, `rivals` are the ways to merge that are not policies.
"""

from moe_theory.merging.benchmark.runs import PlainPolicy as PlainPolicy
from moe_theory.merging.benchmark.scoring import Comparison as Comparison
from moe_theory.merging.benchmark.scoring import compare as compare
from moe_theory.merging.benchmark.scoring import policy_of as policy_of
from moe_theory.merging.benchmark.scoring import score as score
