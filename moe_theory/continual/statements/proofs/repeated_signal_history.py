"""Counterexample to Lemma 16, Eq. (42): after L arrivals the error is |w|^2/2, not |w|^2/2^L.

Proof. Let one task have d = 2, s = 1, w = (1, 1) and v = (1, 0), at an angle of 45 degrees. So r = 1/2. Every arrival
shows only the first coordinate. So after any number L >= 1 of arrivals an expert is (1, 0), and its squared error is 1
= |w|^2/2. With all distances 0, (42) gives r^L |w|^2.

General d and s. A first arrival leaves the part across v, except in the random s - 1 of its d - 1 dimensions that are
learned. Each later arrival leaves (d - s)/(d - 1) of the rest. With a signal of random direction the first error is on
average (d - 1)/d (d - s)/(d - 1) = r. After L arrivals the error is r ((d - s)/(d - 1))^(L - 1) |w|^2, not r^L |w|^2.

Robust: The proof allows any s < d, beta, sigma_t > 0, M and angle of signal and ground truth. If s >= 2, routes must
not depend on the noise. From the first to the second arrival the error falls by the factor (d - s)/(d - 1), or is 0,
but in (42) the factor is r. For N >= 2 and given routes, the same holds for an expert that has served one task only.

Objection: (42) treats samples as Gaussian, and (d - s)/(d - 1) is near r. But (42) is an equality, and Definition 1 has
the signal among the samples. With all s samples Gaussian (42) holds along routes that do not depend on them. The claim
continual.lemma-16.history finds it right within its margin only for signals unrelated to ground truths.
"""

import sys
from fractions import Fraction

TRUTH, SIGNAL = (1, 1), (1, 0)
SQUARE = sum(a * a for a in TRUTH)


def errors(arrivals):
    """Over |w|^2, after each arrival."""
    model, found = (Fraction(0), Fraction(0)), []
    for _ in range(arrivals):
        gap = sum(v * (a - b) for v, a, b in zip(SIGNAL, TRUTH, model, strict=True))  # |v| = 1
        model = tuple(b + gap * v for v, b in zip(SIGNAL, model, strict=True))
        found.append(sum((a - b) ** 2 for a, b in zip(TRUTH, model, strict=True)) / SQUARE)
    return found


def printed(arrivals, features=2, samples=1):
    return [(1 - Fraction(samples, features)) ** count for count in range(1, arrivals + 1)]  # distances are 0


def random_signal(arrivals, features, samples):
    first, repeat = 1 - Fraction(samples, features), Fraction(features - samples, features - 1)
    return [first * repeat ** (count - 1) for count in range(1, arrivals + 1)]


found, said = errors(3), printed(3)
print(f"squared errors after 1, 2, 3 arrivals: {found[0]}, {found[1]}, {found[2]}")
print(f"(42) says {said[0]}, {said[1]}, {said[2]}")
sizes = [(features, samples) for features in range(2, 13) for samples in range(1, features)]
others = all(random_signal(3, *size)[1:] != printed(3, *size)[1:] for size in sizes)
is_violated = found[1:] != said[1:] and others
print("violated: they differ from the second arrival on, at all d and s" if is_violated else "not violated")
sys.exit(not is_violated)
