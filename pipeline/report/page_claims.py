"""Claims of a page, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pipeline.report.claim_list import ORDER, basis, claim_command
from pipeline.report.page_text import prose
from pipeline.report.panels import PAPERS
from pipeline.report.verdicts import Decided

CLASSES = {"reproduced": "reproduced", "contradicted": "contradicted", "not testable here": "untestable"}


def verdict_boxes() -> str:
    """Boxes that choose which claims are shown."""
    return "".join(
        f'<label><input type="checkbox" checked value="{CLASSES[verdict]}">{verdict}</label>' for verdict in ORDER
    )


def claim_lists(decided: Sequence[Decided], suite: str) -> str:
    """Every claim with its verdict, a list for each paper."""
    parts = []
    for source, paper in PAPERS.items():
        own = "".join(_claim(one, suite) for one in decided if one.claim.source == source)
        if own:
            parts.append(f'<h3>{escape(paper)}</h3><ul class="claims">{own}</ul>')
    return "".join(parts)


def _claim(one: Decided, suite: str) -> str:
    texts = [f"{basis(one)}{one.outcome.because}", one.control, one.claim.remark, one.caveat]
    texts += [f"To test it: {one.outcome.command}."] if one.outcome.command else []
    paragraphs = "".join(f"<p>{prose(text)}</p>" for text in texts if text)
    return (
        f'<li class="{CLASSES[one.verdict]}" id="claim-{escape(one.name)}"><p class="verdict">{one.verdict}</p><div>'
        f'<p class="says">{prose(one.claim.says)}</p>'
        f'<p class="muted">{prose(one.claim.where)}; made about {prose(one.claim.made_on)}</p>'
        f"{paragraphs}<p><code>{escape(claim_command(one.name, suite))}</code></p></div></li>"
    )
