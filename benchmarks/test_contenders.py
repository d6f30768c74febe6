"""Time of a replicate-round: the engine and its peers, over the grid of sizes, and against each size alone.

`make bench` runs this on one pinned core and on all. What `moe-theory bench` reports comes from the same groups, timed
in turn; here each is timed on its own, for pytest-benchmark's own statistics and comparisons.
"""

import dataclasses

import pytest

from moe_theory.bench.grid import all_groups, scaling_groups
from moe_theory.bench.setting import timed_systems

GROUPS = [*all_groups(timed_systems(), "float32"), *scaling_groups(timed_systems(), "float32")]
SINGLE = [dataclasses.replace(group, members=(member,)) for group in GROUPS for member in group.members]


def name(group):
    (member,) = group.members
    setting = member.setting
    batch = "automatic" if member.is_automatic else setting.batch
    sizes = f"M={setting.num_experts},N={setting.num_tasks},d={setting.num_features},s={setting.num_samples}"
    rounds = f"T={setting.num_rounds},batch={batch},{setting.precision}"
    return f"{group.part}/{setting.system}/{sizes},{rounds}/{member.contender}"


@pytest.mark.parametrize("group", SINGLE, ids=name)
def test_replicate_round(group, time_group):
    time_group(group)
