"""Assumption 3 with exponent -d follows from Assumption 1, for d = log 2/log(1/rho).

Take any h, and a j with nu_1 rho^j <= nu_2. The tree halves boxes, so it has at most 2^(h+j) nodes at depth h + j, and
they contain all weights. By Assumption 1 each node has a diameter of at most nu_1 rho^(h+j) <= nu_2 rho^h = eps'. So a
ball of radius eps' around any of its members contains the node, and 2^(h+j) balls cover X_eps. With d = log
2/log(1/rho), 2^h is (rho^h)^(-d). So the cover number is at most 2^j nu_2^d (eps')^(-d). The constant C = 2^j nu_2^d
does not depend on h.
"""

import sys
from fractions import Fraction

holds = True
for power in (1, 2, 3):  # rho = 2^-power, and d = 1/power
    ratio = Fraction(1, 2**power)
    for large, small in ((1, 1), (5, Fraction(1, 3))):  # nu_1, nu_2
        level = next(j for j in range(100) if large * ratio**j <= small)
        for depth in range(20):
            radius = small * ratio**depth
            covers = large * ratio ** (depth + level) <= radius
            # C (eps')^-d to the power 1/d, and the number of nodes to this power
            allowed = 2 ** (level * power) * small / radius
            holds = holds and covers and (2 ** (depth + level)) ** power <= allowed
    print(f"rho = {ratio}: the nodes at depth h + j are a cover and as few as C (eps')^(-d): {holds}")
print("proved: nodes are a cover" if holds else "not proved")
sys.exit(not holds)
