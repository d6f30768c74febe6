"""Lemma 1: how an expert learns a task."""

from moe_theory.verify.statement import statement

LEMMA_1 = statement(
    "lemma-1",
    where="Lemma 1, Eqs. (9) and (10)",
    says="Completing a task moves its expert to the nearest model that fits the data, and no other expert.",
    untestable="""It is the update that the system itself performs, so none of its runs can contradict it; the system's
    tests compare it with a solution of (8) by other means.""",
)
