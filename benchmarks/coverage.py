"""Coverage of the bootstrap intervals, by simulation, for every resampling unit.

    python -m benchmarks.coverage [--simulations 1500]

Prints the share of simulated data sets whose 95% interval holds the population's Spearman, with the
standard error of that share. The designs are those of tests/compare/test_bootstrap.py.
"""

from __future__ import annotations

import argparse

from tests.compare.test_bootstrap import DESIGNS, coverage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=1500)
    simulations = parser.parse_args().simulations
    for unit in DESIGNS:
        share = coverage(unit, simulations)
        error = (share * (1 - share) / simulations) ** 0.5
        print(f"{unit:<7} {100 * share:.1f}% ± {100 * error:.1f} of {simulations} simulations")


if __name__ == "__main__":
    main()
