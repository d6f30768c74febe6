"""Findings for the README and the site's home: counts of statements by status, and a sentence or two a paper.

A sentence is printed only while the recorded runs give its statements the statuses that it rests on.
"""

from collections.abc import Callable, Mapping, Sequence

from moe_theory.core.papers import Paper, all_papers
from moe_theory.report import bibliography
from moe_theory.report.wording import BY_READING, statement_counts, statement_status
from moe_theory.verification import recorded
from moe_theory.verification.premises import footings
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.status import CAVEATED, PROVED, StatementStatus

HOLDS, AMENDED, FALSE, VACUOUS = map(
    str, (StatementStatus.HOLDS, StatementStatus.AMENDED, StatementStatus.FALSE, StatementStatus.VACUOUS)
)
_SENTENCES: dict[str, list[tuple[str, dict[str, str]]]] = {  # each with statements and the statuses it rests on
    "continual": [
        (
            "Routers whose training stops early do better, as the paper says, than ones that learn for ever, unless "
            "signals are strong.",
            {"figure-2-endless": BY_READING},
        ),
        (
            "The formulas for forgetting, (17), (19) and (21), fail: a task meets itself at distance 0, not at that of "
            "two random ones. An exact recursion along a run's routes takes their place.",
            {"proposition-4-forgetting": FALSE, "theorem-1-forgetting": FALSE, "theorem-2-forgetting": FALSE},
        ),
        (
            "In the limit that the theorems are about, σ₀ → 0, the router does not come to tell tasks apart: (35) "
            "takes an upper bound for a lower one. What decides is how far a step of the gates moves an output against "
            "the perturbation λ: a model of the gates alone says where experts specialise, to 8 %.",
            {"equation-35": FALSE, "lemma-15-more-experts": FALSE, "proposition-3-more-experts": FALSE},
        ),
    ],
    "edge": [
        (
            "Theorem 1's bound says nothing in the limit, since routing at random satisfies it too, and the floor that "
            "the text reads off it is not reached. Along a run's routes the error follows a recursion, to 1 %.",
            {"theorem-1": VACUOUS, "theorem-1-floor": FALSE},
        ),
        (
            "Whether the router learns within the paper's horizon depends on how large signals are, which is left open "
            "there.",
            {"theorem-1-gain": BY_READING},
        ),
        (
            "The formula for the error of a router that does not look at the task (Proposition 4) fails: it counts a "
            "task's distance to itself as that of two random ones.",
            {"proposition-4": FALSE},
        ),
    ],
    "generalization": [
        (
            "Theorem 1 is false, whatever the constant in its O(): two experts, both always active, fit whatever "
            "their gates do, and the bound charges for one.",
            {"theorem-1": FALSE, "equation-31": FALSE},
        ),
    ],
    "merging": [
        (
            "Theorem 1 says nothing: rewards are in [0, 1], so that no regret exceeds T, and the bound contains T + 1.",
            {"theorem-1": VACUOUS},
        ),
        (
            "The remark that reads O(√T log T) off it drops that term.",
            {"remark": FALSE},
        ),
        (
            "On small models of ours whose tasks conflict, settings searched at one budget, Tanbr is ahead of NUCB and "
            "of fixed merges over the paper's 5,000 slots.",
            {"figure-4": AMENDED},
        ),
    ],
}


def own_papers() -> dict[str, Paper]:
    """Those of this distribution, whatever others are installed."""
    return {name: paper for name, paper in all_papers().items() if paper.package.startswith("moe_theory.")}


def counts(among: Mapping[str, Paper], link: Callable[[str], str], networks: str) -> str:
    """How many statements of each paper have each status, as a table, and when and how that was recorded.

    Args:
        among: the papers whose statements are counted.
        link: gives where a paper's name leads to.
        networks: the page that has the verdicts on several data.
    """
    own = [name for name, paper in among.items() if paper.citation]  # a variant of ours is no paper
    found = {paper: statement_counts(judged_statements(paper)) for paper in own}
    shown = dict.fromkeys([HOLDS, FALSE, *StatementStatus, BY_READING])  # the first ones are what a phone has room for
    statuses = [status for status in shown if any(status in each for each in found.values())]
    lines = [row("", *statuses, "in all"), row("---", *["---:"] * (1 + len(statuses)))]
    for paper, each in found.items():
        cells = (str(each.get(status, "")) for status in statuses)
        lines.append(row(f"[{paper}]({link(paper)})", *cells, str(sum(each.values()))))
    dates = sorted(record.finished[:10] for paper, record in recorded.read().items() if paper in among)
    said = (
        f"Recorded {' to '.join(dict.fromkeys((dates[0], dates[-1])))}; `make verdicts` judges anew." if dates else ""
    )
    return "\n".join([*lines, "", f"{proved(own)} {searched(own)}{said}{on_other_data(among, networks)}"])


def searched(papers: Sequence[str]) -> str:
    """How many statements were searched over what they leave free, and how many of them a search has flipped."""
    found = [each for paper in papers for each in recorded.searches_of(paper)]
    flipped = [each.sought for each in found if each.flips]
    if not found:
        return ""
    told = f"{flipped.count('break')} break, {flipped.count('rescue')} come back"
    return f"{len(found)} were searched for what they leave free: {told}. "


def proved(papers: Sequence[str]) -> str:
    """How many of the false and vacuous statements are known by a proof, and how many have a fault of their own."""
    footed = [each for paper in papers for each in footings(judged_statements(paper)) if each.known.fails]
    failing, roots = [each.known.finding for each in footed], sum(each.is_root for each in footed)
    known = [each.known for each in failing if each]
    by_proof, caveated = known.count(PROVED) + known.count(CAVEATED), known.count(CAVEATED)
    share = f"All {by_proof}" if by_proof == len(known) else f"{by_proof} of {len(known)}"
    rest = f"{roots} fail by themselves, {len(footed) - roots} with them"
    return f"{share} false or vacuous ones are proved, {caveated} with a caveat; {rest}."


def on_other_data(among: Mapping[str, Paper], page: str) -> str:
    """How many claims have the same verdict on other data than the recorded runs are on, under the first reading."""
    own, said, others = {}, "", recorded.on_other_data()
    for each in recorded.recorded_verdicts():
        if each.data and each.paper in among:
            own.setdefault(each.claim, each)
    for data in dict.fromkeys(each.data for each in others):
        of = [each for each in others if each.data == data and each.claim in own]
        same = sum(each.status is own[each.claim].status for each in of)
        said += (
            f" Networks: {same} of {len(of)} verdicts on the papers' figures are the same on {data} and "
            f"{own[of[0].claim].data} ([both]({page}))."
        )
    return said


def sentences(among: Mapping[str, Paper]) -> str:
    """A paper a line: authors, title and year, linked, and what was found."""
    lines = []
    for name in among:
        entry = bibliography.entry_of(name)
        if entry is not None:
            lines.append(" ".join([f"- `{name}`: {_cited(entry)}.", *_said(name)]))
    return "\n".join(lines)


def _said(paper: str) -> Sequence[str]:
    statuses = {each.statement.id: statement_status(each) for each in judged_statements(paper)}
    known = _SENTENCES.get(paper, [])
    return [words for words, rests_on in known if all(statuses[id] == status for id, status in rests_on.items())]


def _cited(entry: bibliography.Entry) -> str:
    surnames = [author.partition(",")[0] for author in entry.authors]
    authors = surnames[0] + (" et al." if len(surnames) > 2 else f" and {surnames[1]}" if len(surnames) > 1 else "")
    title = f"*{entry.title}*"
    linked = f"[{title}]({entry.fields['url']})" if "url" in entry.fields else title
    return ", ".join([authors, linked, *([entry.fields["year"]] if "year" in entry.fields else [])])


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
