"""Proposition 1, (16): the normal quantile M_th is exceeded with a probability above delta, even rounded up."""

import math
import sys

from scipy import stats

window, kinds = 10, 10  # d_u and N of Fig. 3
arrivals = stats.binom(window, 1 / kinds)  # of one kind within d_u rounds
mean, deviation = arrivals.mean(), arrivals.std()
is_violated = False
for delta in (0.05, 1e-3, 1e-6):
    threshold = mean + stats.norm.ppf(1 - delta) * deviation
    rounded = math.ceil(threshold)
    printed, whole = arrivals.sf(threshold), arrivals.sf(rounded)
    print(f"delta = {delta:g}: M_th = {threshold:.2f}, claimed P[A > M_th] <= {delta:g}")
    print(f"    P[A > {threshold:.2f}] = {printed:.3g}, {printed / delta:.3g} delta")
    print(f"    P[A > {rounded}] = {whole:.3g}, {whole / delta:.3g} delta, with M_th rounded up")
    is_violated |= whole > delta
print("violated, rounded up or not" if is_violated else "not violated once rounded up")
sys.exit(not is_violated)
