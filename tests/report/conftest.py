"""What the tests of pages share: one browser for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import CHROMIUM, Page, open_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of the system's Chromium; only for tests marked `needs_chromium`."""
    assert CHROMIUM is not None
    with open_browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        yield page
