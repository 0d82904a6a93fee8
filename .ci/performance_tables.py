"""Write the tables of docs/performance.md from the results of the benchmarks.

    python .ci/performance_tables.py [--check]

A table of the page is between `<!-- table NAME -->` and `<!-- /table -->`; the text around the tables is written by
hand. With --check nothing is written: exits 1 if the page is not current. The results are in reports/benchmarks, and
the faults in reports/faults.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/performance.md"
RESULTS = ROOT / "reports/benchmarks"
TABLE = re.compile(r"(<!-- table ([a-z-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)

SHARED = ("ids in", "tokens in", "text in, whitespace")  # the ways in that every encoder over words may have


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    current = TABLE.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n\n{match[3]}", text)
    missing = TABLES.keys() - set(re.findall(r"<!-- table ([a-z-]+) -->", text))
    if missing:
        print(f"docs/performance.md has no place for: {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    if current == text:
        return 0
    if "--check" in sys.argv[1:]:
        print("docs/performance.md is not current: run python .ci/performance_tables.py", file=sys.stderr)
        return 1
    PAGE.write_text(current, encoding="utf-8")
    return 0


def load(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> str:
    """A table in Markdown; the first `texts` columns hold texts, the others numbers."""
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    lines = [" | ".join(head), "|".join(rule), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" if place != 1 else f"|{line}|" for place, line in enumerate(lines))


# --- encoders ---------------------------------------------------------------------------------------


def encoders() -> str:
    content = load("encoders")
    head = ["method", *SHARED[:2], "× fse", SHARED[2], "text in, own tokens", "plain code", "× plain", "fit, s"]
    return markdown(head, [_encoder_row(row, content["fse"]) for row in content["methods"]])


def _encoder_row(row: dict[str, Any], fse: dict[str, Any]) -> list[str]:
    rates = row["per_second"]
    shared = {way: f"{rates[way]:,}" if way in rates else "" for way in SHARED}
    times = f"{rates['tokens in'] / fse[row['method']]['per_second_infer']:.1f}" if row["method"] in fse else ""
    own = next((f"{rate:,} ({way.split()[-1]})" for way, rate in rates.items() if way not in SHARED), "")
    plain = ["", "", ""]
    if "plain_per_second" in row:
        plain = [f"{row['plain_per_second']:,}", f"{row['times_plain']:.0f}", f"{row['fit_seconds']:.1f}"]
    return [row["method"], shared["ids in"], shared["tokens in"], times, shared["text in, whitespace"], own, *plain]


def words() -> str:
    rows = [[name, f"{seconds:.1f}"] for name, seconds in load("words")["cpu_seconds"].items()]
    return markdown(["clustering of made-up words", "CPU s"], rows)


def authors() -> str:
    rows = [row for row in load("reference-scores")["rows"] if "thesis" not in row["method"] and "reference" in row]
    return markdown(
        ["corpus", "method", "sentfold", "the authors' code"],
        [[row["corpus"], row["method"], _scores(row["ours"]), _scores(row["reference"])] for row in rows],
        texts=2,
    )


def thesis() -> str:
    rows = [row for row in load("reference-scores")["rows"] if "thesis" in row["method"]]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    corpora = list(dict.fromkeys(row["corpus"] for row in rows))
    found = {(row["method"], row["corpus"]): _range([one[0] for one in row["ours"]]) for row in rows}
    return markdown(
        ["clusters", *corpora],
        [[_clusters(method), *(found.get((method, corpus), "") for corpus in corpora)] for method in methods],
    )


def _clusters(method: str) -> str:
    return method.removeprefix("LASE, thesis, ").removesuffix(", K = 50")


def _scores(seeds: list[list[float]]) -> str:
    """Spearman and, where it was measured, Pearson: the mean over seeds with their range."""
    return " / ".join(_range([seed[place] for seed in seeds]) for place in range(len(seeds[0])))


def _range(values: Sequence[float]) -> str:
    return f"{mean(values):.2f}" + (f" [{min(values):.2f}, {max(values):.2f}]" if len(values) > 1 else "")


# --- manifolds --------------------------------------------------------------------------------------


def manifold() -> str:
    sys.path.insert(0, str(ROOT))
    from benchmarks.manifold_table import HEAD, describe_growth, read_runs, row

    runs = read_runs(RESULTS)
    return "\n".join([HEAD, *(row(run) for run in runs), "", describe_growth(runs)])


def neighbours() -> str:
    rows = [
        ["sentfold" if name == "ours" else name, f"{seconds['median']:.2f}", _span(seconds["range"], 2)]
        for name, seconds in load("neighbors-20000")["cpu_seconds"].items()
    ]
    share = load("neighbors-20000")["share_of_peak"]
    table = markdown(["search", "CPU s, median", "range"], rows)
    return f"{table}\n\nShare of the peak that sentfold reaches, counting each pair of rows once: {share:.2f}."


def searches() -> str:
    head = ["search", "µs per document, once", "ms per query", "× cosine", "range", "bytes of a document"]
    rows = [
        [
            name,
            f"{cost['prepare_us_per_document'][1]:g}",
            f"{cost['ms_per_query'][1]:g}",
            f"{cost['ratio_to_cosine'][1]:.2f}",
            _span(cost["ratio_to_cosine"][::2], 2),
            str(cost["bytes_per_document"]),
        ]
        for name, cost in sorted(load("searches")["searches"].items(), key=lambda item: item[1]["ratio_to_cosine"][1])
    ]
    return markdown(head, rows)


def large_pool() -> str:
    content = load("large-pool")
    graph = content["graph"]
    shared = f"the exact graph of {graph['neighbors']} neighbours, once: {graph['cpu_s']:,} s"
    found = f"{graph['share_found']:.0%} of the neighbours of 100 documents are those of a full sort"
    rows = [[name, f"{cost['prepare_s']:g}", f"{cost['ms_per_query']:g}"] for name, cost in content["searches"].items()]
    table = markdown(["search", "preparation after the graph, CPU s", "CPU ms per query"], rows)
    return f"{table}\n\nCPU seconds of {shared}; {found}. Peak of the process: {content['peak_mb']:,} MB."


def products() -> str:
    head = ["order of the rows", "CPU s to order", "neighbours within 8,192 rows"]
    head += [f"ms per vector, {width} at a time" for width in (8, 16, 32)]
    rows = [
        [order["order"], f"{order['order_cpu_s']:.1f}", f"{order['near']:.0%}"]
        + [f"{order[f'ms_{width}']:.2f} ({_span(order[f'ms_{width}_spread'], 2)})" for width in (8, 16, 32)]
        for order in load("products-117000")["orders"]
    ]
    return markdown(head, rows)


def kernels() -> str:
    head = ["kernel", "vectors or dimensions", "type", "by hand, ms", "plain numba, ms", "ratio (quartiles)"]
    rows = [
        [
            run["kernel"],
            str(run.get("vectors", run.get("dimensions"))),
            run["type"],
            f"{run['hand_ms']:.1f}",
            f"{run['plain_ms']:.1f}",
            f"{run['ratio']:.2f} ({_span(run['ratio_quartiles'], 2)})",
        ]
        for run in load("kernels")["kernels"]
    ]
    return markdown(head, rows)


def new_rows() -> str:
    head = [
        "fitted",
        "mapped",
        "subspace kept",
        "Spearman of cosines",
        "sentfold, CPU s",
        "scikit-learn, CPU s",
        "ratio",
    ]
    rows = [
        [f"{share['fitted']:,}", f"{share['mapped']:,}", f"{share['subspace']:.2f}", f"{share['spearman']:.2f}"]
        + [f"{share['cpu_s'][name]['median']:.3f}" for name in ("ours", "scikit-learn")]
        + [f"{share['times_faster']:.1f}"]
        for share in load("out-of-sample-5000")["shares"]
    ]
    return markdown(head, rows, texts=0)


def fold() -> str:
    head = ["route", "wall s", "CPU s", "largest process, GB", "load before"]
    rows = [
        [name, f"{run['wall_s']:.0f}", f"{run['cpu_s']:.0f}", f"{run['peak_bytes'] / 1e9:.2f}", f"{run['load_before']}"]
        for name, run in load("fold")["routes"].items()
    ]
    content = load("fold")
    alike = "equal" if content["folders_equal_byte_for_byte"] else "NOT equal"
    return f"{markdown(head, rows)}\n\nThe {content['files']} files of both routes are {alike} byte for byte."


def fold_ssh() -> str:
    content = load("fold-503867-ssh")
    head = ["route", "wall s", "CPU s", "load before"]
    rows = [
        [name, f"{run['wall_s']:.0f}", f"{run['cpu_s']:.0f}", f"{run['load_before']}"]
        for name, run in content["routes"].items()
    ]
    remote = content["routes"]["ssh"]
    alike = "equal" if content["folders_equal_byte_for_byte"] else "NOT equal"
    return (
        f"{markdown(head, rows)}\n\nThe {content['files']} files of both routes are {alike} byte for byte. "
        f"{remote['files_in_remote']} files of {remote['bytes_in_remote'] / 1e6:.0f} MB went through the remote."
    )


def _span(values: Sequence[float], digits: int) -> str:
    return f"{values[0]:.{digits}f}–{values[-1]:.{digits}f}"


# --- suites -----------------------------------------------------------------------------------------


def encoding() -> str:
    content = load("encoding")
    rows = [
        [name, f"{way['rate']:g}", f"{way['rate'] / content['plain_sentences_per_s']:.2f}",
         _span([content["sentences"] / second for second in (max(way["seconds"]), min(way["seconds"]))], 0),
         f"{way['min_cosine']:.5f}"]
        for name, way in content["ways"].items()
    ]  # fmt: skip
    head = ["way", "sentences per second, best of 3", "× best plain", "range", "lowest cosine with float32"]
    return markdown(head, rows)


def evaluate() -> str:
    spaces = load("evaluate")["spaces"]
    tasks = list(dict.fromkeys(task for run in spaces.values() for task in run["tasks"]))
    timed = [task for task in tasks if any(run["tasks"].get(task, {}).get("seconds", 0) > 0 for run in spaces.values())]
    rows = [
        [space, f"{run['dimension']:,}"]
        + [f"{run['tasks'][task]['seconds']:.1f}" if task in run["tasks"] else "" for task in timed]
        + [f"{run['total_cpu_s']:.0f}"]
        for space, run in spaces.items()
    ]
    return markdown(["space", "dimensions", *timed, "all, geometry and heads included"], rows)


def own_data() -> str:
    if not (RESULTS / "own-data.json").is_file():
        return "Not measured yet."
    head = ["command", "wall s", "at most", "CPU s", "memory, MB", "at most"]
    rows = [
        [
            name,
            f"{run['wall_seconds']:.1f}",
            f"{run['allowed_seconds']:.0f}" if run["allowed_seconds"] else "",
            f"{run['cpu_seconds']:.1f}",
            f"{run['megabytes']:,}",
            f"{run['allowed_megabytes']:,}",
        ]
        for name, run in load("own-data")["cases"].items()
    ]
    return markdown(head, rows)


def profile() -> str:
    head = ["work", "profile, CPU s", "native, CPU s", "ratio (range over pairs)"]
    rows = [
        [
            name,
            f"{part['profile_seconds']:.2f}",
            f"{part['native_seconds']:.2f}",
            f"{part['ratio'][1]:.2f} ({_span(part['ratio'], 2)})",
        ]
        for name, part in load("numeric-profile")["parts"].items()
    ]
    return markdown(head, rows)


def report_page() -> str:
    if not (RESULTS / "page.json").is_file():
        return "Not measured yet."
    found = load("page")
    names = {
        "answer": "the answer is visible",
        "tables": "the tables are drawn",
        "search": "a search",
        "sort": "a sort",
    }
    allowed = {"answer": "1,000", "search": "100", "sort": "100"}
    rows = [[text, f"{found['milliseconds'][key]:,.0f}", allowed.get(key, "")] for key, text in names.items()]
    return markdown(["what", "ms", "at most"], [*rows, ["size of the page, bytes", f"{found['bytes']:,}", "1,000,000"]])


def word_pairs() -> str:
    rows = [
        [
            row["space"],
            row["corpus"],
            f"{row['difference']:+.2f}",
            _interval(row["by pairs"]),
            _interval(row["by words"]),
        ]
        for row in load("recurring-words")["differences"]
    ]
    return markdown(["space", "corpus", "difference to the encoder", "by pairs", "by words"], rows, texts=2)


def _interval(bounds: Sequence[float]) -> str:
    return f"[{bounds[0]:+.2f}, {bounds[1]:+.2f}]"


def faults() -> str:
    content = json.loads((ROOT / "reports/faults.json").read_text(encoding="utf-8"))["faults"]
    columns = list(dict.fromkeys(column for row in content.values() for column in row))
    rows = [[name, *(str(row.get(column, "")) for column in columns)] for name, row in content.items()]
    total = ["all", *(str(sum(row.get(column, 0) for row in content.values())) for column in columns)]
    return markdown(["fault", *columns], [*rows, total])


TABLES: dict[str, Callable[[], str]] = {
    "authors": authors,
    "encoders": encoders,
    "encoding": encoding,
    "evaluate": evaluate,
    "faults": faults,
    "fold": fold,
    "fold-ssh": fold_ssh,
    "kernels": kernels,
    "large-pool": large_pool,
    "manifold": manifold,
    "neighbours": neighbours,
    "new-rows": new_rows,
    "own-data": own_data,
    "products": products,
    "profile": profile,
    "report-page": report_page,
    "searches": searches,
    "thesis": thesis,
    "word-pairs": word_pairs,
    "words": words,
}

if __name__ == "__main__":
    sys.exit(main())
