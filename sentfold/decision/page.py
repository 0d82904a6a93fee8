"""verdict.html: the sentence, a forest plot of the candidates, two linked maps, and the pairs that moved most."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from sentfold.decision.families import axes_of
from sentfold.decision.verdict import describe_change, span
from sentfold.files import write_text
from sentfold.manifold.base.linear import principal_map
from sentfold.measures.base.pairs import cosines
from sentfold.retrieval.base.ranking import unit_rows

if TYPE_CHECKING:
    from sentfold.data.datasets import Dataset
    from sentfold.decision.decide import Candidate, Decision

Floating = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]

DRAWN = 1_000  # texts on a map
LETTERS = 90  # of a text, at most
LARGEST = 280_000  # bytes of a page
MOVED = 5  # pairs that are listed
GRID = 999  # coordinates are whole numbers from 0 to this

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Verdict</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'">
<style>
:root{{color-scheme:light dark;--ink:light-dark(#1f2933,#e4e7eb);--muted:#7b8794;--mark:light-dark(#c2410c,#fb923c)}}
body{{font:15px/1.45 system-ui,sans-serif;color:var(--ink);max-width:64rem;margin:.6rem auto;padding:0 1rem}}
h1{{font-size:1.2rem;margin:0}} h2{{font-size:1rem;margin:.6rem 0 .2rem}} p{{margin:.2rem 0}}
.maps{{display:flex;gap:1rem}} td{{max-width:22rem;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}}
figure{{margin:0;flex:1}} canvas{{width:100%;border:1px solid var(--muted)}} #text{{min-height:1.5em;color:var(--mark)}}
svg text{{fill:var(--ink);font-size:13px}} svg line{{stroke:var(--ink)}} svg circle{{fill:var(--mark)}}
td,th{{text-align:left;padding:.1rem .8rem .1rem 0;vertical-align:top}} small{{color:var(--muted)}}
</style>
<h1>{verdict}</h1>
<p>{change}</p>
<h2>Difference to cosine, points of {metric} × 100, with simultaneous 95% intervals</h2>
{forest}
<h2>{count} texts before and after: two principal components of each space</h2>
<p id="text">Point at a text.</p>
<div class="maps"><figure><canvas width="600" height="250"></canvas><small>cosine</small></figure>
<figure><canvas width="600" height="250"></canvas><small>{after}</small></figure></div>
{moved}
<script>
const points = {points}, texts = {texts};
const canvases = [...document.querySelectorAll("canvas")], said = document.querySelector("#text");
const ink = getComputedStyle(document.body).color, mark = getComputedStyle(said).color;
const along = (value, length) => 8 + value / {grid} * (length - 16);
const place = (canvas, map, i) => [along(map[2*i], canvas.width), along(map[2*i+1], canvas.height)];
function draw(chosen) {{
  canvases.forEach((canvas, side) => {{
    const pen = canvas.getContext("2d"); pen.clearRect(0, 0, canvas.width, canvas.height); pen.globalAlpha = .5;
    pen.fillStyle = ink;
    texts.forEach((_, i) => {{ const [x, y] = place(canvas, points[side], i); pen.fillRect(x - 1.5, y - 1.5, 3, 3); }});
    if (chosen < 0) return;
    const [x, y] = place(canvas, points[side], chosen); pen.globalAlpha = 1;
    pen.fillStyle = mark; pen.beginPath(); pen.arc(x, y, 7, 0, 7); pen.fill();
  }});
}}
canvases.forEach((canvas, side) => canvas.addEventListener("mousemove", event => {{
  const box = canvas.getBoundingClientRect(), zoom = canvas.width / box.width;
  const at = [(event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom];
  let best = -1, least = Infinity;
  texts.forEach((_, i) => {{
    const [x, y] = place(canvas, points[side], i), apart = (x - at[0]) ** 2 + (y - at[1]) ** 2;
    if (apart < least) [least, best] = [apart, i];
  }});
  said.textContent = texts[best]; draw(best);
}}));
draw(-1);
</script></html>
"""


def write_page(path: Path, decision: Decision, data: Dataset, vectors: Floating) -> None:
    """Write the page: one file of under 300 KB that loads nothing. The same decision gives the same bytes.

    vectors  (N, d) as the decision had them; texts come from the data, and rows are numbered where it has none
    """
    rows = np.unique(data.rows)
    drawn = rows[np.unique(np.linspace(0, len(rows) - 1, min(DRAWN, len(rows))).astype(np.int64))]
    names = [data.texts[row] if data.texts else f"row {row}" for row in drawn]
    maps = [flat_map(vectors[drawn]), flat_map(decision.alternative.transform(vectors[drawn]))]
    unchanged = decision.alternative_name == "cosine"
    judged = f"Judged on {decision.items:,} {decision.item} in {decision.groups:,} independent groups."
    parts = {
        "verdict": escape(decision.verdict),
        "change": escape(describe_change(decision) or judged),
        "metric": escape(decision.metric),
        "forest": draw_candidates(decision.candidates),
        "count": f"{len(drawn):,}",
        "after": "cosine: no change is chosen" if unchanged else escape(decision.alternative_name),
        "moved": "" if unchanged else moved_pairs(decision, data, vectors),
        "points": script_json(maps),
        "grid": GRID,
    }
    letters, page = LETTERS, PAGE.format(**parts, texts=script_json(cut_texts(names, LETTERS)))
    while len(page.encode()) > LARGEST and letters > 1:  # letters of some scripts have four bytes, and `<` has six
        letters = 3 * letters // 4
        page = PAGE.format(**parts, texts=script_json(cut_texts(names, letters)))
    write_text(path, page)


def cut_texts(texts: Sequence[str], letters: int) -> list[str]:
    """Texts of at most so many letters."""
    return [text if len(text) <= letters else f"{text[: letters - 1]}…" for text in texts]


def draw_candidates(candidates: Sequence[Candidate]) -> str:
    """A forest plot as SVG: a line per candidate, its interval, its point, and a line at 0."""
    shown = [candidate for candidate in candidates if not candidate.identical]
    ends = [0.0, *(value for candidate in shown for value in (candidate.low, candidate.high))]
    low, high = min(ends), max(ends)
    height = 19 * len(shown) + 22

    def at(value: float) -> float:
        return round(270 + 480 * (value - low) / ((high - low) or 1.0), 1)

    lines = [f'<line x1="{at(0)}" x2="{at(0)}" y1="4" y2="{height - 18}" stroke-dasharray="3 3"/>']
    for place, candidate in enumerate(shown):
        y = 19 * place + 14
        lines.append(
            f'<text x="0" y="{y + 4}">{escape(candidate.name)}</text>'
            f'<line x1="{at(candidate.low)}" x2="{at(candidate.high)}" y1="{y}" y2="{y}"/>'
            f'<circle cx="{at(candidate.difference)}" cy="{y}" r="4"/>'
            f'<text x="765" y="{y + 4}">{span(candidate)}</text>'
        )
    lines.append(f'<text x="{at(0) - 4}" y="{height - 4}">0</text>')
    return f'<svg viewBox="0 0 900 {height}" role="img">{"".join(lines)}</svg>'


def flat_map(x: Floating) -> list[int]:
    """x, y of each row in turn: two principal components of the unit rows, stretched to 0..GRID."""
    unit = unit_rows(np.asarray(x, dtype=np.float64))
    flat = principal_map(axes_of(unit), min(2, *unit.shape)).apply(unit)
    flat = flat if flat.shape[1] == 2 else np.column_stack([flat, np.zeros(len(flat))])
    least, reach = flat.min(axis=0), np.ptp(flat, axis=0)
    whole: list[int] = np.round(GRID * (flat - least) / np.where(reach > 0, reach, 1)).astype(int).ravel().tolist()
    return whole


def moved_pairs(decision: Decision, data: Dataset, vectors: Floating) -> str:
    """A table of the related pairs whose rank by cosine changes most."""
    pairs, values = related_pairs(data)
    if not len(pairs):
        return ""
    used, places = np.unique(pairs, return_inverse=True)
    places = places.reshape(pairs.shape)
    before, after = (cosines(x, places)[0] for x in (vectors[used], decision.alternative.transform(vectors[used])))
    ranks = [100 * (rankdata(similar) - 1) / max(len(similar) - 1, 1) for similar in (before, after)]
    moved = np.argsort(-np.abs(ranks[1] - ranks[0]), kind="stable")[:MOVED]
    texts = [tuple(data.texts[row] if data.texts else f"row {row}" for row in pairs[item]) for item in moved]
    rows = [
        f"<tr><td>{escape(values[item][:LETTERS])}<td>{ranks[0][item]:.0f} → {ranks[1][item]:.0f}"
        f"<td>{escape(left[:LETTERS])}<td>{escape(right[:LETTERS])}"
        for item, (left, right) in zip(moved, texts, strict=True)
    ]
    said = {"pairs": "score", "labels": "class", "queries": "grade"}[data.kind]
    head = f"<tr><th>{said}<th>rank of cosine, 0 to 100<th>text<th>text"
    return f"<h2>The pairs that move most</h2><table>{head}{''.join(rows)}</table>"


def related_pairs(data: Dataset) -> tuple[Ints, list[str]]:
    """(m, 2) rows of the pairs; of queries with their relevant documents; or of labelled texts, each with the next text
    of its class; and the score, the grade or the class of each."""
    if data.kind == "queries":
        edges = [
            (int(row), document, f"{grade:g}")
            for row, relevant in zip(data.rows, data.relevant, strict=True)
            for document, grade in relevant.items()
        ]
        return np.array([edge[:2] for edge in edges]), [grade for *_, grade in edges]
    if data.kind == "labels":
        order = np.argsort(data.values, kind="stable")
        same = data.values[order[1:]] == data.values[order[:-1]]
        pairs = np.column_stack([data.rows[order[:-1]], data.rows[order[1:]]])[same]
        return pairs, [data.classes[int(number)] for number in data.values[order[1:]][same]]
    return data.rows, [f"{score:g}" for score in data.values]


def script_json(content: Any) -> str:
    """JSON that can stand inside of a script element, whatever the texts hold."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
