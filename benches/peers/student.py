"""Ratios of pairs with their 95 % intervals, for the scripts that compare: Student's t on logarithms."""

import math
import statistics

# Quantile 0.975 of Student's t by degrees of freedom, from 1 on.
#= https://www.itl.nist.gov/div898/handbook/eda/section3/eda3672.htm
TABLE = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]


def student(n):
    """Quantile 0.975 of Student's t with `n` degrees of freedom (beyond the table Cornish-Fisher, which is within
    0.01 % there)."""
    if n <= len(TABLE):
        return TABLE[n - 1]
    z = statistics.NormalDist().inv_cdf(0.975)
    g = [(z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384]
    return z + sum(v / n ** (i + 1) for i, v in enumerate(g))


def interval(ratios):
    """Geometric mean of ratios between its 95 % bounds: low, mean, high. Of one pair nothing is known."""
    logs = [math.log(r) for r in ratios]
    mean = statistics.mean(logs)
    if len(logs) < 2:
        return [math.nan, math.exp(mean), math.nan]
    half = student(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return [math.exp(x) for x in (mean - half, mean, mean + half)]
