"""Statements of the edge-computing paper, in its order.

Left out: Assumption 1 and Definitions 1 and 2 say what is given and Algorithm 1 what is done with it, so none of them
asserts anything; and remarks after a statement, unless they say what a figure shows or how two statements compare.
What is said of networks (Fig. 4) is declared where networks are run.

O(), Omega() and "with probability 1 - o(1)" are judged in their limits (`experiments.LIMIT`): sigma_0 falls with
eta = sigma_0^0.5, and T_1 and r with them. What is said of Fig. 3 is judged in its settings.
"""

from importlib import import_module

from moe_theory.core.tasks import has_small_truths
from moe_theory.edge.experiments import FREE, SETTING
from moe_theory.verify.premises import contradict, rest_on
from moe_theory.verify.statement import Hypothesis, suppose

TRUTHS = Hypothesis(
    "truths of size O(sigma_0), as in the proof of Lemma 3: Assumption 1 is about their differences", has_small_truths
)
suppose(*SETTING, TRUTHS, free=FREE)
rest_on(  # appendices A to F
    "edge",
    {
        "lemma-4": "lemma-3-own lemma-3-others",
        "equation-28": "lemma-4 lemma-5-apart",
        "lemma-6": "equation-28",
        "lemma-8": "lemma-3-own lemma-3-others lemma-7",
        "equation-33": "lemma-5-close lemma-8",
        "equation-30": "lemma-6 equation-28 equation-33",
        "proposition-2-same-set": "equation-33",
        "proposition-2-other-set": "equation-28",
        "proposition-2-routing": "equation-30",
        "proposition-3": "proposition-2-routing",
        "proposition-4": "lemma-9-history",
        "proposition-4-limit": "lemma-9-history",
        "lemma-9-settled": "proposition-2-routing proposition-3",
        "theorem-1": "proposition-1-specialists proposition-2-routing proposition-3 lemma-9-settled lemma-9-history",
        "theorem-1-floor": "proposition-3 theorem-1",
        "theorem-1-limit": "proposition-3 theorem-1",
    },
    own_faults="proposition-4 lemma-9-settled theorem-1",
)
contradict(  # docs/pages/derivations/contradictions.md
    "edge",
    ("proposition-1-specialists proposition-1-availability", "proposition-2-same-set proposition-2-other-set"),
    ("lemma-8 equation-33", "proposition-2-other-set"),
    ("lemma-4", "proposition-2-other-set equation-28"),
)
IN_ITS_ORDER = """
    lemma_1 lemma_2 proposition_1 proposition_2 proposition_3 proposition_4 theorem_1 figure_3
    lemma_3 lemma_4 lemma_5 lemma_6 lemma_7 lemma_8 lemma_9
"""
for name in IN_ITS_ORDER.split():  # which is that of the claims in every report
    import_module(f"{__name__}.{name}")
