"""Eq. (30): what the sets give of any pair, at any gates.

Let m be in M_n and m' in M_{n'}, n != n'. By (15) theta_m'v_n > theta_m'v_{n'} and theta_{m'}'v_{n'} > theta_{m'}'v_n.
For one kind the softmax's denominator is the same for both servers, so log pi_m - log pi_{m'} is the difference of
their outputs. Added up over the two kinds the log ratios that (30) says are above 0 are [theta_m'v_n - theta_m'v_{n'}]
+ [theta_{m'}'v_{n'} - theta_{m'}'v_n] > 0: at least one of them is above 0, and that half of (30) holds.

No more follows: outputs (3, 2) of m for the two signals and (0, 1) of m' leave m ahead at both.

Robust: gates, rounds, signals, delays, M, N; outputs are those for the signals, as in (15).
"""

import sys

import sympy as sp

EXPERTS = 3
signals = [sp.Matrix(sp.symbols(f"v{n}_1:3", real=True)) for n in range(2)]
gates = [sp.Matrix(sp.symbols(f"g{m}_1:3", real=True)) for m in range(EXPERTS)]


def log_ratio(one: int, other: int, kind: int) -> sp.Expr:
    """log pi_one - log pi_other for a kind's signal."""
    weights = [sp.exp(gate.dot(signals[kind])) for gate in gates]
    shares = [weight / sum(weights) for weight in weights]
    return sp.expand_log(sp.log(sp.powsimp(shares[one] / shares[other])), force=True)


added = log_ratio(0, 1, 0) + log_ratio(1, 0, 1)
by_sets = gates[0].dot(signals[0] - signals[1]) + gates[1].dot(signals[1] - signals[0])
left = sp.simplify(added - by_sets)

# (30) itself does not follow: m's outputs for the two signals, then those of m', each in its own set.
first, second = (3, 2), (0, 1)
in_sets = first[0] > first[1] and second[1] > second[0]
ordered = first[0] > second[0], second[1] > first[1]
print(f"log ratios of (30) added up, less what (15) says is above 0: {left}")
print(f"outputs (3, 2) and (0, 1): in their sets {in_sets}, (30) holds for n {ordered[0]}, for n' {ordered[1]}")
is_proved = left == 0 and in_sets and any(ordered) and not all(ordered)
print("proved: the log ratios add up to more than 0, so one of the two holds" if is_proved else "not proved")
sys.exit(not is_proved)
