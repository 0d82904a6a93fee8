"""What a sweep took beside what it may take, for the terminal and the log: a file of times would differ by run."""

from __future__ import annotations

from pipeline.selection.grids import load_grid

MARK = "sweep "  # how every such line begins, by which a run finds it in the log of a stage


def describe_cost(encoder: str, selection: str, seconds: float) -> str:
    """CPU seconds that a sweep took, of its grid's budget, with a warning where it took more.

    Raises ParameterError if params.yaml has no such grid.
    """
    budget = load_grid(selection).budget_seconds
    spent = f"{MARK}{encoder}-{selection}: {seconds:.1f} s of CPU time"
    if budget is None:
        return f"{spent}, and no budget"
    if seconds <= budget:
        return f"{spent} of a budget of {budget:g} s"
    return (
        f"{spent} of a budget of {budget:g} s. Warning: over it by {seconds - budget:.1f} s; take points off the grid, "
        f"or raise manifolds.{selection}.budget_seconds in params.yaml"
    )
