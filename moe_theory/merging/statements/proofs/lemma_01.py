"""Lemma 1, Eq. (5), and Eq. (8), for t nu_1^2 >= (1 + sqrt(T)/2) C^2 log(T/delta), in (5) t = T, and delta <= 1.

Let A = C^2/nu_1^2 and X = t/(A log(T/delta)) >= 1 + sqrt(T)/2. A split makes one leaf more, and there is one in a slot
at most: sqrt(T) splits up to slot sqrt(T), and N_t <= 1 + sqrt(T) <= 2 X if t is none later. A later split, at depth h,
has used up A log(T/delta) rho^(-2h)/2 pulls of its own leaf, as log(sqrt(T)/delta) >= log(T/delta)/2. But for the
root's h >= 1, so that t pulls pay for 2 rho^2 X of these. Candidates are leaves: N_t <= 1 + sqrt(T) + 1 + 2 rho^2 X <=
(2 + 2 rho^2) X. 1/(1 - rho) >= 1 + rho, and 2^rho >= 1 + rho^2 on [0, 1]: the difference is 0 at both ends and concave,
with the second derivative (log 2)^2 2^rho - 2 < 0. So 2 + 2 rho^2 <= 2^(1 + rho) <= 2^(1/(1 - rho)), which is (8), and
(5) at t = T, where the clause is met from some T on, whatever C, nu_1 and delta are. At rho = 0.7 or 0.9, and C = nu_1
= delta = 1, (5) is above T + 1, more leaves than T slots can make, up to T = 20,000: it says little there.
"""

import sys
from fractions import Fraction

import sympy

rho, x, slots, delta = sympy.symbols("rho X T delta", positive=True)
bend = sympy.simplify(sympy.diff(2**rho - 1 - rho**2, rho, 2) - (sympy.log(2) ** 2 * 2**rho - 2))
ends = [(2**rho - 1 - rho**2).subs(rho, end) for end in (0, 1)]
halves = sympy.expand_log(sympy.log(sympy.sqrt(slots) / delta) - sympy.log(slots / delta) / 2, force=True)
halved = sympy.simplify(halves + sympy.log(delta) / 2)  # log(1/delta)/2 >= 0 is what is left
clause = sympy.expand(2 * (1 + sympy.sqrt(slots) / 2) - (2 + sympy.sqrt(slots)))
print(f"2^rho - 1 - rho^2: {ends[0]} and {ends[1]} at the ends, second derivative less the one given {bend}")
print(f"log(sqrt(T)/delta) - log(T/delta)/2 - log(1/delta)/2: {halved}; 2 (1 + sqrt(T)/2) - 2 - sqrt(T): {clause}")
holds = bend == halved == clause == 0 and ends == [0, 0]
holds = holds and sympy.expand((1 + rho) * (1 - rho) - (1 - rho**2)) == 0 and Fraction(7, 10) ** 2 * 2 < 2

MOST, SCALE = 200, 10**12
log = [0, 0]  # floors of SCALE log t, 2 atanh(1/(2k + 1)) being log(1 + 1/k): too small by 20 t at most
for k in range(1, MOST):
    log.append(log[-1] + sum(2 * SCALE // ((2 * j + 1) * (2 * k + 1) ** (2 * j + 1)) for j in range(15)))
for ratio in (Fraction(3, 10), Fraction(1, 2), Fraction(7, 10)):  # C = nu_1 = delta = 1, leaves picked in turn
    leaves, weight, counts = (
        [(0, 0)],
        [(1 / ratio**2) ** h for h in range(20)],
        [1],
    )  # leaves in slot t before its split
    for slot in range(1, MOST + 1):
        depth, picks = leaves.pop(0)
        is_split = (picks + 1) * SCALE >= log[slot] * weight[depth]
        leaves += [(depth + 1, 0), (depth + 1, 0)] if is_split else [(depth, picks + 1)]
        counts.append(len(leaves))
        if slot >= 2:  # where the clause is met, for (5) at T = slot
            most = Fraction(slot * SCALE, log[slot] + 20 * slot)  # X
            assert (2 * most - 2) ** 2 >= slot
            holds = holds and len(leaves) <= (2 + 2 * ratio**2) * most
    for slot in range(1, MOST + 1):  # (8) at T = MOST
        most = Fraction(slot * SCALE, log[MOST] + 20 * MOST)
        if most >= 1 and (2 * most - 2) ** 2 >= MOST:
            holds = holds and counts[slot] <= (2 + 2 * ratio**2) * most
print(f"trees up to T = {MOST} at rho = 0.3, 0.5 and 0.7 are within (2 + 2 rho^2) X, at t <= T too: {holds}")
print("proved: (5) and (8) with the clause" if holds else "not proved")
sys.exit(not holds)
