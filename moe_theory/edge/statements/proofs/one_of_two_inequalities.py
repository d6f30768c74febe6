"""Eq. (30), corrected: for any gates, at least one of its two inequalities holds.

Let features have no noise, m be in M_n and m' in M_n', and h_m(n) = <theta^(m), v_n>. By (15) h_m(n) > h_m(n') and
h_m'(n') > h_m'(n). The sum gives (h_m(n) - h_m'(n)) + (h_m'(n') - h_m(n')) > 0.

For one task, the softmax turns differences of outputs into differences of log-probabilities, up to a factor. So log
pi_m(n)/pi_m'(n) is beta times the first bracket, and log pi_m'(n')/pi_m(n') is beta' times the second. One bracket is
positive, and with it one inequality of (30) holds. So at least one of the two experts has the higher probability for
its type. The other may have the lower probability for both types, as m' has with outputs 1 and 2 if m has 5 and 4.
"""

import sys

from sympy import exp, expand, expand_log, log, symbols

first, second, third, fourth, one, other = symbols("h_mn h_mk g_mn g_mk Z_n Z_k", real=True)
beta, gamma = symbols("beta beta'", positive=True)  # strengths of the two tasks
Z = {"n": exp(one), "k": exp(other)}  # sums of exponentials for the two tasks, k for n'
for_n = expand_log(log(exp(beta * first) / Z["n"] / (exp(beta * third) / Z["n"])))  # of m over m', for n
for_k = expand_log(log(exp(gamma * fourth) / Z["k"] / (exp(gamma * second) / Z["k"])))  # of m' over m, for n'
sets = (first - second) + (fourth - third)  # two differences that are positive by (15)
left = expand(for_n / beta + for_k / gamma - sets)
print(f"log pi_m(n)/pi_m'(n) = {for_n}, log pi_m'(n')/pi_m(n') = {for_k}")
print(f"their sum, over the strengths, less what (15) has positive = {left}")
print("proved: one of the two is positive" if left == 0 else "not proved")
sys.exit(left != 0)
