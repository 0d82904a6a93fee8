"""The answer of a suite in one sentence that is made from its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.report.comparisons import few_units
from pipeline.report.results import Results, Score
from sentfold.measures.registry import describe_protocol, find_measure

# (space, the space that it is compared with, corpus, protocol) -> 1 above it beyond chance, -1 below, as tables mark it
Signs = Mapping[tuple[str, str, str, str], int]


@dataclass(frozen=True)
class Answer:
    """The sentence, and the corpus, the protocol and the baseline that a plot of it starts with."""

    sentence: str
    corpus: str = ""
    protocol: str = ""
    baseline: str = ""


@dataclass(frozen=True)
class Comparisons:
    """Every difference to one baseline in one protocol, and the mark of each: (space, corpus) -> difference, sign."""

    title: str
    protocol: str
    baseline: str
    found: Mapping[tuple[str, str], tuple[Score, int]]
    few: int

    @property
    def corpora(self) -> list[str]:
        """The corpora that have a difference."""
        return list(dict.fromkeys(corpus for _, corpus in self.found))

    def count(self, space: str, sign: int) -> int:
        """On how many corpora a space has this mark."""
        return sum(own == sign for (name, _), (_, own) in self.found.items() if name == space)

    def rank(self, space: str) -> tuple[int, int, float]:
        """What orders spaces: most corpora above the baseline, then fewest below, then the sum of the differences."""
        total = sum(score.value or 0.0 for (name, _), (score, _) in self.found.items() if name == space)
        return self.count(space, 1), -self.count(space, -1), total


def state_answer(results: Results, tasks: Mapping[str, list[str]], signs: Signs) -> Answer:
    """Whether any space is better than its baseline beyond chance, on how many corpora, and by how much.

    The baseline is the first space of the suite that others are compared with; the task is similarity, or the first
    task with a difference; the protocol is the first of the task.
    """
    baseline = next((space for space in results.suite.spaces if space in results.baselines.values()), "")
    for task in sorted(tasks, key=lambda task: task != "similarity"):
        compared = _compare(results, task, tasks[task][0], baseline, signs)
        if compared.found:
            return _say(compared)
    return _highest(results, tasks)


def _compare(results: Results, task: str, protocol: str, baseline: str, signs: Signs) -> Comparisons:
    found: dict[tuple[str, str], tuple[Score, int]] = {}
    corpora = results.corpora_of(task)
    for space in (space for space, other in results.baselines.items() if other == baseline):
        for corpus in corpora:
            score = results.difference((space, protocol), (baseline, protocol), corpus)
            if score.value is not None:
                found[space, corpus] = (score, signs.get((space, baseline, corpus, protocol), 0))
    few = sum(few_units(results, baseline, corpus) for corpus in dict.fromkeys(corpus for _, corpus in found))
    return Comparisons(find_measure(task).title.lower(), protocol, baseline, found, few)


def _say(compared: Comparisons) -> Answer:
    spaces = list(dict.fromkeys(space for space, _ in compared.found))
    best = max(spaces, key=compared.rank)
    wins, losses, size = compared.count(best, 1), compared.count(best, -1), len(compared.corpora)
    than = f"`{compared.baseline}` ({describe_protocol(compared.protocol)})"
    corpora = f"{size} {compared.title} {'corpus' if size == 1 else 'corpora'}"
    small = f", {compared.few} of them too small to tell" if compared.few else ""
    shown = [pair for pair, (_, sign) in compared.found.items() if pair[0] == best and sign == 1] or [*compared.found]
    space, corpus = max(shown, key=lambda pair: compared.found[pair][0].value or 0.0)
    gain = f"{_interval(compared.found[space, corpus][0])} points on `{corpus}`"
    if not wins:
        sentence = (
            f"No space is better than {than} beyond chance on any of {corpora}{small}; the greatest difference is that "
            f"of `{space}`, {gain}."
        )
    elif wins == size:
        sentence = f"`{best}` is better than {than} beyond chance on all of {corpora}, by {gain} at most."
    else:
        loss = f", and loses beyond chance on {losses}" if losses else ""
        sentence = (
            f"No space is better than {than} beyond chance on more than {wins} of {corpora}{small}; the best, "
            f"`{best}`, gains {gain}{loss}."
        )
    return Answer(sentence, corpus, compared.protocol, compared.baseline)


def _interval(score: Score) -> str:
    if score.low is None or score.high is None:
        return f"{score.value:+.2f}"
    return f"{score.value:+.2f} [{score.low:+.2f}, {score.high:+.2f}]"


def _highest(results: Results, tasks: Mapping[str, list[str]]) -> Answer:
    """The highest score of the first task, for a suite that compares no space with another."""
    for task, protocols in tasks.items():
        for corpus in results.corpora_of(task):
            scores = {space: results.score(space, corpus, protocols[0]) for space in results.suite.spaces}
            known = {space: score for space, score in scores.items() if score.value is not None}
            if known:
                best = max(known, key=lambda space: known[space].value or 0.0)
                own = known[best]
                interval = "" if own.low is None or own.high is None else f" [{own.low:.2f}, {own.high:.2f}]"
                what = f"{describe_protocol(protocols[0])}, ×100"
                return Answer(
                    f"On `{corpus}`, `{best}` scores highest: {own.value:.2f}{interval} ({what}); no space of the "
                    "suite has a baseline, so no difference is judged.",
                    corpus,
                    protocols[0],
                )
    return Answer("No space of the suite has a score.")
