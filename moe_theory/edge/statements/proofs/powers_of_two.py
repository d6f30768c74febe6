"""Counterexample to Lemma 5, second sentence: outputs ln 2 apart have probabilities 1/(2^k + 3) apart.

If one expert is far ahead, the other two probabilities can differ only little. Let the outputs be k ln 2, ln 2 and 0.
Their probabilities are 2^k, 2 and 1 over 2^k + 3.

The last two outputs are ln 2 apart for every k, which is not o(1). Their probabilities are 1/(2^k + 3) apart. For large
k this is below any constant times ln 2. So no c > 0 has |pi_m - pi_m'| > c |h_m - h_m'| for all outputs.

Robust: the proof allows any gap of the two outputs and any further experts. One output far above the others is enough.

Objection: outputs stay bounded in the proofs that use the lemma. Then it holds at a fixed M, which is our condition.
But Lemma 5 covers any round t and any outputs.
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
print("violated: the gap of probabilities vanishes, the gap of outputs stays" if is_violated else "not violated")
sys.exit(not is_violated)
