"""Two equal tasks without noise: the second pass learns what the first has left, so that forgetting is negative.

After one pass a share r = 1 - n/p of |w*|^2 is left in mean, after two r^2, and F_2 = r^2 - r < 0.

Robust: tasks near enough, |w*_1 - w*_2|^2 < r |w*_1|^2, and noise small enough.

Objection: that is transfer, not forgetting. It is what the definition counts, and what the sentence is about.
"""

import sys
from fractions import Fraction

r = 1 - Fraction(2, 4)
once = r * 1
twice = r * once
print(f"stated: F_2 is at least 0; exact, for |w*| = 1, n = 2, p = 4: {twice} - {once} = {twice - once}")
is_violated = twice - once < 0
print("violated: forgetting is negative" if is_violated else "not violated")
sys.exit(not is_violated)
