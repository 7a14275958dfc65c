"""The interval of a median, for the scripts that compare programs in pairs."""

import math


def interval(values):
    """95 % interval of the median, by ranks."""
    values, n = sorted(values), len(values)
    below, rank = 0.0, 0
    while below + math.comb(n, rank) / 2**n <= 0.025:
        below += math.comb(n, rank) / 2**n
        rank += 1
    return (values[rank - 1], values[n - rank]) if rank else (math.nan, math.nan)
