"""Our variant of Algorithm 1, with a baseline in its locality loss: conservation and settling.

Source: `docs/pages/derivations/repaired.md`. The loss is `core.baseline`.
"""

from moe_theory.continual.params import Params, Reading
from moe_theory.core.papers import Paper

# The only reading, by name: the defaults of `Params`.
READINGS: dict[str, Reading] = {
    "as-stated": Reading("as-stated", "nothing is left open that changes these statements", Params())
}
# This is our own variant, so it has no citation, and counts over papers leave it out.
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
reading = PAPER.reading  # returns a reading by its name, such as `reading("as-stated")`
