"""How soon a report's page shows its answer, and how long a search and a sort take, in a real Chromium.

    python -m benchmarks.page reports/paper-mirror/index.html [--repeats 5] [--json FILE]

The answer is text of the file, so it is visible with the first paint; the tables are drawn once the data are decoded.
A search and a sort are timed with the layout that follows. The median of the repeats is printed, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.browser import CHROMIUM, Page, open_browser

READY = "document.documentElement.dataset.ready === 'yes'"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
TABLES = "performance.getEntriesByName('drawn')[0].startTime"
TIMED = """(() => {{
  const start = performance.now(); {action}; document.body.offsetHeight; return performance.now() - start;
}})()"""
SORT = "document.querySelectorAll('#board .sort')[1].click()"
SEARCH = (
    "const box = document.querySelector('[name=find]'); box.value = '{text}'; box.dispatchEvent(new Event('input'))"
)


def measure(page: Page, file: Path) -> dict[str, float]:
    """Milliseconds to the answer and to the tables after navigation, and of one sort and one search."""
    page.open("about:blank")
    page.open(file.resolve().as_uri())
    deadline = time.monotonic() + 60
    while not (page.evaluate(READY) and page.evaluate(PAINT)):
        if time.monotonic() > deadline:
            raise SystemExit(f"{file} drew nothing")
    actions = {"sort": SORT, "search": SEARCH.format(text="gem")}
    return {
        "answer": page.evaluate(PAINT),
        "tables": page.evaluate(TABLES),
        **{name: page.evaluate(TIMED.format(action=action)) for name, action in actions.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if CHROMIUM is None:
        raise SystemExit("there is no chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, open_browser(CHROMIUM, Path(folder)) as page:
        page.resize(1400, 900)
        runs = [measure(page, arguments.file) for _ in range(arguments.repeats)]
    found = {name: round(median(run[name] for run in runs), 1) for name in runs[0]}
    content = {"bytes": arguments.file.stat().st_size, "milliseconds": found, "repeats": arguments.repeats}
    text = json.dumps(content, indent=2, sort_keys=True)
    print(text)
    if arguments.json:
        arguments.json.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
