"""Print the lowest versions that `pyproject.toml` allows of what it names, as constraints for pip."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def lowest(project: dict) -> dict[str, Version]:
    """By name, the highest of the lower bounds of a project's requirements and of those of its extra `dev`."""
    found: dict[str, Version] = {}
    for line in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        requirement = Requirement(line)
        (bound,) = (Version(each.version) for each in requirement.specifier if each.operator == ">=")
        found[requirement.name] = max(bound, found.get(requirement.name, bound))
    return found


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    print("\n".join(f"{name}=={version}" for name, version in lowest(project).items()))
