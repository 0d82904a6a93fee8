"""What is said of a claim: of its print, and of itself by the test of its kind, which intervals alone decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.papers.claims import Claim, ClaimTest, load_claims
from pipeline.papers.findings import (
    Finding,
    find_best_setting,
    find_cosines,
    find_faster,
    find_identity,
    find_rules,
    name_missing,
)
from pipeline.papers.prints import PrintVerdict, judge_print
from pipeline.report.comparisons import Judged, judge_across, name_control, tuned_alike
from pipeline.report.entries import measured_entry
from pipeline.report.evidence import Evidence
from sentfold.compare.bootstrap import percentile_interval
from sentfold.compare.multiplicity import POWER, deal
from sentfold.measures.registry import describe_protocol

NOT_TESTABLE = "not testable here"
# Sign of a finding -> its word: under the paper's own conditions, and of the same comparison on other vectors.
OWN = {1: "reproduced", -1: "contradicted", 0: "undecided"}
OTHER = {1: "carries over", -1: "does not carry over", 0: "undecided"}
OWN_CONDITIONS, OTHER_VECTORS = "under the paper's own conditions", "the same comparison on other vectors"


@dataclass(frozen=True)
class Decided:
    """A claim and what is said of it.

    print       what the paper's own figures say; None where they say nothing
    conditions  OWN_CONDITIONS or OTHER_VECTORS; "" for a claim that is not testable
    outcome     one word for the whole; extent: on how many of the corpora, "" where there is one
    because     the sentence with the numbers, or with what is missing
    control     the numbers that are shown with it
    tested_on   what the tested space was made of
    """

    name: str
    claim: Claim
    print: PrintVerdict | None
    conditions: str
    outcome: str
    extent: str
    because: str
    control: str = ""
    tested_on: str = ""

    @property
    def said(self) -> str:
        """Outcome and extent: "does not carry over on 1 of 3 corpora (carries over on 2)"."""
        return f"{self.outcome} {self.extent}".rstrip()


def decide_all(evidence: Evidence) -> list[Decided]:
    """The claims that this suite can speak of, in the order of the papers.

    These are the claims whose test the suite holds. A suite that scores something for claims of all papers lists those
    that nothing here can test too. A suite that scores nothing for any claim lists none: the mathematics of the papers
    is no news of the suite.
    """
    claims = load_claims()
    tested = {name: claim for name, claim in claims.items() if claim.test and _holds(claim.test, evidence)}
    scored = {claim.source for claim in tested.values() if claim.test and claim.test.corpora}
    if not scored:
        return []
    whole = scored == {claim.source for claim in claims.values() if claim.test}
    return [
        decide(name, claim, evidence)
        for name, claim in claims.items()
        if name in tested or (whole and claim.test is None)
    ]


def _holds(test: ClaimTest, evidence: Evidence) -> bool:
    suite = evidence.results.suite
    corpora = not test.corpora or bool(set(test.corpora) & set(suite.corpora))
    return corpora and {test.space, *test.against} - {""} <= set(suite.spaces)


def decide(name: str, claim: Claim, evidence: Evidence) -> Decided:
    """What is said of one claim: of its print, and of itself."""
    printed, test = judge_print(claim), claim.test
    found = f"Missing: {claim.missing}." if test is None else TESTS[test.kind](test, evidence)
    if test is None or isinstance(found, str):
        return Decided(name, claim, printed, "", NOT_TESTABLE, "", str(found))
    words, conditions = (OWN, OWN_CONDITIONS) if test.own_conditions else (OTHER, OTHER_VECTORS)
    signs = Counter(found.signs.values())
    sign = -1 if signs[-1] else int(signs[1] == signs.total())
    control = _shown_with(test, evidence) if test.kind == "higher" else ""
    made_of = evidence.made_of.get(test.space, "")
    if test.kind in {"best-setting", "rules"}:
        made_of = made_of.rpartition("; ")[2]  # the encoder alone: a sweep goes through what was chosen in the end
    if test.kind == "faster":
        made_of = f"one thread of {evidence.benchmark['processor']}, with the code of this project"
    extent = _extent(signs, sign, words, found.named)
    return Decided(name, claim, printed, conditions, words[sign], extent, found.because, control, made_of)


def _extent(signs: Counter[int], sign: int, words: Mapping[int, str], named: str) -> str:
    """On how many of the things that were compared the outcome holds, and what holds on the others."""
    if signs.total() == 1:
        return ""
    others = ", ".join(f"{words[other]} on {signs[other]}" for other in (-1, 1, 0) if other != sign and signs[other])
    return f"on {signs[sign]} of {signs.total()} {named}{f' ({others})' if others else ''}"


# --- scores -------------------------------------------------------------------------------------


def find_higher(test: ClaimTest, evidence: Evidence) -> Finding | str:
    """A higher score than each of `against`, corpus by corpus; the opposite if lower than any of them beyond chance.

    All differences are judged together. A difference that is 0 in all its printed digits, interval and all, is no gain.
    A claim about an average is judged by the mean over the corpora. Returns the reason if nothing can be judged.
    """
    results = evidence.results
    sides = [(space, test.protocol) for space in (test.space, *test.against)]
    for space, protocol in sides:
        entries = [measured_entry(results, space, corpus, protocol) for corpus in test.corpora]
        if all(entry.blank for entry in entries):
            return f"{entries[0].reason[0].upper()}{entries[0].reason[1:]}."
    family = judge_across(results, sides[0], sides[1:], test.corpora)
    rivals = Counter(judged.corpus for judged in family)
    corpora = [corpus for corpus in test.corpora if rivals[corpus] == len(test.against)]
    family = tuple(judged for judged in family if judged.corpus in corpora)
    if not family:
        return "No corpus has all the scores that it compares."
    if all(judged.few for judged in family):
        return f"Too few independent texts to call a difference: {_numbers(family)}."
    said = _by_sign(family, test) + name_missing(test, corpora) + _limits(family, test)
    if test.average:
        return _judge_average(test, evidence, family, said)
    signs = {c: min(sign_of(judged, test.starts) for judged in family if judged.corpus == c) for c in corpora}
    return Finding(signs, "corpora", said)


def _judge_average(test: ClaimTest, evidence: Evidence, family: Sequence[Judged], said: str) -> Finding:
    """The same of the mean over the corpora, each of which is resampled independently of the others."""
    results, corpora = evidence.results, list(dict.fromkeys(judged.corpus for judged in family))
    own, *others = [(space, test.protocol) for space in (test.space, *test.against)]
    signs, texts = {}, []
    for other in others:
        value = np.mean([results.difference(own, other, corpus).value for corpus in corpora])
        paired = [results.paired_replicates(own, other, corpus) for corpus in corpora]
        drawn = np.mean([deal(one, corpus) for one, corpus in zip(paired, corpora, strict=True) if one is not None], 0)
        low, high = percentile_interval(drawn, confidence=results.confidence) or (0.0, 0.0)
        # The interval of a mean can be trusted no more than that of any corpus in it.
        few = any(judged.few for judged in family if judged.against == other[0])
        signs[other[0]] = 0 if few else int(low > 0) - int(high < 0)
        texts.append(f"against {other[0]} {value:+.2f} [{low:+.2f}, {high:+.2f}]")
    return Finding(signs, "methods", f"Mean over {len(corpora)} corpora {', '.join(texts)}. {said}")


def sign_of(judged: Judged, starts: float) -> int:
    """1 where the gain is told from chance and from the random start, -1 where its opposite or its absence is."""
    difference = judged.difference
    if abs(difference.value or 0.0) < 2 * starts:
        return 0
    if (difference.value, difference.low, difference.high) == (0, 0, 0) and not judged.few:
        return -1
    return judged.sign


def _numbers(family: Sequence[Judged], several: bool = False) -> str:
    """The differences, by rival if there are several."""
    parts = []
    for rival in dict.fromkeys(judged.against for judged in family):
        own = (judged for judged in family if judged.against == rival)
        said = ", ".join(f"{one.corpus} {one.text}{' (too few texts)' if one.few else ''}" for one in own)
        parts.append(f"than {rival} on {said}" if several else said)
    return ", ".join(parts)


def _by_sign(family: Sequence[Judged], test: ClaimTest) -> str:
    """The numbers by what they say: lower first, for that is what refutes."""
    words = {-1: "lower", 1: "higher", 0: "not told apart"}
    named = [(judged, words[sign_of(judged, test.starts)]) for judged in family]
    named = [(one, "no difference" if word == "lower" and not one.difference.value else word) for one, word in named]
    parts = []
    for word in ("lower", "no difference", "higher", "not told apart"):
        some = [judged for judged, own in named if own == word]
        parts += [f"{word}: {_numbers(some, len(test.against) > 1)}"] if some else []
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."


def _limits(family: Sequence[Judged], test: ClaimTest) -> str:
    """The smallest differences that could have been found, and what else moves the score."""
    sizes = [judged.result.detectable for judged in family if judged.result.detectable > 0]
    said = f" Smallest detectable difference ({POWER:.0%} power): {_span(sizes)} points." if sizes else ""
    if test.starts:
        said += (
            f" The random start of its clustering alone moves the score by {test.starts:g} (standard deviation), and a "
            "difference below twice that is not told apart."
        )
    return said


def _span(sizes: Sequence[float]) -> str:
    low, high = f"{min(sizes):.1f}", f"{max(sizes):.1f}"
    return low if low == high else f"{low} to {high}"


def _shown_with(test: ClaimTest, evidence: Evidence) -> str:
    """How the same space compares by another protocol, with its control and with others; '' if not measured."""
    others = [(space, test.shown_by) for space in test.against]
    again = judge_across(evidence.results, (test.space, test.shown_by), others, test.corpora) if test.shown_by else ()
    sentences = [f"By {describe_protocol(test.shown_by)}: {_numbers(again)}."] if again else []
    for other in (test.control, *test.shown_with) if test.control else test.shown_with:
        family = judge_across(evidence.results, (test.space, test.protocol), [(other, test.protocol)], test.corpora)
        made_of = evidence.made_of.get(other, "")
        name = f"{other}{f' ({made_of})' if made_of else ''}"
        if other == test.control:
            corpora = [judged.corpus for judged in family]
            tuned = tuned_alike(*(evidence.parameters.get(space, {}) for space in (test.space, other)))
            name = name_control(evidence.results, test.space, other, corpora, tuned=tuned)
        sentences += [f"Against {name}: {_numbers(family)}."] if family else []
    return " ".join(sentences)


TESTS: dict[str, Callable[[ClaimTest, Evidence], Finding | str]] = {
    "higher": find_higher,
    "best-setting": find_best_setting,
    "rules": find_rules,
    "cosines": find_cosines,
    "faster": find_faster,
    "identity": find_identity,
}
