"""Statements of the continual-learning paper, a file a number, and the claims that test them."""

from importlib import import_module

from moe_theory.continual.experiments import FREE, IN_RANGE
from moe_theory.verify.premises import contradict, rest_on
from moe_theory.verify.statement import suppose

suppose(IN_RANGE, free=FREE)
rest_on(  # appendices B to J
    "continual",
    {
        "lemma-1-more-experts": "lemma-6",
        "lemma-1-fewer-experts": "lemma-6",
        "corollary-1": "lemma-1-more-experts lemma-1-fewer-experts lemma-2",
        "lemma-5-exploration": "lemma-3 lemma-4",
        "lemma-5-router-learning": "lemma-3 lemma-4",
        "lemma-6": "lemma-5-exploration lemma-5-router-learning",
        "lemma-7-chosen": "lemma-5-exploration",
        "lemma-7-others": "lemma-5-exploration",
        "lemma-9": "lemma-7-chosen lemma-7-others lemma-8",
        "lemma-12-more-experts": "lemma-3",
        "lemma-13-more-experts": "equation-35 lemma-5-exploration lemma-6",
        "lemma-13-fewer-experts": "equation-35 lemma-5-exploration lemma-6",
        "equation-35": "lemma-1-more-experts lemma-6 lemma-10-apart",
        "proposition-1-more-experts-set": "equation-35 lemma-9 lemma-10-close lemma-13-more-experts",
        "proposition-1-fewer-experts-set": "equation-35 lemma-9 lemma-10-close lemma-13-fewer-experts",
        "proposition-1-more-experts-model": "lemma-3 lemma-12-more-experts proposition-1-more-experts-set",
        "proposition-1-fewer-experts-model": "lemma-12-fewer-experts proposition-1-fewer-experts-set",
        "lemma-14": "lemma-5-router-learning",
        "lemma-15-more-experts": (
            "equation-35 proposition-1-more-experts-set lemma-12-more-experts lemma-13-more-experts"
        ),
        "lemma-15-fewer-experts": (
            "equation-35 proposition-1-fewer-experts-set lemma-12-fewer-experts lemma-13-fewer-experts"
        ),
        "proposition-2-more-experts-same-set": "proposition-1-more-experts-set lemma-4 lemma-10-close lemma-14",
        "proposition-2-fewer-experts-same-set": "proposition-1-fewer-experts-set lemma-4 lemma-10-close lemma-14",
        "proposition-2-more-experts-other-set": "proposition-1-more-experts-set lemma-13-more-experts",
        "proposition-2-fewer-experts-other-set": "proposition-1-fewer-experts-set lemma-13-fewer-experts",
        "proposition-2-more-experts-all": (
            "proposition-2-more-experts-same-set proposition-2-more-experts-other-set lemma-4 lemma-7-chosen lemma-14"
        ),
        "proposition-2-fewer-experts-all": (
            "proposition-2-fewer-experts-same-set proposition-2-fewer-experts-other-set lemma-12-fewer-experts"
        ),
        "proposition-3-more-experts": "proposition-2-more-experts-other-set proposition-2-more-experts-all",
        "proposition-3-fewer-experts": "proposition-2-fewer-experts-other-set proposition-2-fewer-experts-all",
        "proposition-4-forgetting": "lemma-16-history",
        "proposition-4-generalization-error": "lemma-16-history",
        "lemma-16-frozen": "proposition-1-more-experts-model proposition-2-more-experts-all",
        "theorem-1-forgetting": "lemma-16-history lemma-8 proposition-1-more-experts-set",
        "theorem-1-forgetting-decay": "lemma-16-frozen",
        "theorem-1-generalization-error": "lemma-16-history lemma-16-frozen",
        "theorem-2-forgetting-exploration": "theorem-1-forgetting",
        "theorem-2-forgetting": "theorem-1-forgetting lemma-16-history lemma-15-fewer-experts",
        "theorem-2-generalization-error": "lemma-15-fewer-experts theorem-1-generalization-error lemma-16-history",
    },
    own_faults="""
        proposition-1-fewer-experts-model
        proposition-4-forgetting proposition-4-generalization-error
        theorem-1-forgetting theorem-1-generalization-error
    """,
)
contradict(  # docs/pages/derivations/contradictions.md
    "continual",
    ("lemma-4 lemma-9", "equation-35"),
    ("lemma-3", "lemma-5-exploration"),
    ("lemma-5-exploration", "lemma-8 lemma-11-more-experts lemma-11-fewer-experts"),
    ("lemma-3", "lemma-16-history proposition-4-forgetting"),
    ("lemma-3", "theorem-1-forgetting"),
)
IN_ITS_ORDER = """
    lemma_01 proposition_1 proposition_2 proposition_3 proposition_4 theorem_1 theorem_2 figure_2
    figure_8 figure_9 lemma_02 corollary_1 lemma_03 lemma_04 lemma_05 lemma_06 lemma_07 lemma_08
    lemma_09 lemma_10 lemma_11 lemma_12 lemma_13 lemma_14 lemma_15 lemma_16
"""
for name in IN_ITS_ORDER.split():  # which is that of the claims in every report
    import_module(f"{__name__}.{name}")
