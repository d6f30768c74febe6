"""Lemma 5, second sentence: outputs k ln 2, ln 2, 0; the last two are ln 2 apart, their probabilities 1/(2^k + 3).

One expert far ahead takes nearly all the probability, and leaves little for the other two to differ in. Outputs k ln 2,
ln 2 and 0 have the probabilities 2^k, 2 and 1 over 2^k + 3. The outputs of the last two are ln 2 apart, whatever k is,
and that is not o(1). Their probabilities are 1/(2^k + 3) apart, which is below any constant times ln 2 once k is large:
no c > 0 has |pi_m - pi_m'| > c |h_m - h_m'| for all outputs.

Robust: the gap of the two outputs and further experts do not matter: one output far above all others is enough.

Objection: outputs stay bounded in the proofs that use the lemma. With that, and M fixed, it holds, which is the
clause that we add; Lemma 5 is for any round t and any outputs.
"""

import sys
from fractions import Fraction

ratios = []
for power in (1, 10, 40):
    weights = [2**power, 2, 1]  # exponentials of the outputs
    gap = Fraction(weights[1] - weights[2], sum(weights))
    ratios.append(gap / Fraction(2, 3))  # over the outputs' gap, as ln 2 > 2/3
    print(f"k = {power}: probabilities {gap} apart, outputs more than 2/3")
is_violated = ratios[0] > 1000 * ratios[2] and ratios[2] < Fraction(1, 10**11)
print("violated: the gap of probabilities vanishes, that of outputs stays" if is_violated else "not violated")
sys.exit(not is_violated)
