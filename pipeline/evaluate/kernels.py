"""The loops over replicates that numpy would need many passes for, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.manifold.compiled import compiled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@compiled
def count_draws(drawn: Any, units: Any, counts: Any) -> None:
    """Add to counts (b, all units), for each row, how often each of `units` was drawn.

    drawn  (b, m) places in `units`, (m,)
    """
    for row in range(drawn.shape[0]):
        for place in range(drawn.shape[1]):
            counts[row, units[drawn[row, place]]] += 1.0


@compiled
def rank_correlations(orders: Any, runs: Any, y_order: Any, y_runs: Any, weights: Any, out: Any) -> None:
    """Spearman of each of s variables with y, on each of b resamples.

    orders   (s, m) items by ascending value; runs: (s, m) where the run of equal values that a place belongs
             to ends (exclusive). y_order, y_runs: (m,) of y. An item is a column of `weights`.
    weights  (b, n) whole numbers, how often each item is in the resample
    out      (s, b), filled; NaN where a variable is constant in the resample

    Mid-ranks and their mean are half-integers and exact, so a constant variable has a spread of exactly 0.
    """
    variables, m = orders.shape
    held = np.zeros(weights.shape[1])  # (rank of y - its mean) x weight, by item
    for row in range(weights.shape[0]):
        weight = weights[row]
        total = 0.0
        for place in range(m):
            total += weight[y_order[place]]
        middle = (total + 1.0) / 2.0
        below, spread_y, place = 0.0, 0.0, 0
        while place < m:
            end, here = y_runs[place], 0.0
            for tied in range(place, end):
                here += weight[y_order[tied]]
            deviation = below + (here + 1.0) / 2.0 - middle
            for tied in range(place, end):
                held[y_order[tied]] = weight[y_order[tied]] * deviation
            spread_y += here * deviation * deviation
            below += here
            place = end
        for variable in range(variables):
            below, spread, shared, place = 0.0, 0.0, 0.0, 0
            while place < m:
                end, here, other = runs[variable, place], 0.0, 0.0
                for tied in range(place, end):
                    here += weight[orders[variable, tied]]
                    other += held[orders[variable, tied]]
                deviation = below + (here + 1.0) / 2.0 - middle
                spread += here * deviation * deviation
                shared += deviation * other
                below += here
                place = end
            product = spread * spread_y
            out[variable, row] = shared / np.sqrt(product) if product > 0.0 else np.nan


@compiled
def linear_correlations(x: Any, y: Any, items: Any, weights: Any, floor: Any, out: Any) -> None:
    """Pearson of x and y, (n,), over `items`, (m,), on each of b resamples; NaN where a spread is rounding.

    floor  (2,) a squared deviation per unit of weight that rounding of the mean of x, of y, alone can make
    out    (b,), filled
    """
    for row in range(weights.shape[0]):
        weight = weights[row]
        total, sum_x, sum_y = 0.0, 0.0, 0.0
        for place in range(items.shape[0]):
            item = items[place]
            total += weight[item]
            sum_x += weight[item] * x[item]
            sum_y += weight[item] * y[item]
        mean_x, mean_y = sum_x / total, sum_y / total
        spread_x, spread_y, shared = 0.0, 0.0, 0.0
        for place in range(items.shape[0]):
            item = items[place]
            dx, dy = x[item] - mean_x, y[item] - mean_y
            spread_x += weight[item] * dx * dx
            spread_y += weight[item] * dy * dy
            shared += weight[item] * dx * dy
        varies = spread_x > floor[0] * total and spread_y > floor[1] * total
        out[row] = shared / np.sqrt(spread_x * spread_y) if varies else np.nan


@compiled
def cross_entropies(logits: Any, targets: Any, shares: Any, chances: Any, losses: Any) -> None:
    """Add to `losses`, (q,), the weighted cross-entropies of (n, q, c) logits, which become their slopes.

    targets  (n, c) rows summing to 1, or for one logit (n, 1) chances of class 1
    shares   (n, q) weights. A pair of weight 0 is not looked at
    chances  (n, q, c) filled with the probabilities
    """
    rows, problems, classes = logits.shape
    for row in range(rows):
        for problem in range(problems):
            share = shares[row, problem]
            here, chance = logits[row, problem], chances[row, problem]
            if share == 0.0:
                for label in range(classes):
                    here[label] = 0.0
                    chance[label] = 0.0
            elif classes == 1:
                logit = here[0]
                small = np.exp(-abs(logit))
                up = 1.0 / (1.0 + small) if logit > 0.0 else small / (1.0 + small)
                losses[problem] += share * (max(logit, 0.0) - logit * targets[row, 0] + np.log1p(small))
                chance[0] = up
                here[0] = (up - targets[row, 0]) * share
            else:
                top = here[0]
                for label in range(1, classes):
                    top = max(top, here[label])
                whole, wanted = 0.0, 0.0
                for label in range(classes):
                    wanted += (here[label] - top) * targets[row, label]
                    here[label] = np.exp(here[label] - top)
                    whole += here[label]
                losses[problem] += share * (np.log(whole) - wanted)
                for label in range(classes):
                    up = here[label] / whole
                    chance[label] = up
                    here[label] = (up - targets[row, label]) * share


@compiled
def curve_products(products: Any, chances: Any, shares: Any) -> None:
    """Turn (n, q, c) changes of logits into those of the slopes that `cross_entropies` gives, in place."""
    rows, problems, classes = products.shape
    for row in range(rows):
        for problem in range(problems):
            share = shares[row, problem]
            here, chance = products[row, problem], chances[row, problem]
            if classes == 1:
                here[0] *= share * chance[0] * (1.0 - chance[0])
            else:
                mean = 0.0
                for label in range(classes):
                    mean += chance[label] * here[label]
                for label in range(classes):
                    here[label] = share * chance[label] * (here[label] - mean)
