"""Put the version of `moe_theory/__init__.py` into CITATION.cff."""

import re
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


if __name__ == "__main__":
    cff = ROOT / "CITATION.cff"
    cff.write_text(citation(cff.read_text(encoding="utf-8")), encoding="utf-8")
