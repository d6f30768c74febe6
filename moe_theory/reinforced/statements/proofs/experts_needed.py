"""Corollary 1: a settled state has M >= N.

Proof. (a) The expert with the largest output for task n is within lambda of it. So in a settled state this expert
served n last. (b) An expert has only one last task. So the experts with the largest outputs for different tasks differ,
and there are N of them. For M < N up to N = 5, the program takes every choice of experts with the largest outputs and
of last tasks. It finds no settled state. For M = N it finds some.

Robust: The proof uses only the definition of a settled state, so lambda, baseline, signals and learners may be any.

Objection: Outputs may be equal. But each expert with the largest output served n last.

Caveat: It is not shown that M >= N is enough. A run that has not settled can look settled for a long time.
"""

import sys
from itertools import product


def num_settled(num_experts, num_tasks):
    return sum(
        all(last[leaders[n]] == n for n in range(num_tasks))
        for leaders in product(range(num_experts), repeat=num_tasks)
        for last in product(range(num_tasks), repeat=num_experts)
    )


fewer = {(m, n): num_settled(m, n) for n in range(2, 6) for m in range(1, n) if m**n * n**m < 10**6}
equal = {(n, n): num_settled(n, n) for n in range(2, 5)}
print(", ".join(f"M = {m}, N = {n}: {count}" for (m, n), count in (fewer | equal).items()))
is_proved = not any(fewer.values()) and all(equal.values())
print("proved: with M < N no state is settled" if is_proved else "not proved")
sys.exit(not is_proved)
