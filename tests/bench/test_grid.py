"""What is measured: catches settings that a system refuses, and expected slopes that the operations do not have."""

import dataclasses
import itertools
import math

import pytest

from moe_theory.bench import engine, grid
from moe_theory.bench.setting import Contender, Setting, timed_systems
from moe_theory.core.errors import UnknownNameError
from moe_theory.core.system import check_system

GROUPS = [*grid.all_groups(timed_systems(), "float32"), *grid.scaling_groups(timed_systems(), "float32")]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group.part}, {group.title}")
def test_every_setting_can_be_run(group):
    for member in group.members:
        check_system(*engine.system_of(member.setting))
        assert member.setting.num_rounds % 16 == 0
        assert member.setting.system in grid.contender_of(member.contender).systems
    assert group.members[0].contender == engine.NAME


def test_the_grid_is_the_one_asked_for():
    sizes = {
        (member.setting.num_experts, member.setting.num_features, member.setting.batch)
        for group in GROUPS
        if group.part == "grid" and "edge" in group.title
        for member in group.members
        if not member.is_automatic
    }
    assert sizes == {(m, d, b) for m in (5, 20, 80) for d in (10, 50, 200) for b in (64, 256, 1024)}


@pytest.mark.parametrize("axis", list(grid.SCALED))
def test_expected_slopes_are_those_of_the_operations(axis):
    setting, name = Setting("continual", 8, 8, 32, 4, 64, 256), grid.SCALED[axis]
    far = [dataclasses.replace(setting, **{name: 2**power}) for power in (40, 41)]
    slope = math.log2(grid.operations(far[1]) / grid.operations(far[0]))
    assert abs(slope - grid.EXPECTED_SLOPES[axis]) < 1e-6


@pytest.mark.parametrize(
    "group", [group for group in GROUPS if group.part.startswith("scaling")], ids=lambda g: g.title
)
def test_a_scaling_varies_one_size(group):
    varied = grid.SCALED[group.part.removeprefix("scaling ")]
    settings = [dataclasses.asdict(member.setting) for member in group.members]
    for name in set(settings[0]) - {"num_rounds", varied}:
        assert len({setting[name] for setting in settings}) == 1
    values = [setting[varied] for setting in settings]
    assert all(after == 2 * before for before, after in itertools.pairwise(values))


def test_what_is_not_installed_is_named():
    contender = Contender("other", "", ("continual",), engine.prepare, requires="no_such_module")
    assert grid.missing(contender) == "no_such_module is not installed"
    assert grid.missing(contender._replace(requires="numpy")) == grid.missing(grid.CONTENDERS[engine.NAME]) == ""
    with pytest.raises(UnknownNameError, match="moe_theory"):
        grid.contender_of("moe_thery")
