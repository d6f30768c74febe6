"""BibTeX entries of the papers and of this software, and what they say of authors, titles and years."""

import dataclasses
import functools
import re

from moe_theory.core.errors import DeclarationError
from moe_theory.core.papers import declaration_of, find_paper, paper_names

_SOFTWARE = r"""@misc{moe-theory,
  title = {{moe\_theory}: executable theory of {Mixture-of-Experts}},
  author = {{The moe\_theory developers}},
  note = {Version VERSION},
}"""
_ENTRY = re.compile(r"@\w+\s*\{\s*(?P<key>[^\s,{}]+)\s*,(?P<fields>.*)\}\s*", re.DOTALL)
_BRACED = r"[^{}]|\{(?:[^{}]|\{[^{}]*\})*\}"
_FIELD = re.compile(rf'(\w+)\s*=\s*(?:\{{((?:{_BRACED})*)\}}|"((?:{_BRACED})*?)"|(\w+))\s*(?:,|$)')


@dataclasses.dataclass(frozen=True)
class Entry:
    key: str
    fields: dict[str, str]
    text: str

    @property
    def title(self) -> str:
        """The title without BibTeX's braces and escapes."""
        return self.fields["title"].replace("{", "").replace("}", "").replace(r"\_", "_")

    @property
    def authors(self) -> list[str]:
        """Names as "family, given", or as an organisation calls itself."""
        names = self.fields["author"].replace(r"\_", "_").split(" and ")
        return [name.strip("{}") for name in names]


def software(version: str) -> Entry:
    """Return the entry of this software at a version."""
    return _parsed(_SOFTWARE.replace("VERSION", re.sub(r"[^\w.+-]", "", version)))


@functools.cache
def entry_of(paper: str) -> Entry | None:
    """A paper's entry; None for one without a citation, or that is not installed. Raises: DeclarationError for a
    citation that is no BibTeX entry with a title and authors.
    """
    if paper not in paper_names():
        return None
    declaration = declaration_of(paper)
    text = declaration.get("citation", "")
    if not declaration or text is None:  # it is computed
        text = find_paper(paper).citation
    return _parsed(text.strip()) if text else None


def _parsed(text: str) -> Entry:
    match = _ENTRY.fullmatch(text)
    fields: dict[str, str] = {}
    if match:
        for name, *values in _FIELD.findall(match["fields"]):
            fields[name.lower()] = " ".join("".join(values).split())
    if match is None or not {"title", "author"} <= fields.keys():
        raise DeclarationError(
            f"citation {text[:40]!r} must be one BibTeX entry, @article{{key, title = {{...}}, author = {{...}}, ...}}."
        )
    return Entry(match["key"], fields, text)


def title_of(paper: str) -> str:
    """The paper's authors, title and year, as far as they are known."""
    entry = entry_of(paper)
    if entry is None:
        return f"{paper}: a paper of your own; its BibTeX is yours to add"
    names = [author.partition(",")[0] for author in entry.authors]
    year = f" ({entry.fields['year']})" if "year" in entry.fields else ""
    return f"{', '.join(names)}{year}: {entry.title}"
