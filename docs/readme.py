"""Fills the generated parts of README.md: papers, gallery, tables of statements, speed.

    python docs/readme.py            # what `make readme` runs, from the repository's root
    python docs/readme.py --check    # exits 1 if the README is not what the checked-in data make of it

A part stands between `<!-- generated: NAME, by `make readme` -->` and `<!-- end of NAME -->`; the rest is written by
hand. Verdicts come from the papers' recorded runs, figures from `figures/` and the papers' own lists, speed from
figures/bench.
"""

import fnmatch
import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `benchmarks`

from gallery import FIGURES, ROOT, Entry, entries

from benchmarks.report import CORES, cost, peer_name, read, times_engine
from moe_theory import claims
from moe_theory.core.papers import all_papers
from moe_theory.report.wording import BY_READING, statement_counts, status_counts
from moe_theory.verify import recorded
from moe_theory.verify.recorded import judged_statements
from moe_theory.verify.status import Judged, StatementStatus

README = ROOT / "README.md"
BENCH = FIGURES / "bench"
TITLES = {name: paper.title[0].upper() + paper.title[1:] for name, paper in all_papers().items()}
COLUMNS, WIDTH = 3, 240  # of the gallery, and pixels of a thumbnail
PACKAGE = "The package itself"
ABOUT = {  # where the README speaks of figures that no paper has, by their folder
    "verify": ("what-a-verdict-rests-on", "what a verdict rests on"),
    "sweep": ("sweeps", "sweeps"),
    "bench": ("how-fast-it-is", "how fast it is"),
}
OTHER_NUMBERS = {"bench": "figures/bench/bench.json"}
STALE = "README.md is not what the checked-in data make of it: run `make readme`, and commit what it changes"


def main(arguments: list[str]) -> None:
    """Write the README, or only compare it. A part that has no place in it, or a place without a part, is an error."""
    before = README.read_text(encoding="utf-8")
    after = filled(before, parts())
    if arguments == ["--check"]:
        if after != before:
            raise SystemExit(STALE)
    elif arguments:
        raise SystemExit("usage: python docs/readme.py [--check]")
    elif after != before:
        README.write_text(after, encoding="utf-8")


def parts() -> dict[str, Callable[[], str]]:
    """What makes each generated part, by its name."""
    runs = recorded.read()
    tables = {f"verdicts-{paper}": lambda run=run: statements_of(run) for paper, run in runs.items()}
    return {
        "papers": lambda: papers(runs),
        "gallery": gallery,
        **tables,
        "speed": speed,
        "benchmarks": benchmarks,
    }


def filled(text: str, made: dict[str, Callable[[], str]]) -> str:
    """The README with its generated parts made anew. Raises: ValueError for a part that it has not exactly once."""
    for name, make in made.items():
        start, end = f"<!-- generated: {name}, by `make readme` -->\n", f"<!-- end of {name} -->"
        if text.count(start) != 1 or text.count(end) != 1:
            raise ValueError(f"README.md must have {start.strip()} and {end} once each.")
        before, rest = text.split(start)
        text = before + start + make().rstrip("\n") + "\n" + end + rest.split(end)[1]
    return text


def papers(runs: dict[str, recorded.Recorded]) -> str:
    """A column a paper: how many of its statements have each status, and the claims and readings that decide them."""
    known = {paper: judged_statements(paper) for paper in runs if not all_papers()[paper].answers_for}
    counts = {paper: statement_counts(found) for paper, found in known.items()}
    statuses = dict.fromkeys(
        status for status in (*StatementStatus, BY_READING) if any(status in each for each in counts.values())
    )
    rows = [
        ("", *(f"[`{paper}`](#{_anchor(TITLES[paper])})" for paper in known)),
        ("statements", *(str(len(found)) for found in known.values())),
        *((status, *(str(each.get(status, "")) for each in counts.values())) for status in statuses),
        ("claims", *(str(len(_own_claims(found))) for found in known.values())),
        ("readings", *(str(len(runs[paper].readings)) for paper in known)),
        ("recorded", *(runs[paper].finished[:10] for paper in known)),
    ]
    lines = [_row(*row) for row in rows]
    return "\n".join([lines[0], _rule(1, len(known)), *lines[1:]])


def _own_claims(known: Sequence[Judged]) -> set[str]:
    """The claims of the paper itself; those of `deep` about its figures stand apart."""
    return {id for each in known for id in each.statement.roles if id.startswith(f"{each.statement.paper}.")}


def gallery() -> str:
    """A thumbnail of every figure, with links to the claims that it bears on and to its numbers, and its command."""
    lines = ["<table>"]
    by_title: dict[str, list[Entry]] = {}
    for entry in entries():
        if entry.svg is not None:
            by_title.setdefault(TITLES.get(entry.paper, PACKAGE), []).append(entry)
    for title, mine in by_title.items():
        lines.append(f'<tr><th colspan="{COLUMNS}" align="left">{title}</th></tr>')
        for start in range(0, len(mine), COLUMNS):
            lines.append("<tr>" + "".join(map(_thumbnail, mine[start : start + COLUMNS])) + "</tr>")
    return "\n".join([*lines, "</table>"])


def _thumbnail(entry: Entry) -> str:
    ids = [claim.id for claim in claims()]
    links = [(fnmatch.filter(ids, glob)[0], glob) for glob in entry.claims] or [ABOUT[entry.paper]]
    numbers = str(entry.csv or OTHER_NUMBERS.get(entry.paper, ""))
    image = f'<img src="{entry.svg}" width="{WIDTH}" alt="{escape(entry.title)}">'
    lines = [f'<a href="{entry.svg}">{image}</a>', escape(entry.title)]
    named = [f'<a href="#{place}">{escape(words.removeprefix(f"{entry.paper}."))}</a>' for place, words in links]
    named += [f'<a href="{numbers}">data</a>'] if numbers else []
    lines += [f"<sub>{' · '.join(named)}</sub>", f"<sub><code>{escape(entry.command)}</code></sub>"]
    return f'<td align="center" valign="top" width="{100 // COLUMNS}%">{"<br>".join(lines)}</td>'


def statements_of(run: recorded.Recorded) -> str:
    """The statements that a recorded run decides, a line each, under a line that says how it came about."""
    known = [each for paper in _papers_of(run) for each in judged_statements(paper)]
    own = [
        each
        for each in known
        if each.statement.paper == run.paper or any(_is_own(id, run) for id in each.statement.roles)
    ]
    lines = [_row("statement", "status", "what it says"), _rule(3, 0)]
    for each in own:
        anchors = "".join(f'<a id="{id}"></a>' for id in each.statement.roles if _is_own(id, run))
        says = " ".join(each.statement.says.split()).replace("|", r"\|").replace("<", "&lt;")
        lines.append(_row(f"{anchors}`{each.statement.name}`", each.words, says))
    return f"<details>\n<summary>{_summary(run, own)}</summary>\n\n" + "\n".join(lines) + "\n\n</details>"


def _papers_of(run: recorded.Recorded) -> Sequence[str]:
    return all_papers()[run.paper].answers_for or (run.paper,)


def _is_own(claim: str, run: recorded.Recorded) -> bool:
    return claim.startswith(f"{run.paper}.")


def _summary(run: recorded.Recorded, known: Sequence[Judged]) -> str:
    total = len({verdict["claim"] for verdict in run.verdicts})
    when = run.finished[:16].replace("T", " ")
    limit = "" if run.budget is None else f", {_time(run.budget)} at most"
    about = (
        f"{len(run.verdicts)} verdicts on {total} claims: <code>{run.command}</code>, seed {run.seed}, finished {when} "
        f"UTC{limit}, {_time(run.seconds)} of experiments, error at most {run.error:g} in all"
    )
    return f"<b>{len(known)} statements</b>: {status_counts(known)}.<br>{about}."


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def speed() -> str:
    """How many times as long others take, by what was timed in turn with them."""
    groups = read([BENCH / "bench.json"]).peers()
    others = list(dict.fromkeys(entry["contender"] for group in groups.values() for entry in group[1:]))
    others.remove(next(iter(groups.values()))[0]["contender"])
    lines = [_row("", "moe_theory, ns", *others), _rule(1, 1 + len(others))]
    for (title, cores), group in groups.items():
        ratios = {peer_name(entry): times_engine(entry) for entry in group[1:]}
        found = [ratios.get(name) for name in others]
        cells = ["" if each is None else f"{each[0]:,.0f}" if each[0] >= 10 else f"{each[0]:.1f}" for each in found]
        lines.append(_row(f"{title}, {CORES[cores]}", f"{cost(group[0]):,.0f}", *cells))
    return "\n".join(lines)


def benchmarks() -> str:
    """What `make bench` wrote, without the grid."""
    return (BENCH / "summary.md").read_text(encoding="utf-8")


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _rule(left: int, right: int) -> str:
    return _row(*["---"] * left, *["---:"] * right)


if __name__ == "__main__":
    main(sys.argv[1:])
