"""Put the version of `moe_theory/__init__.py`, and what `pyproject.toml` says, into CITATION.cff and codemeta.json."""

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version() -> str:
    text = (ROOT / "moe_theory" / "__init__.py").read_text(encoding="utf-8")
    (found,) = re.findall(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return found


def citation(text: str) -> str:
    """CITATION.cff of this version."""
    found, count = re.subn(r"^version: .*$", f"version: {version()}", text, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit("CITATION.cff must have one line that begins with 'version: '.")
    return found


def codemeta() -> str:
    """codemeta.json of this version, by version 3.0 of its schema."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": project["name"],
        "version": version(),
        "description": project["description"],
        "license": f"https://spdx.org/licenses/{project['license']}",
        "author": [{"@type": "Organization", "name": author["name"]} for author in project["authors"]],
        "keywords": project["keywords"],
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {project['requires-python']}",
        "softwareRequirements": project["dependencies"],
        "developmentStatus": "wip",
        "readme": project["readme"],
    }
    return json.dumps(found, indent=2) + "\n"


if __name__ == "__main__":
    cff = ROOT / "CITATION.cff"
    cff.write_text(citation(cff.read_text(encoding="utf-8")), encoding="utf-8")
    (ROOT / "codemeta.json").write_text(codemeta(), encoding="utf-8")
