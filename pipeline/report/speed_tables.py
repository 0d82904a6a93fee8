"""Speed: what S3E, LASE and GEM printed, and what the benchmark of the word encoders measured here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.errors import ArtifactError
from pipeline.report.entries import printed_entry
from pipeline.report.grid import Entry, Group, Head, Line, Panel, Table
from pipeline.report.notes import no_smallest
from pipeline.report.published import select

BENCHMARK = Path("reports/benchmarks/encoders.json")
COMMAND = f"python -m benchmarks.encoders --json {BENCHMARK}"
STSB_SENTENCES = 2758  # both sides of the 1,379 pairs of the STSb test set
METHODS = ("average", "sif", "usif", "s3e", "lase", "gem")
ABOUT = (
    "Printed times are of other machines, of other vectors and of the authors' code. Ours are CPU time on one thread, "
    "text in, each method's own tokeniser, WordLlama's 256 dimensions, fitting excluded."
)

TIMED = no_smallest("the benchmark keeps one time of each method and no spread, so no ratio of two is called")


def load_benchmark(path: Path = BENCHMARK) -> dict[str, Any] | None:
    """What the benchmark of the word encoders wrote, or None where it was never run. Raises ArtifactError."""
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        rates = {row["method"]: row["per_second"] for row in content["methods"]}
        processor = str(content["processor"])
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(
            "a benchmark's result cannot be read", where=str(path), got=repr(error), remedy=f"run `{COMMAND}`"
        ) from None
    return {"processor": processor, "rates": rates}


def seconds_per_sentence(benchmark: dict[str, Any] | None, method: str, *, own_tokeniser: bool = True) -> float | None:
    """CPU seconds of one sentence, text in, by the method's own tokeniser or split at blanks; None if not measured."""
    rates = (benchmark or {"rates": {}})["rates"].get(method, {})
    own = [rate for what, rate in rates.items() if what.startswith("text in") and what != "text in, whitespace"]
    rate = own[0] if own and own_tokeniser else rates.get("text in, whitespace")
    return 1 / rate if rate else None


def speed_tables(benchmark: dict[str, Any] | None) -> list[Table]:
    """S3E's, LASE's and GEM's speed, each in the unit that the paper printed."""
    per_set = f"s for {STSB_SENTENCES:,} sentences"
    return [
        _table(benchmark, "s3e-speed", "S3E speed", ("s3e", "speed"), Head("ms per sentence", "", "", "ms"), 1000),
        _table(benchmark, "lase-speed", "LASE speed", ("lase", "speed"), Head("s per sentence", "", "", "s"), 1),
        _table(
            benchmark, "gem-5", "GEM 5: Time of a test set", ("gem", "5"), Head(per_set, "", "", "s"), STSB_SENTENCES
        ),
    ]


def _table(
    benchmark: dict[str, Any] | None, name: str, title: str, where: tuple[str, str], head: Head, factor: float
) -> Table:
    figures = select(*where)
    said = "; ".join(dict.fromkeys(figure.protocol for figure in figures))
    timed = f"CPU time, one thread, {benchmark['processor']}" if benchmark else "CPU time, one thread"
    ours = tuple(Line(method, "WordLlama, 256-d", (_measured(benchmark, method, factor),)) for method in METHODS)
    theirs = tuple(Line(figure.model, "", (printed_entry(figure),)) for figure in figures)
    measured, printed = (replace(head, protocol=protocol) for protocol in ("CPU time, text in", "as printed"))
    panels = (
        Panel("Measured", timed, (measured,), (Group("Measured here", False, ours),), _shows(benchmark), (TIMED,)),
        Panel("As printed", said, (printed,), (Group("Printed", True, theirs),), (_printed_ratio(*where),)),
    )
    return Table(name, title, ABOUT, panels)


def _measured(benchmark: dict[str, Any] | None, method: str, factor: float) -> Entry:
    seconds = seconds_per_sentence(benchmark, method)
    if seconds is None:
        return Entry(reason="the benchmark of the word encoders has no committed result", command=COMMAND)
    timed = f"{1e6 * seconds:.2f} µs, CPU time of a sentence by {method}"
    about = f"{factor:g} times {timed}, from {BENCHMARK}, which {COMMAND} makes"
    return Entry(f"{seconds * factor:.3g}", seconds * factor, about=about)


def _shows(benchmark: dict[str, Any] | None) -> tuple[str, ...]:
    seconds = {m: s for m in METHODS if (s := seconds_per_sentence(benchmark, m)) is not None}
    if not seconds:
        return ("Nothing measured yet; the notes say what would fill it.",)
    order = sorted(seconds, key=lambda method: seconds[method])
    return (f"From fast to slow here: {', '.join(order)}.",)


def _printed_ratio(source: str, number: str) -> str:
    """How many times the slowest printed one takes of the fastest."""
    figures = sorted(select(source, number), key=lambda figure: figure.value)
    if len(figures) < 2:
        return "One figure, so nothing to set it against."
    ratio = figures[-1].value / figures[0].value
    return f"As printed, {figures[0].model} is the fastest and {figures[-1].model} takes {ratio:.0f} times as long."
