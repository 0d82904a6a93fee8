"""Run roc-validator on a crate without the web: `python crate_check.py CRATE CONTEXT CACHE`.

Runs under the interpreter of .venv-crate, which has roc-validator and none of this project. The validator asks for
the context document of RO-Crate at its address; the answer comes from a cache that is filled from the file CONTEXT.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from rocrate_validator import models, services
from urllib3 import HTTPResponse

ADDRESSES = ("https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/crate/1.1/context/")
PROFILE = "workflow-run-crate"


class Canned(HTTPAdapter):
    """Answers every request with one document."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        """The document."""
        headers = {"Content-Type": "application/ld+json", "Content-Length": str(len(self.content))}
        raw = HTTPResponse(BytesIO(self.content), headers, status=200, preload_content=False, request_url=request.url)
        return self.build_response(request, raw)


def fill_cache(cache: str, context: bytes) -> None:
    """Put the context document where the validator looks for it."""
    session = CachedSession(cache_name=cache, backend="sqlite", expire_after=-1, allowable_codes=(200,))
    session.mount("https://", Canned(context))
    for address in ADDRESSES:
        session.get(address).raise_for_status()
    session.close()


def main() -> int:
    crate, context, cache = sys.argv[1:]
    fill_cache(cache, Path(context).read_bytes())
    settings = services.ValidationSettings(
        rocrate_uri=crate, profile_identifier=PROFILE, requirement_severity=models.Severity.REQUIRED,
        offline=True, cache_path=Path(cache),
    )  # fmt: skip
    result = services.validate(settings)
    for issue in result.get_issues():
        print(f"{issue.severity.name} {issue.check.identifier}: {issue.message} ({issue.violatingEntity})")
    print(f"{len(result.get_issues())} issues against {PROFILE}")
    return int(result.has_issues())


if __name__ == "__main__":
    sys.exit(main())
