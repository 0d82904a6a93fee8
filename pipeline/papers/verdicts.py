"""Verdicts on claims: one decision function for each rule, from scores, paired intervals and printed figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.papers.claims import Claim
from pipeline.papers.plan import load_figures
from pipeline.papers.printed_verdicts import Outcome, judge_printed, judge_whole
from pipeline.papers.published import select
from pipeline.papers.sweep_verdicts import best_between, misleads
from pipeline.report.comparisons import Judged, is_tuned, judge_across, name_control
from pipeline.report.entries import measured_entry
from pipeline.report.evidence import Evidence
from pipeline.report.inputs import BENCHMARK_COMMAND
from pipeline.report.special_tables import cluster_table, seconds_per_sentence
from sentfold.compare.orders import about_many
from sentfold.report.table import Entry

# Points, on the x100 scale, below which a difference is none that anybody would use a method for: scores are printed
# with two digits, and seeds, tokenisers or another revision of an encoder move them by more. Where the simultaneous
# intervals of all differences lie strictly inside it, the data say that there is no gain; without it, the narrower an
# interval around 0 the more surely its claim stays open.
EQUAL = 0.1
# What the benchmark of the encoders keeps of each method.
ONCE = "CPU time of encoding alone, without fitting, the least of a few runs, without a spread"

# Rules about a whole sweep.
SWEPT = ("best-between", "misleads")

Verdict = Literal["reproduced", "contradicted", "not testable here"]


@dataclass(frozen=True)
class Decided:
    """A claim and what the numbers say of it."""

    name: str
    claim: Claim
    outcome: Outcome
    control: str = ""
    vectors: str = ""

    @property
    def verdict(self) -> Verdict:
        """Reproduced, contradicted, or not testable here."""
        return self.outcome.verdict

    @property
    def caveat(self) -> str:
        """What the verdict is not about."""
        if not self.vectors or self.vectors == self.claim.made_on or self.verdict == "not testable here":
            return ""
        return f"The claim was made about {self.claim.made_on}: of that nothing is confirmed or refuted here."


def decide(name: str, claim: Claim, evidence: Evidence) -> Decided:
    """The verdict on one claim by its rule."""
    outcome = RULES[claim.rule](claim, evidence)
    control = _others(claim, evidence) if claim.rule in {"beats", "shown"} else ""
    measured = claim.rule not in {"printed", "whole", "absent"}
    vectors = (
        evidence.made_of.get(claim.ours, "") if claim.ours else load_figures().timing.vectors if claim.method else ""
    )
    if claim.rule in SWEPT:
        vectors = vectors.rpartition("; ")[2]  # the encoder: the sweep goes through what was chosen in the end
    return Decided(name, claim, outcome, control, vectors if measured else "")


# --- scores -------------------------------------------------------------------------------------


def beats(claim: Claim, evidence: Evidence) -> Outcome:
    """Higher than each of `than` on each corpus, all intervals at once; contradicted if lower on any of them.

    Contradicted as well if all differences with their whole intervals are smaller than EQUAL, be they on the right side
    of 0 beyond chance: a claim of a gain is one of a gain that matters.
    """
    family = _family(claim, evidence)
    if isinstance(family, Outcome):
        return family
    signs = [judged.sign for judged in family]
    said = _numbers(family) + _lacking(claim, evidence)
    if all(judged.result.p == 1 and judged.result.low == judged.result.high == 0 for judged in family):
        return Outcome("contradicted", f"No difference at all, in any resample: {said}.")
    if all(judged.result.low > -EQUAL and judged.result.high < EQUAL and not judged.few for judged in family):
        return Outcome("contradicted", f"No difference of {EQUAL:g} points or more: {said}.")
    if all(sign == 1 for sign in signs):
        return Outcome("reproduced", f"Higher: {said}.")
    if any(sign == -1 for sign in signs):
        return Outcome("contradicted", f"{_by_sign(family)}{_lacking(claim, evidence)}.")
    smallest = max(judged.result.detectable for judged in family)
    return Outcome("not testable here", f"Too close to call, differences up to {smallest:.1f} points may hide: {said}.")


def shown(claim: Claim, evidence: Evidence) -> Outcome:
    """The differences that `beats` would judge, and why they decide nothing."""
    family = _family(claim, evidence)
    if isinstance(family, Outcome):
        return family
    return Outcome("not testable here", f"{_by_sign(family)}{_lacking(claim, evidence)}; but {claim.reason}.")


def matches(claim: Claim, evidence: Evidence) -> Outcome:
    """Within `margin` points on each corpus, all intervals at once; contradicted if beyond it on any of them."""
    family = _family(claim, evidence)
    if isinstance(family, Outcome):
        return family
    said = f"{_numbers(family)}, margin {claim.margin:g}{_lacking(claim, evidence)}"
    if all(-claim.margin <= j.result.low and j.result.high <= claim.margin and not j.few for j in family):
        return Outcome("reproduced", f"Within the margin: {said}.")
    if any((j.result.low > claim.margin or j.result.high < -claim.margin) and not j.few for j in family):
        return Outcome("contradicted", f"Beyond the margin: {said}.")
    return Outcome("not testable here", f"Too close to the margin to call: {said}.")


def _family(claim: Claim, evidence: Evidence) -> tuple[Judged, ...] | Outcome:
    """The differences that decide a claim, or why there are none."""
    results, other = evidence.results, claim.than_protocol or claim.protocol
    sides = [(claim.ours, claim.protocol), *((space, other) for space in claim.than)]
    blanks = [
        [entry for corpus in claim.corpora if (entry := measured_entry(results, space, corpus, protocol)).blank]
        for space, protocol in sides
    ]
    for found in blanks:
        if len(found) == len(claim.corpora):
            return Outcome("not testable here", f"{found[0].reason[0].upper()}{found[0].reason[1:]}.", found[0].command)
    family = judge_across(results, sides[0], sides[1:], claim.corpora)
    if not family:
        return Outcome("not testable here", "No corpus has all the scores that it compares.")
    if all(judged.few for judged in family):
        return Outcome("not testable here", f"Too few independent texts to call a difference: {_numbers(family)}.")
    return family


def _numbers(family: Sequence[Judged], *, several: bool | None = None) -> str:
    several = _several(family) if several is None else several
    return ", ".join(
        f"{judged.corpus}{f' against {judged.against}' if several else ''} {judged.text}"
        f"{' (too few texts)' if judged.few else ''}"
        for judged in family
    )


def _by_sign(family: Sequence[Judged]) -> str:
    """The numbers by what they say: lower first, for that is what contradicts."""
    parts = []
    for sign, word in ((-1, "lower"), (1, "higher"), (0, "not to be told apart")):
        some = [judged for judged in family if judged.sign == sign]
        parts += [f"{word}: {_numbers(some, several=_several(family))}"] if some else []
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}"


def _several(family: Sequence[Judged]) -> bool:
    return len({judged.against for judged in family}) > 1


def _lacking(claim: Claim, evidence: Evidence) -> str:
    gone = [c for c in claim.corpora if measured_entry(evidence.results, claim.ours, c, claim.protocol).blank]
    return f"; blank: {', '.join(gone)}" if gone else ""


def _others(claim: Claim, evidence: Evidence) -> str:
    """How the same space compares with its control and with other spaces, a sentence each; '' if not measured."""
    sentences = []
    for other in (claim.control, *claim.beside) if claim.control else claim.beside:
        family = judge_across(evidence.results, (claim.ours, claim.protocol), [(other, claim.protocol)], claim.corpora)
        made_of = evidence.made_of.get(other, "")
        if other == claim.control:
            corpora = [judged.corpus for judged in family]
            tuned = all(is_tuned(evidence.parameters.get(space, {})) for space in (claim.ours, other))
            control = name_control(evidence.results, claim.ours, other, corpora, evidence.made_of, tuned=tuned)
            name = f"Against {control}"
        else:
            name = f"Beside it, against {other}{f' ({made_of})' if made_of else ''}"
        sentences += [f"{name}: {_numbers(family)}."] if family else []
    return " ".join(sentences)


# --- single numbers -----------------------------------------------------------------------------


def repairs(claim: Claim, evidence: Evidence) -> Outcome:
    """More orders of sentence pairs repaired than broken, by the interval of their difference."""
    cases = evidence.cases
    orders = None if cases is None else cases.orders.get(claim.ours)
    if cases is None or orders is None or orders.low is None or orders.high is None:
        return Outcome("not testable here", f"No corpus of the suite has orders of {claim.ours} to compare.")
    said = (
        f"on {cases.corpus}, about {about_many(orders.repaired)} repaired and {about_many(orders.broken)} broken, "
        f"net {orders.net:+.2f} [{orders.low:+.2f}, {orders.high:+.2f}] per 100 comparable"
    )
    if orders.low > 0:
        return Outcome("reproduced", f"More repaired than broken: {said}.")
    if orders.high < 0:
        return Outcome("contradicted", f"More broken than repaired: {said}.")
    return Outcome("not testable here", f"Too close to call: {said}.")


def prints(claim: Claim, evidence: Evidence) -> Outcome:
    """The cosines of single pairs are the printed ones to the last digit, in one way of writing them."""
    ways = _cosines(claim, evidence)
    if not ways:
        return Outcome("not testable here", f"The suite has no corpus {', '.join(claim.corpora)}.")
    printed = [figure.shown for figure in select("hyperboloid", "1")]
    said = "; ".join(f"{way}: {', '.join(f'{c:.3f}' for c in values)}" for way, values in ways.items())
    same = any([f"{cosine:.3f}" for cosine in values] == printed for values in ways.values())
    return Outcome("reproduced" if same else "contradicted", f"{said}; printed: {', '.join(printed)}.")


def near(claim: Claim, evidence: Evidence) -> Outcome:
    """The last two cosines are within the margin, in every way of writing them. Single pairs have no interval."""
    ways = _cosines(claim, evidence)
    if not ways:
        return Outcome("not testable here", f"The suite has no corpus {', '.join(claim.corpora)}.")
    gaps = {way: abs(values[-1] - values[-2]) for way, values in ways.items()}
    said = f"{'; '.join(f'{way}: {gap:.3f}' for way, gap in gaps.items())}; margin {claim.margin:g}, chosen here"
    held = [gap <= claim.margin for gap in gaps.values()]
    if all(held) or not any(held):
        return Outcome("reproduced" if all(held) else "contradicted", f"Gap {said}.")
    return Outcome("not testable here", f"It depends on how the pairs are written: gap {said}.")


def _cosines(claim: Claim, evidence: Evidence) -> dict[str, list[float]]:
    results, ways = evidence.results, dict[str, list[float]]()
    for corpus in claim.corpora:
        if corpus in results.suite.corpora and claim.ours in results.suite.spaces:
            for pair in results.facts(claim.ours, corpus).get("pairs", []):
                ways.setdefault(pair["variant"], []).append(pair["cosine"])
    return ways


def faster(claim: Claim, evidence: Evidence) -> Outcome:
    """Fewer CPU seconds per sentence than each of `than`, all split at blanks if all were timed so.

    Within a quarter is too close, for such times vary.
    """
    names = (claim.method, *claim.than)
    times = {name: seconds_per_sentence(evidence.benchmark, name, own_tokeniser=False) for name in names}
    tokeniser = "split at blanks"
    if None in times.values():
        times = {name: seconds_per_sentence(evidence.benchmark, name) for name in names}
        tokeniser = "each by its own tokeniser"
    ours = times.pop(claim.method)
    known = [seconds for seconds in times.values() if seconds is not None]
    if ours is None or len(known) < len(times):
        return Outcome(
            "not testable here", "The benchmark of the word encoders has no committed result.", BENCHMARK_COMMAND
        )
    ratio = min(known) / ours
    said = (
        f"{1e6 * ours:.1f} µs a sentence against {1e6 * min(known):.1f}, {ratio:.2f} times as fast, {tokeniser}; {ONCE}"
    )
    if abs(ratio - 1) <= 0.25:
        return Outcome("not testable here", f"Too close to call: {said}.")
    return Outcome("reproduced" if ratio > 1 else "contradicted", f"{said}.")


def within(claim: Claim, evidence: Evidence) -> Outcome:
    """At most `margin` seconds per sentence, on our machine and by our code."""
    seconds = seconds_per_sentence(evidence.benchmark, claim.method)
    if seconds is None:
        return Outcome(
            "not testable here", "The benchmark of the word encoders has no committed result.", BENCHMARK_COMMAND
        )
    verdict: Verdict = "reproduced" if seconds <= claim.margin else "contradicted"
    said = f"{1e6 * seconds:.1f} µs a sentence here, {1e6 * claim.margin:.0f} µs as claimed"
    return Outcome(verdict, f"{said}; {ONCE}, and of the benchmark's own sentences, not of the paper's.")


def gathers(claim: Claim, evidence: Evidence) -> Outcome:
    """Common words in fewer clusters than `than` puts them in; the number expected of chance is shown with it.

    Undecided where the fewest of `than` are as many.
    """
    table = cluster_table(evidence)
    groups = () if table is None else table.panels[0].groups
    lines = {line.name: line.entries for group in groups for line in group.lines}
    blank = (Entry(),) * 3
    rows = {name: lines.get(name, blank) for name in (claim.ours, *claim.than)}
    spreads = {name: row[1].value for name, row in rows.items()}
    if any(spread is None for spread in spreads.values()):
        missing = next(name for name, spread in spreads.items() if spread is None)
        return Outcome("not testable here", f"The suite has no small partition by {missing}.", rows[missing][0].command)
    said = ", ".join(f"{name} {row[1].text} of {row[0].text} (chance: {row[2].text})" for name, row in rows.items())
    ours, others = spreads[claim.ours] or 0, [spreads[other] or 0 for other in claim.than]
    if ours == min(others):
        return Outcome("not testable here", f"Clusters that hold a common word, a tie: {said}.")
    fewer = all(ours < other for other in others)
    return Outcome("reproduced" if fewer else "contradicted", f"Clusters that hold a common word: {said}.")


RULES: dict[str, Callable[[Claim, Evidence], Outcome]] = {
    "beats": beats,
    "matches": matches,
    "repairs": repairs,
    "shown": shown,
    "prints": prints,
    "near": near,
    "faster": faster,
    "within": within,
    "gathers": gathers,
    "best-between": lambda claim, evidence: best_between(claim, evidence.sweeps),
    "misleads": lambda claim, evidence: misleads(claim, evidence.sweeps),
    "printed": lambda claim, evidence: judge_printed(claim),
    "whole": lambda claim, evidence: judge_whole(claim),
    "absent": lambda claim, evidence: Outcome(
        "not testable here", f"{claim.reason[0].upper()}{claim.reason[1:]}.", claim.command
    ),
}
