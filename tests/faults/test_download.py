"""A download server that stalls, truncates, lies about lengths, or answers with a web page."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.checkout import write_plans
from tests.corpora.hub_server import ID, REVISION, HubServer, Page, serving
from tests.faults.conftest import Disturbed, State, copy_checkout
from tests.faults.fixture_suite import SUITE, catalogue
from tests.faults.processes import PLAIN_DVC, Starter
from tests.faults.repetition import injections
from tests.faults.verdict import take_snapshot

QUESTIONS = """\
DESC:def What is a spirit level ?
ENTY:animal Which bird builds its nest in chimneys ?
HUM:ind Who sharpens the saws of the village ?
LOC:other Where is the glue kept ?
NUM:count How many teeth has a fine rasp ?
ABBR:exp What does MDF stand for ?
"""
TABLE = "text,label\n" + "".join(
    f"{line.partition(' ')[2]},{number % 2}\n" for number, line in enumerate(QUESTIONS.splitlines())
)

PAGE = b"<!DOCTYPE html><html><body>Please accept our terms</body></html>"

# Real seconds of the real code, only fewer of them.
PATIENCE = {"read: float = 60.0": "read: float = 1.0", "tries: int = 3": "tries: int = 1"}

STAGES = {"archive": "download@workshop", "hub": "download@workshop-hub"}
FILE = "/workshop.txt"


@dataclass
class Served:
    """A well-behaved server, its page of each place, and checkouts whose corpus came from there undisturbed."""

    server: HubServer
    pages: dict[str, Page]
    base: State
    folder: Path
    made: dict[str, State] = field(default_factory=dict)

    def state(self, place: str) -> State:
        """The checkout in which the corpus of one place was downloaded, made when it is first asked for."""
        if place not in self.made:
            root = copy_checkout(self.base.root, self.folder / place)
            _add_corpora(root, self.server.url)
            run = make_starter(root, self.server).run(*PLAIN_DVC, STAGES[place])
            assert run.wait() == 0, run.printed
            lock = yaml.safe_load((root / "dvc.lock").read_text())
            self.made[place] = State(root, take_snapshot(root), lock)
        return self.made[place]


@pytest.fixture(scope="module")
def served(undisturbed: Callable[[str], State], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = HubServer()
    with serving(server):
        server.pages[FILE] = Page(QUESTIONS.encode())
        pages = {"archive": server.pages[FILE], "hub": server.add("workshop.csv", TABLE.encode())}
        yield Served(server, pages, undisturbed("base"), tmp_path_factory.mktemp("served"))


def make_starter(root: Path, server: HubServer) -> Starter:
    """Commands that know no other network, and no cache but the checkout's own."""
    starter = Starter(root, root.parent)
    starter.environment |= {
        "HF_ENDPOINT": server.url,
        "SENTFOLD_CACHE": str(root / ".dvc/tmp/archives"),
    }
    for name in ("HF_HUB_OFFLINE",):
        starter.environment.pop(name, None)
    return starter


def _add_corpora(root: Path, url: str) -> None:
    common: dict[str, Any] = {
        "task": "classification",
        "title": "Questions from the workshop",
        "citation": "written for these tests",
        "licence": "that of the repository",
        "splits": {"all": len(QUESTIONS.splitlines())},
    }
    place = {"id": ID, "revision": REVISION, "files": [["*.csv"]], "columns": {"text": "text", "label": "label"}}
    archived = {"urls": {url + FILE: hashlib.sha256(QUESTIONS.encode()).hexdigest()}, "reader": "trec"}
    entries = {
        "workshop": {**common, "corpora": {"workshop": ["all"]}, "archive": {"all": archived}},
        "workshop-hub": {**common, "corpora": {"workshop-hub": ["all"]}, "hub": {"all": place}},
    }
    (root / "pipeline/catalogue.yaml").write_text(yaml.safe_dump(catalogue() | entries, sort_keys=False))
    suite = {**SUITE, "source": "hub", "corpora": [*SUITE["corpora"], *entries]}
    (root / "suite.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    write_plans(root)
    fetch = root / "pipeline/corpora/fetch.py"
    text = fetch.read_text()
    for usual, short in PATIENCE.items():
        assert usual in text
        text = text.replace(usual, short)
    fetch.write_text(text)


def stall(page: Page, moments: random.Random) -> str:
    page.stall = 5.0
    return "5 s of silence in the middle"


def truncate(page: Page, moments: random.Random) -> str:
    whole = len(page.body)
    page.body = page.body[: moments.randrange(whole)]
    page.promised = moments.choice([whole, None])
    return f"{len(page.body)} of {whole} bytes, promised {page.promised}"


def lie(page: Page, moments: random.Random) -> str:
    page.promised = len(page.body) + moments.choice([-1, 1]) * moments.randint(1, 60)
    return f"{page.promised} promised, {len(page.body)} sent"


def answer_html(page: Page, moments: random.Random) -> str:
    page.body = PAGE
    page.headers = {**page.headers, "Content-Type": "text/html; charset=utf-8"}
    return "200 and a page"


FAULTS = {
    "stalls": stall,
    "truncates": truncate,
    "lies about the length": lie,
    "returns HTML": answer_html,
}


@pytest.mark.parametrize(
    ("place", "fault", "number"),
    [
        case
        for place, times in (("archive", 5), ("hub", 2))
        for fault in FAULTS
        for case in injections(place, fault, slow=times)
    ],
)
def test_a_server_that_misbehaves_leaves_no_corpus(
    place: str,
    fault: str,
    number: int,
    served: Served,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    moments: random.Random,
) -> None:
    after = served.state(place)
    root = copy_checkout(served.base.root, tmp_path / "checkout")
    _add_corpora(root, served.server.url)
    starter = make_starter(root, served.server)
    page, right = served.pages[place], replace(served.pages[place])
    try:
        how = FAULTS[fault](page, moments)
        command = starter.run(*PLAIN_DVC, STAGES[place])
        assert command.wait() != 0, command.printed
        assert "error: " in command.printed and "Traceback" not in command.printed, "in our own words"
        assert not list((root / "data").rglob("workshop*/*")), "no corpus, whole or half"
        assert not list((root / ".dvc/tmp/archives").glob("*")), "nothing is kept of it"
    finally:
        vars(page).update(vars(right))
        starter.end()
    disturbed = Disturbed(root, starter, served.base, after, record_property)
    disturbed.judge(f"server {fault} ({place})", how, command, rerun=(*PLAIN_DVC, STAGES[place]))
