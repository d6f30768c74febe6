"""Statements of the paper on expert merging, one file a number, each with the right statement where it is wrong."""

from importlib import import_module

from moe_theory.verify.premises import rest_on

rest_on(  # Section IV and its appendices
    "merging",
    {
        "equation-8": "lemma-2",
        "lemma-1": "lemma-2 equation-8",
        "lemma-4": "lemma-3",
        "theorem-1": "assumption-1 assumption-2 lemma-3 lemma-4",
        "remark": "theorem-1 lemma-1",
    },
    own_faults="remark",
)
IN_ITS_ORDER = """
    abstract table_1 equation_1 equation_3 assumption_1 lemma_1 regret assumption_2 theorem_1 remark
    figure_2 figure_3 table_2 figure_4 figure_5 figure_6 figure_7 assumption_3 lemma_2 equation_8
    lemma_3 lemma_4
"""
for name in IN_ITS_ORDER.split():  # which is that of the claims in every report
    import_module(f"{__name__}.{name}")
