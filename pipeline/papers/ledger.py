"""The ledger: the claims of the papers with what is said of each, for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.papers.claims import load_claims
from pipeline.papers.prints import CONSISTENT, INCONSISTENT
from pipeline.papers.published import PAPERS
from pipeline.papers.verdicts import NOT_TESTABLE, OTHER, OTHER_VECTORS, OWN, OWN_CONDITIONS, Decided
from sentfold.errors import ArtifactError, ParameterError

# What is counted: the heading of a line, and the outcomes in it.
TALLY: dict[str, tuple[str, ...]] = {
    "the print, by the paper's own figures": (CONSISTENT, INCONSISTENT),
    OWN_CONDITIONS: tuple(OWN.values()),
    OTHER_VECTORS: tuple(OTHER.values()),
    "": (NOT_TESTABLE,),
}
INTRODUCTION = (
    "Two things are said of a claim, and kept apart. *Of its print*: whether it agrees with the paper's own figures "
    f"(*{CONSISTENT}*, or *{INCONSISTENT}* where no numbers that round to the figures keep the claim); nothing where "
    "the claim does not follow from a printed table. *Of the claim*, one of three. Where the paper's own comparison "
    "was made with its own vectors, protocol and settings: *reproduced*, *contradicted* or *undecided*. Where the same "
    "comparison was made with other vectors: it *carries over*, *does not carry over* or is *undecided*, which neither "
    "confirms nor refutes the paper. Otherwise: *not testable here*, with what is missing. A claim about several "
    "corpora fails where one of them shows the opposite beyond chance, and holds where all of them show it. Intervals "
    "decide, and no margin that the paper does not state. A call is adjusted for all differences of its claim (max-T); "
    "the brackets are not."
)


def count_outcomes(decided: Sequence[Decided]) -> dict[str, dict[str, int]]:
    """Heading -> outcome -> how many claims came out so."""
    prints = Counter(one.print.outcome for one in decided if one.print is not None)
    outcomes = Counter((one.conditions, one.outcome) for one in decided)
    found = {}
    for heading, words in TALLY.items():
        found[heading] = {word: outcomes[heading, word] or prints[word] for word in words}
    return found


def describe_counts(decided: Sequence[Decided]) -> list[str]:
    """The same, a phrase for each heading."""
    found = []
    for heading, counts in count_outcomes(decided).items():
        said = ", ".join(f"{count} {word}" for word, count in counts.items())
        found.append(f"{heading}: {said}" if heading else said)
    return found


def describe_scope(decided: Sequence[Decided]) -> str:
    """How many of the papers' claims the list has."""
    every = len(load_claims())
    if len(decided) == every:
        return f"All {every} claims of the papers."
    return f"{len(decided)} of {every} claims of the papers: the others need corpora or spaces that this suite lacks."


def claim_command(name: str, suite: str) -> str:
    """The command that shows a claim's numbers."""
    return f"sentfold claims {name} --suite {suite}"


def claims_markdown(decided: Sequence[Decided], suite: str) -> str:
    """The whole list, by paper; one sentence for a suite that decides none."""
    if not decided:
        return f"# Claims, suite `{suite}`\n\nThe suite decides no published claim.\n"
    lines = [f"- {phrase}" for phrase in describe_counts(decided)]
    parts = [f"# Claims of the papers, suite `{suite}`\n", f"{INTRODUCTION}\n", describe_scope(decided), *lines, ""]
    parts.append(f"`{claim_command('NAME', suite)}` shows one claim.\n")
    for source, paper in PAPERS.items():
        own = [one for one in decided if one.claim.source == source]
        if own:
            parts += [f"## {paper}\n", *map(_markdown, own)]
    return "\n".join(parts)


def _markdown(one: Decided) -> str:
    lines = [f"### {one.claim.says}\n", f"`{one.name}` · {one.claim.where} · said of {one.claim.made_on}\n"]
    said = (f"**{heading}** {text}\n" if heading else f"{text}\n" for heading, text in paragraphs(one))
    return "\n".join([*lines, *said])


def paragraphs(one: Decided) -> list[tuple[str, str]]:
    """What is said of a claim: (heading, text), the first of its print if that was judged."""
    found = [] if one.print is None else [(f"Print: {one.print.outcome}.", one.print.because)]
    tested = f"On {one.tested_on}: " if one.tested_on else ""
    heading = f"{one.conditions}: {one.said}." if one.conditions else f"{one.said}."
    found.append((f"{heading[0].upper()}{heading[1:]}", f"{tested}{one.because}"))
    return found + [("", text) for text in (one.control, one.claim.remark) if text]


def claims_content(decided: Sequence[Decided], suite: str) -> dict[str, Any]:
    """The same for programs: JSON-able, rounded numbers in its sentences, no hashes."""
    claims = {one.name: _content(one) for one in decided}
    return {"claims": claims, "counts": count_outcomes(decided), "suite": suite}


def _content(one: Decided) -> Mapping[str, str]:
    return {
        "because": one.because,
        "claim": one.claim.says,
        "conditions": one.conditions,
        "control": one.control,
        "extent": one.extent,
        "made_on": one.claim.made_on,
        "outcome": one.outcome,
        "print": one.print.outcome if one.print else "",
        "print_because": one.print.because if one.print else "",
        "remark": one.claim.remark,
        "source": one.claim.source,
        "tested_on": one.tested_on,
        "where": one.claim.where,
    }


SHOWN = ("where", "made_on", "print", "print_because", "outcome", "extent", "conditions", "tested_on", "because",
         "control", "remark")  # fmt: skip


def show_claims(suite: str, name: str = "") -> str:
    """One claim with everything that is said of it, or all claims in a line each.

    Raises ArtifactError if the suite has no report, ParameterError if the report has no such claim.
    """
    path = Path("reports") / suite / "claims.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        claims, _ = content["claims"], content["counts"]
        lines = {key: _line(key, claim) for key, claim in claims.items()}
        details = {key: _details(claim) for key, claim in claims.items()}
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            f"suite '{suite}' has no ledger of claims, or one of an earlier version",
            where=str(path),
            got=repr(error),
            remedy=f"run `sentfold run --suite {suite}`",
        ) from None
    if not name and not claims:
        return f"suite '{suite}' decides no published claim"
    if not name:
        return "\n".join(lines.values())
    if name not in claims:
        known = name in load_claims()
        raise ParameterError(
            f"suite '{suite}' does not judge the claim '{name}'" if known else f"there is no claim '{name}'",
            where=str(path),
            expected=f"one of: {', '.join(claims)}",
            got="a claim about corpora or spaces that this suite lacks" if known else name,
            remedy=f"list the claims that it judges by `sentfold claims --suite {suite}`",
        )
    return details[name]


def _details(claim: Mapping[str, str]) -> str:
    return "\n".join([claim["claim"], *(f"  {key:<13}  {claim[key]}" for key in SHOWN if claim[key])])


def _line(name: str, claim: Mapping[str, str]) -> str:
    printed = f"print {claim['print']}" if claim["print"] else "print not judged"
    return f"{name:<24}  {printed:<29}  {claim['outcome']:<19}  {claim['claim']}"
