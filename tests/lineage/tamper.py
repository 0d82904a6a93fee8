"""What tests of the audit share: a forgery, and how to read what was found."""

from __future__ import annotations

from datetime import UTC, datetime

from pipeline.lineage.audit import Audit
from pipeline.lineage.hashes import Digest
from pipeline.lineage.recorder import Run, end_run
from pipeline.lineage.stages import load_stages
from pipeline.lineage.trees import WorkingTree
from tests.lineage.small import Small

# A stage that writes under reports/, and is not the report.
CHOOSE = """\
  choose:
    wdir: ${root}
    cmd: mkdir -p reports/${suite}/sweeps && cp plan.yaml reports/${suite}/sweeps/chosen.txt
    deps: [plan.yaml]
    outs: [{"reports/${suite}/sweeps": {cache: false}}]
"""


def faults(found: Audit) -> list[tuple[str, str]]:
    """Kind and subject of everything wrong or uncommitted."""
    return [(cause.kind, cause.subject) for cause in found.causes if cause.state != "absent"]


def verdict_of(found: Audit, table: str, row: str, column: str, field: str = "value") -> str:
    (finding,) = (
        finding
        for finding in found.findings
        if finding.number.table.endswith(f"/{table}")
        and (finding.number.row, finding.number.column, finding.number.field) == (row, column, field)
    )
    return finding.verdict


def forge(small: Small) -> None:
    """Raise a score, and change every record of it so that all agree."""
    scores = "reports/quick/scores/mini.json"
    old = digests(small, scores)
    small.edit(scores, '"value": 20.5', '"value": 20.9')
    for table in ("sts.csv", "scores.csv", "small.csv"):
        small.edit(f"reports/quick/tables/{table}", "20.50", "20.90")
    small.edit("reports/quick/tables/scores.csv", "-0.40", "-0.80")
    lock = small.root / "dvc.lock"
    text = lock.read_text()
    for path, digest in digests(small, scores).items():
        text = text.replace(old[path].md5, digest.md5)
    lock.write_text(text)


def digests(small: Small, scores: str) -> dict[str, Digest]:
    tree = WorkingTree(small.root)
    found = {path: tree.digest(path) for path in (scores, "reports/quick/scores", "reports/quick/tables")}
    return {path: digest for path, digest in found.items() if digest is not None}


def record_run(small: Small, *names: str) -> None:
    """Write down runs of stages that read and wrote what is here, with the parameters that are here."""
    stages = load_stages(WorkingTree(small.root), "quick")
    for name in names or stages:
        now = datetime.now(UTC)
        head = {
            "run": now.strftime("%M%S%f").zfill(32), "suite": "quick", "stage": name,
            "command": stages[name].command, "started": now.isoformat(timespec="milliseconds"),
        }  # fmt: skip
        code = {"commit": small.run("git", "rev-parse", "HEAD").stdout.strip(), "dirty": []}
        end_run(Run(small.root, head, now, stages[name], code, {}, {}, {}, {}), 0, "")
