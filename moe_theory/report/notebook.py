"""HTML for notebooks of verdicts, claims, statements and lists."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup

from moe_theory.core.notebook import Listing
from moe_theory.report import pages, panels, rendering
from moe_theory.report.wording import sentence, status_word
from moe_theory.runs.files import prepare_folder
from moe_theory.verification import recorded
from moe_theory.verification.verdict import Report, Statement, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 200


def html(value: Any) -> str:
    if isinstance(value, Listing):
        return value.to_frame().to_html(max_rows=MOST_ROWS, index=False)
    if isinstance(value, Statement):
        verdicts = recorded.recorded_verdicts([value])
        (judgement,) = recorded.judged_with_searches([value], verdicts)
        return rendering.html_card(judgement, verdicts)
    if isinstance(value, Verdict):
        from matplotlib.figure import Figure

        template = Markup("<p><b>{}</b> <code>{}</code> under {}, {}</p><p>{}</p><p>{}</p>{}<p><code>{}</code></p>")
        words = (status_word(value.status), value.claim, value.setting, value.where, value.statement, sentence(value))
        return template.format(*words, rendering.picture_of(value, Figure()), value.command)
    facts = {name: fact for name, fact in value.row().items() if fact}
    row = pd.Series(facts, name=type(value).__name__)
    return row.to_frame().to_html() + rendering.parts().typeset(getattr(value, "formula", ""))


def plot(verdict: Verdict) -> "Figure":
    return panels.figure_of(verdict)


def report(verdicts: Report, path: str | Path) -> list[Path]:
    """Write the files of `moe-theory verify`. Raises: OutputError."""
    folder = prepare_folder(Path(path), (pages.PAGE, pages.NUMBERS))
    return pages.write_report(verdicts, folder, pages.NUMBERS)
