"""What docs/findings/retrieval.md takes from the report: the answer, the figure, the table of signs, the costs.

Part of refresh_findings.py. Everything but the costs needs a report whose suite searches documents.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PAGE = "docs/findings/retrieval.md"
TABLE = "reports/paper-mirror/tables/retrieval.csv"
FIGURE = "reports/paper-mirror/figures/retrieval.svg"
COSTS = "reports/benchmarks/searches.json"
BASELINE, ENCODER, MEASURE = "minilm-cosine", "minilm", "nDCG@10"
# Controls, and methods that learn from judgements: named apart in the answer, which is about cheap changes.
CONTROLS = ("minilm-diffusion-shuffled", "minilm-path-shuffled", "minilm-coordinates")
SUPERVISED = ("minilm-adapter",)
# Heading of a column of signs -> protocol in scores.csv.
ELSEWHERE = {
    "similarity": "spearman.all.cosine",
    "three nearest neighbours": "accuracy.3nn-euclidean",
    "logistic regression": "accuracy.logistic",
    "k-means": "nmi.kmeans",
}


@dataclass(frozen=True)
class Signs:
    """On how many data sets an interval is above 0, below 0, and how many there are."""

    above: int
    below: int
    every: int

    def __str__(self) -> str:
        return f"+{self.above} −{self.below} of {self.every}" if self.every else ""


def count_signs(bounds: Iterable[tuple[float, float]]) -> Signs:
    """Signs of intervals, given by (low, high)."""
    known = list(bounds)
    return Signs(sum(low > 0 for low, _ in known), sum(high < 0 for _, high in known), len(known))


def read_searches(root: Path) -> dict[tuple[str, str], tuple[str, str, str]]:
    """(row, pool) -> value, low and high of the table of retrieval."""
    with (root / TABLE).open(encoding="utf-8", newline="") as stream:
        return {
            (row["row"], row["corpus"]): (row["value"], row["low"], row["high"])
            for row in csv.DictReader(stream)
            if row["protocol"].startswith(MEASURE) and row["value"] and row["panel"] in ("a", "b")
        }


def search_signs(searches: Mapping[tuple[str, str], tuple[str, str, str]]) -> dict[str, Signs]:
    """Change -> signs of its differences to the cosine of the encoder's own space. A space has its name alone."""
    end = f" − {BASELINE}"
    found: dict[str, list[tuple[float, float]]] = {}
    for (row, _), (_, low, high) in searches.items():
        if row.endswith(end) and low and high:
            found.setdefault(row.removesuffix(end).removesuffix("-cosine"), []).append((float(low), float(high)))
    return {name: count_signs(bounds) for name, bounds in found.items()}


def space_signs(scores: Iterable[Mapping[str, str]], space: str, protocol: str) -> Signs:
    """Signs of a space's differences to its encoder in one protocol."""
    return count_signs(
        (float(row["difference_low"]), float(row["difference_high"]))
        for row in scores
        if (row["space"], row["protocol"], row["difference_to"]) == (space, protocol, ENCODER) and row["difference_low"]
    )


def write_signs(searches: Mapping[str, Signs], scores: list[Mapping[str, str]]) -> str:
    """The table of signs, the changes with most gains in retrieval first."""
    lines = [f"| change | retrieval | {' | '.join(ELSEWHERE)} |", f"|---|{'---|' * (1 + len(ELSEWHERE))}"]
    for name, own in sorted(searches.items(), key=lambda item: (-item[1].above, item[1].below, item[0])):
        others = [str(space_signs(scores, name, protocol)) for protocol in ELSEWHERE.values()]
        lines.append(f"| {name}{' (control)' if name in CONTROLS else ''} | {own} | {' | '.join(others)} |")
    return "\n".join(lines) + "\n"


def write_answer(searches: Mapping[str, Signs]) -> str:
    """What the signs say, in sentences."""
    cheap = {name: own for name, own in searches.items() if name not in (*CONTROLS, *SUPERVISED)}

    def listed(names: Iterable[str]) -> str:
        return ", ".join(f"`{name.removeprefix(f'{ENCODER}-')}`" for name in names) or "none"

    good = [name for name, own in cheap.items() if own.above and not own.below]
    mixed = [name for name, own in cheap.items() if own.above and own.below]
    bad = [name for name, own in cheap.items() if own.below and not own.above]
    none = [name for name, own in cheap.items() if not own.above and not own.below]
    gaining = [name for name in CONTROLS if name in searches and searches[name].above]
    lines = [
        f"**Of {len(cheap)} changes without training, {len(good)} help on some pool and harm on none.** By the whole "
        f"interval of {MEASURE}, without adjustment for the number of rows:\n",
        f"- gains, and no loss: {listed(good)};",
        f"- gains on some pools and losses on others, so the sign turns: {listed(mixed)};",
        f"- losses, and no gain: {listed(bad)};",
        f"- no difference shown: {listed(none)}.\n",
        "The controls gain nowhere, as they must."
        if not gaining
        else f"Among the controls gain: {listed(gaining)}. So read the gains of their methods with care.",
    ]
    if SUPERVISED[0] in searches:
        own = searches[SUPERVISED[0]]
        lines.append(
            f"The adapter, which learns from judged pairs, gains on {own.above} of {own.every} pools and loses on "
            f"{own.below}."
        )
    return "\n".join(lines) + "\n"


def write_figure(root: Path) -> str:
    """The figure with its caption; "" where the report has none."""
    if not (root / FIGURE).is_file():
        return ""
    return (
        f"![Differences of nDCG@10 between each change and the plain cosine, on each pool](../../{FIGURE})\n\n"
        "*Does a cheap change help to find documents? Each panel is a pool of documents, each row one change of the "
        "vectors or of the\nsearch. Right of the line: the relevant documents rank higher than by the cosine of the "
        "unchanged vectors. The bar is a\n95% interval; an arrow with a number is a value outside of the panel.*\n"
    )


def write_costs(root: Path) -> str:
    """The costs of the searches, by their benchmark."""
    content = json.loads((root / COSTS).read_text(encoding="utf-8"))
    sizes = content["sizes"]
    lines = [
        f"Medians of CPU time on one thread of {content['processor']}, among {sizes['documents']:,} documents of "
        f"{sizes['dimension']} dimensions. The preparation is\ndone once. `python -m benchmarks.searches` measures it "
        "again.\n",
        "| search | preparation, µs per document | ms per query | × cosine | bytes per document |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, cost in sorted(content["searches"].items(), key=lambda item: item[1]["ratio_to_cosine"][1]):
        prepared, query, ratio = (
            cost[key][1] for key in ("prepare_us_per_document", "ms_per_query", "ratio_to_cosine")
        )
        lines.append(f"| {name} | {prepared:.2f} | {query:.2f} | {ratio:.1f} | {cost['bytes_per_document']:,} |")
    return "\n".join(lines) + "\n"


def refresh_parts(text: str, root: Path, scores: list[Mapping[str, str]]) -> str:
    """The page with all parts between their marks written anew."""
    searches = search_signs(read_searches(root))
    parts = {
        "answer": ("answer", write_answer(searches)),
        "figure": ("figure", write_figure(root)),
        "signs": ("signs", write_signs(searches, scores)),
        "search costs": ("costs", write_costs(root)),
    }
    for begin, (end, content) in parts.items():
        pattern = re.compile(rf"(<!-- {begin} -->\n).*?(<!-- end of the {end} -->)", re.DOTALL)
        text = pattern.sub(lambda match, content=content: f"{match[1]}{content}{match[2]}", text)
    return text
