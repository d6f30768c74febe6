"""Assumption 3, which is met by definition, once a sign is put right."""

from moe_theory.verify.statement import statement

statement(
    "assumption-3",
    where="Assumption 3",
    says="Near-optimal weights are covered by few balls, as a near-optimality dimension says.",
    untestable="A definition in the form of an assumption: it holds for some constant and dimension, and no statement "
    "of the paper uses either. As printed its exponent is d, so that for d above 0 the bound falls below 1 as h grows, "
    "and a cover has a member at least: -d is meant.",
)
