"""The BibTeX of this software and of the installed papers, read into entries."""

import dataclasses
import functools
import re

import moe_theory
from moe_theory.core.errors import InvalidPaperError
from moe_theory.core.papers import find_paper, paper_names

_SOFTWARE = rf"""@misc{{moe-theory,
  title = {{{{moe\_theory}}: executable theory of {{Mixture-of-Experts}}}},
  author = {{{{The moe\_theory developers}}}},
  note = {{Version {moe_theory.__version__}}},
}}"""
_ENTRY = re.compile(r"^@\w+\{(?P<key>[\w-]+),\n(?P<fields>.*?)^\}$", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One BibTeX entry, as text and by its fields."""

    key: str
    fields: dict[str, str]
    text: str

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
def software() -> Entry:
    """The entry of this package."""
    return _parsed(_SOFTWARE)


@functools.cache
def entry_of(paper: str) -> Entry | None:
    """A paper's entry; None for one without a citation, or that is not installed.

    Raises: InvalidPaperError for a citation that is no BibTeX entry with a field a line.
    """
    text = find_paper(paper).citation if paper in paper_names() else ""
    return _parsed(text.strip()) if text else None


def _parsed(text: str) -> Entry:
    found = _ENTRY.search(text)
    if found is None or not {"title", "author"} <= dict(_FIELD.findall(found["fields"])).keys():
        raise InvalidPaperError(
            f"citation {text[:40]!r} must be one BibTeX entry, a line for each of title, author, ..."
        )
    return Entry(found["key"], dict(_FIELD.findall(found["fields"])), found[0])
