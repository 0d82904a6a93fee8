"""What a decision says: one sentence, at most twelve lines, and a record for verdict.json."""

from __future__ import annotations

import math
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sentfold.decision.folds import APART, LEAST_GROUPS, few_groups_advice, least_detectable, show_groups, show_reach
from sentfold.numeric_profile import profile_name

if TYPE_CHECKING:
    from sentfold.decision.decide import Candidate, Decision

SHOWN = 3  # families that are listed


def verdict_sentence(decision: Decision) -> str:
    """`Keep cosine: ...` or `Use ...: ...`, with the interval and the smallest difference that the data show."""
    from sentfold.decision.decide import choose

    items = f"{decision.items:,} {decision.item}"
    if decision.effective_groups < LEAST_GROUPS:
        return (
            f"No verdict: the {items} form {decision.groups} independent groups, as good as "
            f"{show_groups(decision.effective_groups)} {decision.told}, and {LEAST_GROUPS} are the least that a "
            f"decision needs.{few_groups_advice(decision.item)}"
        )
    automatic = decision.candidates[0]
    tried = len(decision.candidates) - 1
    reach = show_reach(decision.items, decision.item, detectable_points(decision))
    if decision.recommended:
        how = choose(decision.candidates) or automatic
        what = f"a choice among {tried} kinds of change" if how is automatic else "this kind of change"
        return f"Use {decision.name}: {what} beats plain cosine by {span(how)} points{reach}"
    if not tried:
        return f"Keep cosine: no other space could be fitted to {items}."
    if automatic.identical:
        return f"Keep cosine: the choice among {tried} kinds of change was cosine itself{reach}"
    return f"Keep cosine: a choice among {tried} kinds of change differs from cosine by {span(automatic)} points{reach}"


def detectable_points(decision: Decision) -> float | None:
    """The smallest difference that this data shows with 80% power, of the candidate that the verdict is about.

    This is what is recommended, else the automatic choice; where that is cosine itself, the family with the widest
    reach. No less than what equal answers leave open. None where no space gets any item right, as with labels that one
    text each has: no difference could be seen, however large.
    """
    from sentfold.decision.decide import CONFIDENCE, choose

    automatic, *families = decision.candidates
    moving = [candidate.detectable for candidate in (automatic, *families) if not candidate.identical]
    if not moving and not decision.cosine:
        return None
    about = (choose(decision.candidates) if decision.recommended else None) or automatic
    shown = max(moving, default=0.0) if about.identical else about.detectable
    return least_detectable(shown, decision.groups, decision.effective_groups, 1 - CONFIDENCE)


def describe_decision(decision: Decision) -> str:
    """At most 11 lines: the sentence, the score of cosine, the best families, and what was left out."""
    lines = [decision.verdict, f"  cosine: {decision.metric} {decision.cosine:.1f} on the held-out parts"]
    if abs(decision.overall - decision.cosine) >= 0.05:
        lines[1] += f", {decision.overall:.1f} over all {decision.items:,} {decision.item} at once"
    moving = [candidate for candidate in decision.candidates[1:] if not candidate.identical]
    lines += [f"  {candidate.name}: {span(candidate)}" for candidate in moving[:SHOWN]]
    if moving:
        lines[2] += " (the best of them, so its estimate is optimistic)"
    rest = [f"{candidate.difference:+.1f}" for candidate in moving[SHOWN:]]
    if rest:
        lines.append(f"  {len(rest)} more kinds: {rest[-1]} to {rest[0]}" if rest[1:] else f"  1 more kind: {rest[0]}")
    same = [candidate.name for candidate in decision.candidates[1:] if candidate.identical]
    if same:
        lines.append(f"  the same as cosine: {', '.join(same)}")
    lines += [
        f"  transductive {name} (fitted on the judged texts, outside the verdict): {score - decision.cosine:+.1f}"
        for name, score in decision.transductive.items()
    ]
    if decision.reasons:
        lines.append(
            f"  not tried ({', '.join(sorted(set(decision.reasons.values())))}): {', '.join(decision.reasons)}"
        )
    if change := describe_change(decision):
        lines.append(f"  {change}")
    lines.append(
        "  Intervals hold for all candidates together (95%). They judge the whole procedure: fit and choose on a part "
        "of the data, score on the rest."
    )
    return "\n".join(lines)


def describe_change(decision: Decision) -> str:
    """How many items would show the difference of the automatic choice, if it is the true one; "" if these would do."""
    automatic, more = decision.candidates[0], 0 if decision.recommended else wanted_items(decision)
    if more <= decision.items:
        return ""
    apart = f", if {APART[decision.item]}" if decision.groups < decision.items else ""
    wanted = f"{more:,} {decision.item}{apart}"
    return f"A true difference of {automatic.difference:.1f} would need about {wanted}."


def wanted_items(decision: Decision) -> int:
    """How many items would show the automatic choice's difference with 80% power.

    0 where the difference is not above 0, and where these items do not tell: in groups too few for a verdict, or where
    many share texts.

    The smallest detectable difference falls with the root of the number of items.
    """
    automatic = decision.candidates[0]
    difference = round(automatic.difference, 1)  # as it is printed
    if difference <= 0 or decision.effective_groups < LEAST_GROUPS or decision.pooled:
        return 0
    return math.ceil(decision.items * (automatic.detectable / difference) ** 2 / 10) * 10


def span(candidate: Candidate) -> str:
    """`+0.4 [-1.7, +2.5]`."""
    return f"{candidate.difference:+.1f} [{candidate.low:+.1f}, {candidate.high:+.1f}]"


def decision_record(decision: Decision) -> dict[str, Any]:
    """All numbers of a decision, rounded to what the numeric profile reproduces; no times."""
    return {
        "verdict": decision.verdict,
        "space": {"name": decision.name, **decision.space.settings()},
        "recommended": decision.recommended,
        "items_for_this_difference": wanted_items(decision),
        "metric": decision.metric,
        "items": {
            "unit": decision.item,
            "number": decision.items,
            "groups": decision.groups,
            "effective_groups": round(decision.effective_groups, 6),
        },
        "cosine": {"folds": round(decision.cosine, 6), "all": round(decision.overall, 6)},
        "candidates": [
            {key: round(value, 6) if isinstance(value, float) else value for key, value in asdict(candidate).items()}
            for candidate in decision.candidates
        ],
        "not_tried": decision.reasons,
        "transductive": {name: round(score, 6) for name, score in decision.transductive.items()},
        "notes": list(decision.notes),
        **decision.record,
        "numeric_profile": profile_name(),
        "sentfold": version("sentfold"),
    }
