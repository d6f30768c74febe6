"""Algorithm 1 against a baseline: what each claim of a paper becomes for it.

moe-theory verify continual --system examples/repaired.py:repaired --reading orthogonal-signal
"""

from moe_theory import continual

repaired = {"locality": continual.baseline.repaired}
