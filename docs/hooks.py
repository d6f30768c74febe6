"""MkDocs' hooks: generated pages, figures and styles join the hand-written pages, and blocks what Markdown made."""

import fnmatch
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page as SitePage
from mkdocs.utils.templates import TemplateContext

sys.path.insert(0, str(Path(__file__).parent))  # its neighbours, which scripts beside it import in the same way

from builder import Page, api, filled, fragments, papers, pictures, sources, without_sources
from gallery import FIGURES, ROOT

from moe_theory.report.notebook import status_style

STYLES = ROOT / "moe_theory" / "report" / "templates"
_MADE: dict[str, Page] = {}  # by their paths
_BLOCKS: dict[str, dict[str, str]] = {}  # set aside while a page is searched, by the paths of pages


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the pages, and leave out of the navigation what is neither written nor made."""
    for made in (*papers.pages(), pictures.page(), *api.pages(), *sources.pages()):
        _MADE[made.path] = made
    config.nav = _present(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is generated to what lies in the folder of pages."""
    for made in _MADE.values():
        files.append(File.generated(config, made.path, content=made.text))
    for path in sorted(FIGURES.rglob("*")):
        if path.is_file() and path.suffix != ".md":
            files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    files.append(File.generated(config, "style/status.css", content="\n".join(_status_style())))
    return files


def on_page_markdown(markdown: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Put the generated parts of a hand-written page into their places."""
    return fragments.with_fragments(markdown)


def on_page_content(html: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Set source code aside for `on_page_context`: it would be most of what is searched, and nobody looks for it."""
    html, _BLOCKS[page.file.src_uri] = without_sources(html)
    return html


@event_priority(-100)  # after the search
def on_page_context(context: TemplateContext, page: SitePage, config: MkDocsConfig, nav: Navigation) -> TemplateContext:
    """Put a page's blocks into their places."""
    path = page.file.src_uri
    blocks = _BLOCKS[path] | dict(_MADE[path].blocks if path in _MADE else {})
    page.content = filled(page.content or "", blocks)
    return context


def _present(entry: Any, folder: Path) -> Any:
    """An entry of the navigation, globs expanded, without the pages that do not exist."""
    if isinstance(entry, list):
        expanded = [path for each in entry for path in _matching(each)]
        return [part for part in (_present(each, folder) for each in expanded) if part]
    if isinstance(entry, dict):
        found = {title: _present(part, folder) for title, part in entry.items()}
        return {title: part for title, part in found.items() if part}
    return entry if entry in _MADE or (folder / entry).is_file() else None


def _matching(entry: Any) -> list[Any]:
    """The made pages that a glob such as "papers/*.md" stands for, by their names; any other entry as it is."""
    if not isinstance(entry, str) or "*" not in entry:
        return [entry]
    return [{Path(path).stem: path} for path in fnmatch.filter(_MADE, entry)]


def _status_style() -> Iterator[str]:
    """The report page's look: a status looks the same everywhere."""
    yield status_style(":root", ('[data-md-color-scheme="slate"] {}',))
    yield (STYLES / "statement.css").read_text(encoding="utf-8")
