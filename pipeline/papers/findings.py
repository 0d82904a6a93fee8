"""What this suite's sweeps, cosines, times and arithmetic say of a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.papers.claims import ClaimTest
from pipeline.papers.identities import ROUNDING, TRIALS, greatest_error
from pipeline.papers.published import select
from pipeline.report.comparisons import few_units
from pipeline.report.evidence import Evidence
from pipeline.report.inputs import BENCHMARK_COMMAND
from pipeline.report.speed import seconds_of_run


@dataclass(frozen=True)
class Finding:
    """What a test found.

    signs    each thing that the claim was tested on -> 1 it holds, -1 its opposite holds, 0 not to be told
    named    what these things are, in the plural
    because  the sentence with the numbers
    """

    signs: Mapping[str, int]
    named: str
    because: str


def name_missing(test: ClaimTest, corpora: Sequence[str]) -> str:
    gone = [corpus for corpus in test.corpora if corpus not in corpora]
    return f" No scores on {', '.join(gone)}." if gone else ""


# --- sweeps -------------------------------------------------------------------------------------


def find_best_setting(test: ClaimTest, evidence: Evidence) -> Finding | str:
    """Whether the best value of a setting is between two values, by the share of resamples in which it is."""
    leads, (low, high) = _leads(test, evidence), test.between
    inside = {c: sum(share for value, share in own.items() if low <= float(value) <= high) for c, own in leads.items()}
    if not inside:
        return f"No sweep of {test.space} says where its best point is on {', '.join(test.corpora)}."
    limit = (1 - evidence.results.confidence) / 2 / len(inside)
    signs = {corpus: int(share >= 1 - limit) - int(share <= limit) for corpus, share in inside.items()}
    return Finding(signs, "corpora", f"{_lead_text(test, leads)}{name_missing(test, list(inside))}")


def find_rules(test: ClaimTest, evidence: Evidence) -> Finding | str:
    """Whether each rule without labels chooses another value of a setting than the best, by the same shares."""
    leads, sweep = _leads(test, evidence), evidence.sweeps.get(test.space)
    if not leads or sweep is None or not sweep.picked:
        return f"No sweep of {test.space} says where its best point is and what rules without labels choose."
    [shares] = leads.values()
    chosen = {rule.replace("_", " "): str(point[test.setting]) for rule, point in sorted(sweep.picked.items())}
    limit = (1 - evidence.results.confidence) / 2 / len(chosen)
    best = {rule: shares.get(value, 0.0) for rule, value in chosen.items()}
    signs = {rule: int(share <= limit) - int(share >= 1 - limit) for rule, share in best.items()}
    said = " and ".join(f"the {rule} chooses {value}" for rule, value in chosen.items())
    return Finding(signs, "rules", f"{_lead_text(test, leads)} {said[0].upper()}{said[1:]}.")


def _leads(test: ClaimTest, evidence: Evidence) -> dict[str, dict[str, float]]:
    """Corpus -> value of the setting -> the share of resamples in which the best point of the sweep has it.

    Left out: corpora that nothing was resampled of, and those of too few independent texts for a share to be trusted.
    """
    sweep = evidence.sweeps.get(test.space)
    corpora = [corpus for corpus in test.corpora if not few_units(evidence.results, test.space, corpus)]
    found = {} if sweep is None else {corpus: sweep.leads.get(corpus, {}) for corpus in corpora}
    return {corpus: own[test.setting] for corpus, own in found.items() if own.get(test.setting)}


def _lead_text(test: ClaimTest, leads: Mapping[str, Mapping[str, float]]) -> str:
    parts = []
    for corpus, own in leads.items():
        shares = ", ".join(f"{value} in {share:.1%}" for value, share in own.items() if share)
        parts.append(f"on {corpus} {shares}")
    return f"The best {test.setting} of the sweep, in resamples of the items: {'; '.join(parts)}."


# --- single numbers -----------------------------------------------------------------------------


def find_cosines(test: ClaimTest, evidence: Evidence) -> Finding | str:
    """The printed cosines to the last digit, in that way of writing the pairs in which most of them are."""
    ways: dict[str, list[str]] = {}
    for corpus in test.corpora:
        for pair in evidence.results.facts(test.space, corpus).get("pairs", []):
            ways.setdefault(pair["variant"], []).append(f"{pair['cosine']:.3f}")
    if not ways:
        return f"No cosines were measured on {', '.join(test.corpora)}."
    printed = {figure.model: figure.shown for figure in select("hyperboloid", "1")}
    same = {way: [one == two for one, two in zip(found, printed.values(), strict=True)] for way, found in ways.items()}
    best = max(same, key=lambda way: sum(same[way]))
    signs = {model: 1 if equal else -1 for model, equal in zip(printed, same[best], strict=True)}
    said = "; ".join(f"pairs written {way}: {', '.join(found)}" for way, found in ways.items())
    return Finding(signs, "cosines", f"Printed: {', '.join(printed.values())}. {said[0].upper()}{said[1:]}.")


def find_faster(test: ClaimTest, evidence: Evidence) -> Finding | str:
    """Less CPU time than each of `against` in one run of the benchmark, where no repeat of one reaches the other.

    Times are with sentences split at blanks if all were timed so; otherwise each method has its own tokeniser.
    """
    spaces = (test.space, *test.against)
    names = {space: str(evidence.parameters.get(space, {}).get("method", space)) for space in spaces}
    for own_tokeniser in (False, True):
        runs = {s: seconds_of_run(evidence.benchmark, names[s], own_tokeniser=own_tokeniser) for s in spaces}
        times = {space: run for space, run in runs.items() if run is not None}
        if len(times) == len(spaces):
            break
    else:
        gone = ", ".join(names[space] for space in spaces if space not in times)
        return f"The benchmark of the encoders has no committed times of {gone}; `{BENCHMARK_COMMAND}` makes them."
    low, high = times[test.space]
    signs = {names[s]: int(high < times[s][0]) - int(low > times[s][1]) for s in test.against}
    ratios = "; ".join(
        f"{names[s]} takes {times[s][0] / high:.2f} to {times[s][1] / low:.2f} times as long" for s in test.against
    )
    split = "each by its own tokeniser" if own_tokeniser else "sentences split at blanks"
    said = f"Against {names[test.space]}, {ratios}; {split}, CPU time of encoding alone, all repeats of one run."
    return Finding(signs, "methods", said)


def find_identity(test: ClaimTest, evidence: Evidence) -> Finding | str:
    """Both sides of an equation on random numbers, equal to rounding error."""
    error = greatest_error(test.identity)
    said = f"Both sides on {TRIALS} random draws differ by a factor of 1 + {error:.0e} at most."
    return Finding({test.identity: 1 if error < ROUNDING else -1}, "identities", said)
