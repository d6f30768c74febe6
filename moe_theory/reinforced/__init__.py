"""Algorithm 1 with a baseline in its locality loss, our variant: conservation and settling.

Source: `docs/pages/derivations/repaired.md`. The loss is `core.baseline`.
"""

from moe_theory.continual.params import Params, Reading
from moe_theory.core.papers import Paper

# The one reading, by name: `Params` as they stand.
READINGS: dict[str, Reading] = {
    "as-stated": Reading("as-stated", "nothing is left open that changes these statements", Params())
}
# No paper of others, so that nothing cites it and no count of what is found of papers has it.
PAPER = Paper(
    name="reinforced",
    package=__name__,
    title="Algorithm 1 with a baseline",
    readings=READINGS,
    statements="moe_theory.reinforced.statements",
    first_look={
        "reinforced.conservation.sums": "ours: sums are conserved",
        "reinforced.settling.happens": "ours: routing settles in time",
    },
    most_verdicts=100,
    rank=4,
)
reading = PAPER.reading  # a reading by its name, as `reading("as-stated")`
