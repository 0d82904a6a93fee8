"""The table of retrieval: every search in every searched space, on pools of documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.base.suite import Suite
from pipeline.papers.plan import REFEREE, Column, PanelPlan, TablePlan
from pipeline.report.evidence import Evidence
from pipeline.report.panels import build_table
from pipeline.report.results import Results, load_results, reading
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table
from sentfold.retrieval.base.measures import MEASURES
from sentfold.retrieval.base.protocol import find_search

HEADLINE = MEASURES[0]
TITLE = "Retrieval: what helps to find documents"
ABOUT = (
    "A pool is made from judged pairs of texts: every first text is a query, every second text a document. A search "
    "that can be tuned was tuned on another pool, of development pairs. A space that was made from an encoder's was "
    "fitted on all texts of the corpus, test queries included (transductive); searches learn from documents alone, "
    "from development queries, or, where their title says supervised, from judgements of other folds. Without a "
    "judgement a document counts as not relevant: where many of the first ten documents have none, differences "
    "between searches may be differences in what was judged."
)
COSTS = Path("reports/benchmarks/searches.json")
COSTS_COMMAND = f"python -m benchmarks.searches --json {COSTS}"


def load_searches(suite: Suite, *, confidence: float) -> Results | None:
    """The scores of all searches of a suite as results whose spaces are the searches; None for a suite without any.

    The baseline of a search is cosine in the same space; that of cosine in a derived space is cosine in its encoder's.
    """
    searches = suite.stages.get("search", {})
    if not searches:
        return None
    pools = next(iter(searches.values()))["pools"]
    made = {key: {"source": item["against"], "maker": item["search"]} for key, item in searches.items()}
    searched = suite.model_copy(
        update={
            "baseline": None, "blanks": {}, "corpora": pools, "spaces": tuple(made),
            "stages": {**suite.stages, "evaluate": made, "encode": {}, "embed": {}},
        }
    )  # fmt: skip
    return load_results(searched, confidence=confidence)


def load_search_costs() -> dict[str, Any]:
    """What the benchmark of the searches wrote. Raises ArtifactError where it was never run."""
    with reading("a benchmark's result", COSTS, remedy=f"run `{COSTS_COMMAND}`"):
        content: dict[str, Any] = json.loads(COSTS.read_text(encoding="utf-8"))
        return {name: content[name] for name in ("processor", "searches", "sizes")}


def retrieval_table(evidence: Evidence) -> Table | None:
    """Scores by each measure, differences to cosine, the pools, and what choosing on the test would have bought."""
    results = evidence.searches
    if results is None:
        return None
    searches = results.suite.stages["search"]
    titles = {key: _made_of(item) for key, item in searches.items()}
    panels = [
        PanelPlan(
            title=measure,
            columns=[Column(corpus=pool, protocol=measure) for pool in results.suite.corpora],
            differences=measure == HEADLINE,
        )
        for measure in MEASURES
    ]
    plan = TablePlan(
        source=REFEREE, table="results", title=TITLE, about=ABOUT, spaces=[], wanted=list(searches), panels=panels
    )
    own = replace(evidence, results=results, made_of=titles, controls={}, tuned_controls={})
    table = build_table(own, "retrieval", plan, compared=True)
    more = (_pools_panel(evidence, results), _oracle_panel(evidence, results, titles), _cost_panel(evidence, results))
    return replace(table, panels=(*table.panels, *more))


def _made_of(item: Mapping[str, Any]) -> str:
    method = find_search(item["method"])
    learned = "; learns from development queries" if method.LEARNS == "bank" else ""
    return f"{method.TITLE}{learned}, in {item['space']}"


def _pools_panel(evidence: Evidence, results: Results) -> Panel:
    """One row per pool: its sizes, and how many of the first ten documents of cosine have no judgement."""
    facts = ("documents", "queries", "judgements", "queries_without_relevant")
    heads = [Head(name.replace("_", " "), "", "count", "count") for name in facts]
    heads += [Head("first ten without a judgement", "", "share of the first ten documents of cosine", "share")]
    heads += [Head("development queries", "", "count", "count")]
    first = next(iter(results.suite.spaces))
    lines = tuple(Line(pool, "", tuple(_pool_entries(results, first, pool, facts))) for pool in results.suite.corpora)
    group = Group(evidence.measured_here, False, lines)
    return Panel("The pools", "counts", tuple(heads), (group,), tuple(_remarks(results, first)))


def _pool_entries(results: Results, search: str, pool: str, names: Sequence[str]) -> Iterator[Entry]:
    facts = results.facts(search, pool)
    if "absent" in facts:
        yield from [Entry(reason=facts["absent"])] * (len(names) + 2)
        return
    about, of = f"counted by {search} on {pool}", _vectors_of(results, search, pool)
    for name in names:
        yield Entry(str(facts[name]), float(facts[name]), about=about, of=of)
    share = facts["unjudged_of_top_10"]
    yield Entry(f"{share:.2f}", share, about=about, of=of)
    queries = facts["development"]["queries"]
    yield Entry(str(queries), float(queries), about=about, of=of)


def _vectors_of(results: Results, search: str, pool: str) -> tuple[str, ...]:
    """The vectors that a search was given, as an entry names them."""
    return (f"{results.suite.stages['search'][search]['space']}/{pool}",)


def _remarks(results: Results, search: str) -> Iterator[str]:
    """What a reader has to know of each pool."""
    for pool in results.suite.corpora:
        remark = results.facts(search, pool).get("remark")
        if remark:
            yield f"{pool}: {remark}."


def _oracle_panel(evidence: Evidence, results: Results, titles: Mapping[str, str]) -> Panel:
    """The best point of each grid on the test pool itself: what a paper prints that tunes on its test set."""
    pools = results.suite.corpora
    heads = tuple(Head(pool, pool, f"{HEADLINE}: oracle, chosen on {pool} itself") for pool in pools)
    tuned = [key for key in results.suite.spaces if any(results.facts(key, p).get("points", 1) > 1 for p in pools)]
    lines = tuple(Line(key, titles[key], tuple(_oracle_entry(results, key, pool) for pool in pools)) for key in tuned)
    groups = (Group(evidence.measured_here, False, lines),) if lines else ()
    return Panel("Oracle: the best of the grid on each test pool itself", HEADLINE, heads, groups)


def _oracle_entry(results: Results, key: str, pool: str) -> Entry:
    facts = results.facts(key, pool)
    if "absent" in facts:
        return Entry(reason=facts["absent"])
    oracle, chosen = facts["oracle"], facts["chosen"]
    about = (
        f"oracle: the best of {facts['points']} points on {pool} itself, {_in_words(oracle['chosen'])}; "
        f"the development pool chose {_in_words(chosen)}"
    )
    return Entry(f"{oracle['value']:.2f}", oracle["value"], about=about, of=_vectors_of(results, key, pool))


def _in_words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def _cost_panel(evidence: Evidence, results: Results) -> Panel:
    """What each search costs, by the benchmark: medians on one thread."""
    costs = evidence.search_costs
    heads = tuple(Head(title, "", title, "count") for title in ("µs per document", "ms per query", "× cosine", "bytes"))
    searches = dict.fromkeys(item["search"] for item in results.suite.stages["search"].values())
    lines = tuple(Line(name, "", _cost_entries(costs["searches"].get(name), name)) for name in searches)
    sizes = costs["sizes"]
    note = (
        f"Medians, CPU time of one thread of {costs['processor']}: {sizes['documents']:,} documents of "
        f"{sizes['dimension']} dimensions. The first column is the preparation, once; × cosine is of the query. The "
        "bytes are of a stored document."
    )
    group = Group("Measured by the benchmark", False, lines)
    return Panel("What a search costs", "CPU time and bytes", heads, (group,), (note,))


def _cost_entries(cost: Mapping[str, Any] | None, name: str) -> tuple[Entry, ...]:
    if cost is None:
        return (Entry(reason="the benchmark has no such search", command=COSTS_COMMAND),) * 4
    timed = [cost[key] for key in ("prepare_us_per_document", "ms_per_query", "ratio_to_cosine")]
    about = f"cost of {name}, by {COSTS_COMMAND}"
    entries = [Entry(f"{middle:g}", middle, low, high, about=about, digits=3) for low, middle, high in timed]
    stored = cost["bytes_per_document"]
    return (*entries, Entry(str(stored), float(stored), about=about))
