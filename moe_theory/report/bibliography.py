"""The BibTeX of the papers and of this software: `papers.bib` of the package, read into entries."""

import dataclasses
import functools
import re
from importlib import resources

import moe_theory

FILE = "papers.bib"
SOFTWARE = "moe-theory"
KEYS = {  # of the papers, by the names that claims and commands call them by
    "continual": "li-continual",
    "edge": "li-edge",
    "generalization": "zhao-generalization",
    "merging": "han-merging",
}
_ENTRY = re.compile(r"^@\w+\{(?P<key>[\w-]+),\n(?P<fields>.*?)^\}$", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One entry, as it stands in the file and by its fields."""

    key: str
    fields: dict[str, str]
    text: str  # BibTeX

    def of_version(self, version: str) -> "Entry":
        """The entry of software, in the version that ran."""
        note = self.fields["note"]
        said = f"Version {version}"
        return dataclasses.replace(self, fields={**self.fields, "note": said}, text=self.text.replace(note, said))

    @property
    def title(self) -> str:
        """The title without BibTeX's braces and escapes."""
        return self.fields["title"].replace("{", "").replace("}", "").replace(r"\_", "_")

    @property
    def authors(self) -> list[str]:
        """Names as "family, given", or as an organisation calls itself."""
        names = self.fields["author"].replace(r"\_", "_").split(" and ")
        return [name.strip("{}") for name in names]


@functools.cache
def entries() -> dict[str, Entry]:
    """All entries by key, the software's first, in the order of the file."""
    text = resources.files(moe_theory).joinpath(FILE).read_text(encoding="utf-8")
    found = (Entry(each["key"], dict(_FIELD.findall(each["fields"])), each[0]) for each in _ENTRY.finditer(text))
    return {entry.key: entry for entry in found}


def entry_of(paper: str) -> Entry | None:
    """A paper's entry; None for one that users bring along."""
    return entries()[KEYS[paper]] if paper in KEYS else None
