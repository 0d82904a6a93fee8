"""Verdicts on claims about hyper-parameters, from the sweeps; on test sets only where a claim is about these."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.papers.claims import Claim
from pipeline.papers.printed_verdicts import Outcome
from pipeline.report.sweeps import Sweep

# Scores of a sweep have no interval: points nearer to the best than this count as equally good.
LEVEL = 0.5


def best_between(claim: Claim, sweeps: Mapping[str, Sweep]) -> Outcome:
    """Whether the best value of a setting is in the claimed range, on development data or where the claim says.

    Reproduced if all values that are as good as the best to half a point are inside, on every corpus; contradicted if
    on any corpus none of them does.
    """
    sweep = sweeps.get(claim.ours)
    if sweep is None:
        return missing(claim)
    low, high = claim.between
    inside: list[list[bool]] = []
    parts = []
    for corpus in claim.corpora or [sweep.corpus]:
        profile = sweep.profile(claim.setting, sweep.values_on(corpus))
        if profile:
            best = max(profile.values())
            said = ", ".join(f"{setting}: {score:.2f}" for setting, score in sorted(profile.items()))
            parts.append(f"best score on {corpus} by {claim.setting}, the others tuned: {said}")
            inside.append([low <= setting <= high for setting, score in profile.items() if score >= best - LEVEL])
    if not parts:
        names = ", ".join(claim.corpora)
        return Outcome(
            "not testable here",
            f"The sweep {claim.ours} has none of the corpora {names}.",
            f"name one of {names} in the suite file, run sentfold run",
        )
    said = "; ".join(parts)
    if all(map(all, inside)):
        return Outcome("reproduced", f"{said}.")
    if all(map(any, inside)):
        return Outcome("not testable here", f"{said}; too flat to call.")
    return Outcome("contradicted", f"{said}.")


def misleads(claim: Claim, sweeps: Mapping[str, Sweep]) -> Outcome:
    """Whether each rule without labels misses the best value of a setting and loses more than `margin` points."""
    sweep = sweeps.get(claim.ours)
    if sweep is None or not sweep.rules:
        return missing(claim)
    best = sweep.values[sweep.best] or 0.0
    losses = {rule: best - value for rule, value in sweep.rules.items()}
    setting, at = claim.setting, sweep.points[sweep.best].get(claim.setting)
    picked = {rule: sweep.picked.get(rule, {}).get(setting) for rule in losses}
    parts = [
        f"{rule.replace('_', ' ')} {picked[rule]}{', the same' if picked[rule] == at else ''}, losing {loss:.2f} points"
        f"{' by its other settings' if picked[rule] == at and loss else ''}"
        for rule, loss in losses.items()
    ]
    said = (
        f"on {sweep.corpus} the best of the grid, {best:.2f}, has {setting} {at}; chosen are by {', by '.join(parts)}"
    )
    lost = [picked[rule] != at and loss > claim.margin for rule, loss in losses.items()]
    if all(lost):
        return Outcome("reproduced", f"{said}.")
    return (
        Outcome("not testable here", f"{said}; the rules differ.") if any(lost) else Outcome("contradicted", f"{said}.")
    )


def missing(claim: Claim) -> Outcome:
    """The verdict where no sweep was made."""
    return Outcome(
        "not testable here",
        f"The suite has no sweep {claim.ours}.",
        f"name {claim.ours} among the spaces of the suite file, run sentfold run",
    )
