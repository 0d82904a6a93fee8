"""The claims of the papers with their verdicts, for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.papers.claims import load_claims
from pipeline.papers.published import PAPERS
from pipeline.papers.verdicts import EQUAL, Decided, Verdict, decide
from pipeline.report.evidence import Evidence
from sentfold.errors import ArtifactError, ParameterError

SHOWN = ("where", "made_on", "tested_on", "because", "control", "remark", "caveat", "to_test", "command")
ORDER: tuple[Verdict, ...] = ("reproduced", "contradicted", "not testable here")
INTRODUCTION = (
    "Each claim is decided by a rule from the scores and their paired bootstrap intervals: "
    "`pipeline/papers/claims.yaml` says what is compared, `pipeline/papers/verdicts.py` how. By hand it can only be "
    "kept from being decided, with the reason. Intervals of one claim "
    "hold together; they are not adjusted across claims. A claim is *contradicted* where the difference lies beyond "
    f"chance on the wrong side anywhere, a claim of a gain also where all differences lie within {EQUAL:g} points of 0 "
    "with their whole intervals, and *not testable here* where the data or what was run cannot decide it, "
    "where something is missing, or where only the paper's own figures speak for it. A verdict holds for the vectors "
    "named with it: a claim about SBERT-NLI or GloVe is not refuted by MiniLM or WordLlama."
)


def decide_all(evidence: Evidence) -> list[Decided]:
    """The verdict on every claim, in the order of the papers."""
    return [decide(name, claim, evidence) for name, claim in load_claims().items()]


def count_verdicts(decided: Sequence[Decided]) -> str:
    """How many claims came out how, in one phrase."""
    counts = Counter(one.verdict for one in decided)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER)


def claim_command(name: str, suite: str) -> str:
    """The command that shows a claim's numbers."""
    return f"sentfold claims {name} --suite {suite}"


def claims_markdown(decided: Sequence[Decided], suite: str) -> str:
    """The whole list, by paper."""
    parts = [
        f"# Claims of the papers, suite `{suite}`\n",
        f"{INTRODUCTION}\n",
        f"Of {len(decided)} claims: {count_verdicts(decided)}.\n",
        f"`sentfold run --suite {suite}` measures what they rest on; `{claim_command('NAME', suite)}` shows one.\n",
    ]
    for source, paper in PAPERS.items():
        own = [one for one in decided if one.claim.source == source]
        if own:
            parts += [f"## {paper}\n", *(claim_markdown(one, suite) for one in own)]
    return "\n".join(parts)


def claim_markdown(one: Decided, suite: str) -> str:
    """One claim with its verdict and everything it rests on."""
    return "\n".join(
        [
            f"### {one.claim.says}\n",
            f"**{one.verdict}** · `{one.name}` · {one.claim.where}\n",
            f"{basis(one)}{one.outcome.because}\n",
            *(f"{text}\n" for text in (one.control, one.claim.remark, one.caveat) if text),
            f"Shown by: `{claim_command(one.name, suite)}`\n",
            *([f"To test it: {one.outcome.command}\n"] if one.outcome.command else []),
        ]
    )


def basis(one: Decided) -> str:
    """What was measured, as the beginning of the sentence with the numbers; '' where a command has to measure it."""
    return f"On this encoder ({one.vectors}): " if one.vectors and not one.outcome.command else ""


def claims_content(decided: Sequence[Decided], suite: str) -> dict[str, Any]:
    """The same for programs: JSON-able, rounded numbers in its sentences, no hashes."""
    return {"claims": {one.name: _content(one, suite) for one in decided}, "suite": suite}


def _content(one: Decided, suite: str) -> Mapping[str, str]:
    return {
        "because": one.outcome.because,
        "caveat": one.caveat,
        "claim": one.claim.says,
        "command": claim_command(one.name, suite),
        "control": one.control,
        "made_on": one.claim.made_on,
        "remark": one.claim.remark,
        "source": one.claim.source,
        "tested_on": one.vectors,
        "to_test": one.outcome.command,
        "verdict": one.verdict,
        "where": one.claim.where,
    }


def show_claims(suite: str, name: str = "") -> str:
    """One claim with everything its verdict rests on, or all claims in a line each.

    Raises ArtifactError if the suite has no report, ParameterError if the report has no such claim.
    """
    path = Path("reports") / suite / "claims.json"
    try:
        claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(
            f"suite '{suite}' has no verdicts on claims yet",
            where=str(path),
            got=str(error),
            remedy=f"run `sentfold run --suite {suite}`",
        ) from None
    if not name:
        return "\n".join(f"{claim['verdict']:<17}  {key:<22}  {claim['claim']}" for key, claim in claims.items())
    if name not in claims:
        raise ParameterError(
            f"there is no claim '{name}'", where=str(path), expected=f"one of: {', '.join(claims)}", got=name
        )
    claim = claims[name]
    lines = [f"{claim['claim']}", f"  {'verdict':<9}  {claim['verdict']}"]
    return "\n".join([*lines, *(f"  {key:<9}  {claim[key]}" for key in SHOWN if claim[key])])
