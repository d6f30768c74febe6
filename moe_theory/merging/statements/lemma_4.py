"""Lemma 4, whose width is out of reach."""

from moe_theory.verify.statement import statement

statement(
    "lemma-4",
    where="Lemma 4, Eq. (9)",
    says=r"""A slot's regret is at most twice the confidence width of its candidate, nu_1 rho^h and two terms for the
    network's width. $$f^*(x_t^*) - f^*(x_t) \le 2 \min\{\gamma \lVert g / \sqrt{w} \rVert_{Z_{t-1}^{-1}}, 1\} + \nu_1
    \rho^{h_t} + 2 \bar{\Gamma}$$""",
    untestable="It supposes the width of Lemma 3, of the order of T^7, and its constants are unknown; at any width "
    "that can be run its terms for the width are above 1, which no slot loses.",
)
