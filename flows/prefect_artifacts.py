"""What a run leaves on Prefect's pages: the suite's table, the lineage, the time of each stage."""

from __future__ import annotations

from pathlib import Path

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from flows.summary import Summary


def publish(suite: str, summary: Summary, root: Path) -> None:
    """Create the artifacts `sentfold-<suite>-{results,stages,lineage}`; those whose source exists.

    Has to be called in a flow run.
    """
    folder = root.absolute() / "reports" / suite
    table = folder / "summary.txt"
    if table.is_file():
        text = table.read_text(encoding="utf-8").rstrip()
        create_markdown_artifact(f"```\n{text}\n```\n", key=f"sentfold-{suite}-results", description=str(summary))
    lineage = folder / "lineage.json"
    if lineage.is_file():
        create_link_artifact(
            lineage.as_uri(), link_text=f"reports/{suite}/lineage.json", key=f"sentfold-{suite}-lineage"
        )
    if summary.results:
        rows = [
            {"stage": result.stage, "outcome": result.outcome, "seconds": round(result.seconds, 1)}
            for result in summary.results
        ]
        create_table_artifact(rows, key=f"sentfold-{suite}-stages", description=str(summary))
