"""Lemma 15, corrected: for every pair of experts, at least one of the two inequalities (40) holds.

Claim. Let m be in M_n and m' in M_{n'}, n != n', and let each argmax in (11) be unique. At least one of the two leads
that (40) compares is above 0. By (2) the softmax of that pair is then ordered as (40) says.

Proof. (a) By (11) theta_m'v_n > theta_m'v_{n'} and theta_{m'}'v_{n'} > theta_{m'}'v_n. (b) Added up and sorted by
signals, [h_m(n) - h_{m'}(n)] + [h_{m'}(n') - h_m(n')] > 0. For clusters n and n' are the tasks at which (11) is
attained. With ties, as for gates that are 0, the sum may be 0.

Nothing more follows. For example, outputs (3, 2) of m and (0, 1) of m' leave m ahead for both tasks.

Robust: The proof allows any gates, rounds, signals, M and N. Outputs are taken at the signals, as in (11). With beta
v_n + noise in place of v_n the sum is above 0 if all beta are equal and the noise is smaller than the sum.
"""

import sys

import sympy as sp

signals = [sp.Matrix(sp.symbols(f"v{n}_1:4", real=True)) for n in range(2)]
one, other = (sp.Matrix(sp.symbols(f"{name}_1:4", real=True)) for name in ("theta", "phi"))
leads = one.dot(signals[0]) - other.dot(signals[0]), other.dot(signals[1]) - one.dot(signals[1])
by_sets = one.dot(signals[0]) - one.dot(signals[1]), other.dot(signals[1]) - other.dot(signals[0])
left = sp.expand(sum(leads) - sum(by_sets))

# (40) itself does not follow: m's outputs for the two signals, then those of m', each in its own set.
first, second = (3, 2), (0, 1)
in_sets = first[0] > first[1] and second[1] > second[0]
ordered = first[0] > second[0], second[1] > first[1]
print(f"leads of (40) added up, less what (11) says is above 0: {left}")
print(f"outputs (3, 2) and (0, 1): in their sets {in_sets}, (40) holds for n {ordered[0]}, for n' {ordered[1]}")
is_proved = left == 0 and in_sets and any(ordered) and not all(ordered)
print("proved: the leads add up to more than 0, so one of the two holds" if is_proved else "not proved")
sys.exit(not is_proved)
