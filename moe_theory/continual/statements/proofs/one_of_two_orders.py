"""Lemma 15, what holds instead: of two specialists one at least is ahead at its own task.

By (11), m in M_n and m' in M_n' with n != n' say a = theta_m . (v_n - v_n') > 0 and b = theta_m' . (v_n' - v_n) > 0.
Then a + b = [theta_m . v_n - theta_m' . v_n] + [theta_m' . v_n' - theta_m . v_n'] > 0, so that one of the brackets is
above 0 at least. For the same features probabilities (2) are ordered as outputs are: one of the two inequalities of
(40) holds of each pair, for signals alone, at every round, whatever the algorithm has done. Where (11) has ties,
a, b >= 0 and one bracket is 0 or more.
"""

import sys

from sympy import exp, expand, simplify, symbols

m_n, m_k, o_n, o_k, rest = symbols("m_n m_k o_n o_k rest", real=True)  # outputs of m and of the other for n and for n'
preferences = (m_n - m_k) + (o_k - o_n)
brackets = (m_n - o_n) + (o_k - m_k)
ratio = (exp(m_n) / (exp(m_n) + exp(o_n) + rest)) / (exp(o_n) / (exp(m_n) + exp(o_n) + rest))  # of probabilities
print(f"a + b = {preferences}")
print(f"the brackets' sum = {brackets}, and pi_m(X_n)/pi_m'(X_n) = {simplify(ratio)}")
is_proved = expand(preferences - brackets) == 0 and simplify(ratio - exp(m_n - o_n)) == 0
print("proved: of two terms with a sum above 0 one is above 0" if is_proved else "not proved")
sys.exit(not is_proved)
