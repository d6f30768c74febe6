"""Counterexample to Lemma 9: two gates are Theta(eta) apart at T1, not O(eta^-0.5 sigma_0).

Claim. The gap of two gates is at least sigma_0^0.5/5 with eta = sigma_0^0.5, and the lemma says O(sigma_0^0.75).
Setting. Two experts, N orthonormal signals, s = 1, all w_n = (1, ..., 1). beta is 1 or 1/2 with equal probability, and
alpha = 0. Proof. (a) A model moves by 1 along e_n when its expert first has task n, and never again for n. (b) By (9)
the first move lowers that expert's output for n and raises the other's by as much. Once eta beta/2 is above lambda =
Theta(sigma_0^1.25), the second arrival of n goes to the other expert. Later ones move nothing. (c) Let D be the gap of
the two outputs for n. After a first arrival with beta = b it is D = -eta b/2. The second, with b', adds 2 eta b' p(1 -
p), with p the softmax at b' D and 1/4 - (b' D)^2/16 <= p(1 - p) <= 1/4. (d) So |D| >= eta/4 - eta^3/32 where b and b'
differ, with probability 1/2 for each task. Each task arrives twice up to T1 >= 2/eta with probability 1
- o(1).

Robust: Any M (M first arrivals, with M strengths), N and d, lambda = Theta(sigma_0^1.25), alpha = O(sigma_0), other
distributions of beta that are not constant, ground truths that differ by O(sigma_0).

Objection: In the proof of Lemma 5 ground truths are N(0, sigma_0^2), but Section 3 assumes only that differences are
O(sigma_0). With ground truths of size O(sigma_0) the lemma holds (proof).
"""

import sys
from fractions import Fraction
from itertools import product

STRENGTHS = (Fraction(1), Fraction(1, 2))


def gap(eta: Fraction, first: Fraction, second: Fraction) -> Fraction:
    """A lower bound of |D| after two arrivals of a task."""
    after = -eta * first / 2
    most, least = Fraction(1, 4), Fraction(1, 4) - (second * after) ** 2 / 16
    ends = [after + 2 * eta * second * each for each in (least, most)]
    return Fraction(0) if min(ends) <= 0 <= max(ends) else min(map(abs, ends))


is_violated = True
for power in (4, 8, 12):  # sigma_0 = 4^-power, eta = sigma_0^0.5, eta^-0.5 sigma_0 = sigma_0^0.75
    root = Fraction(1, 2**power)  # sigma_0^0.5, which is eta
    gaps = [gap(root, *pair) for pair in product(STRENGTHS, repeat=2)]
    share = Fraction(sum(each >= root / 5 for each in gaps), len(gaps))
    multiple = 2 ** (power // 2)  # of sigma_0^0.75 in sigma_0^0.5
    print(f"sigma_0 = {root**2}: a gap of {multiple}/5 sigma_0^0.75 or more with chance {share} a task")
    is_violated &= share >= Fraction(1, 2)
print("violated: no multiple of sigma_0^0.75 is above" if is_violated else "not violated")
sys.exit(not is_violated)
