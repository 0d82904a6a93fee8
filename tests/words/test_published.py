"""Published word vectors: fetched from a real server on loopback, and their sha256 recorded."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pipeline.__main__ import app
from pipeline.corpora.fetch import Patience
from pipeline.words.published import describe_locations, fetch_vectors
from sentfold.errors import SourceError
from tests.corpora.hub_server import Page, PageServer, serving

DATA = bytes(range(256)) * 400
SHA = hashlib.sha256(DATA).hexdigest()
ONE_TRY = Patience(connect=10, read=20, tries=1)  # long enough for a busy machine


@pytest.fixture
def server() -> Iterator[PageServer]:
    server = PageServer()
    with serving(server):
        yield server


@pytest.fixture(autouse=True)
def vectors_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTFOLD_VECTORS", str(tmp_path / "vectors"))


def listing(tmp_path: Path, url: str, *, sha256: str | None = SHA) -> dict[str, Any]:
    """Arguments of fetch_vectors for one location that leads to `url`."""
    path = tmp_path / "locations.yaml"
    entry = {
        "title": "small", "citation": "ours", "licence": "ours", "url": url, "file": "small.vec", "sha256": sha256,
        "dimension": 3,
    }  # fmt: skip
    path.write_text(yaml.safe_dump({"small": entry}))
    return {"locations": path, "patience": ONE_TRY}


def failure(arguments: dict[str, Any]) -> str:
    with pytest.raises(SourceError) as caught:
        fetch_vectors("small", **arguments)
    assert not list(Path(os.environ["SENTFOLD_VECTORS"]).glob("*"))
    return str(caught.value)


def test_the_known_file_is_fetched_once(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA)
    arguments = listing(tmp_path, f"{server.url}/v")
    assert "the known sha256" in fetch_vectors("small", **arguments)
    assert (tmp_path / "vectors/small.vec").read_bytes() == DATA
    assert "there already" in fetch_vectors("small", **arguments)
    assert page.asked == 1
    assert [path.name for path in (tmp_path / "vectors").iterdir()] == ["small.vec"]


def test_a_file_that_nobody_knows_is_not_asked_for(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA)
    said = failure(listing(tmp_path, f"{server.url}/v", sha256=None))
    assert "--record-hash" in said and "small" in said
    assert page.asked == 0


def test_a_hash_is_recorded_when_asked_for_and_holds_from_then_on(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA)
    arguments = listing(tmp_path, f"{server.url}/v", sha256=None)
    before = arguments["locations"].read_text()
    said = fetch_vectors("small", **arguments, record=True)
    assert SHA in said and "locations.yaml" in said
    assert (tmp_path / "vectors/small.vec").read_bytes() == DATA
    assert arguments["locations"].read_text() == before.replace("sha256: null", f'sha256: "{SHA}"')
    assert "there already" in fetch_vectors("small", **arguments)
    page.body = DATA[:-1] + b"x"
    (tmp_path / "vectors/small.vec").unlink()
    assert "another sha256" in failure(arguments)


def test_a_recorded_hash_leaves_comments_and_other_blocks_alone(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    arguments = listing(tmp_path, f"{server.url}/v", sha256=None)
    block = arguments["locations"].read_text()
    other = block.replace("small:", "another:")
    arguments["locations"].write_text(f"# a comment\n{other}\n{block}")
    fetch_vectors("small", **arguments, record=True)
    recorded = block.replace("sha256: null", f'sha256: "{SHA}"')
    assert arguments["locations"].read_text() == f"# a comment\n{other}\n{recorded}"


def test_a_file_that_was_put_there_by_hand_is_recorded_without_a_download(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA)
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors/small.vec").write_bytes(DATA)
    assert SHA in fetch_vectors("small", **listing(tmp_path, f"{server.url}/v", sha256=None), record=True)
    assert page.asked == 0


def run_command(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`sentfold fetch-vectors` with the list and the folder of the test."""
    return subprocess.run(
        [sys.executable, "-m", "pipeline", "fetch-vectors", *arguments],
        env={**os.environ, "SENTFOLD_VECTORS": str(tmp_path / "vectors")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_command_says_licence_and_hash_and_then_fetches(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    arguments = listing(tmp_path, f"{server.url}/v")
    done = run_command(tmp_path, "small", "--locations", str(arguments["locations"]))
    assert (done.returncode, done.stderr) == (0, "")
    assert all(part in done.stdout for part in ("licence   ours", SHA, f"{server.url}/v", "the known sha256"))
    assert (tmp_path / "vectors/small.vec").read_bytes() == DATA


def test_a_list_of_holes_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "holes.yaml").touch()
    os.truncate(tmp_path / "holes.yaml", 1 << 40)
    done = run_command(tmp_path, "small", "--locations", str(tmp_path / "holes.yaml"))
    assert done.returncode == 2 and "never written" in done.stderr


@pytest.mark.parametrize("file", ["../mine.txt", "{0}/mine.txt", "..", ".", "", "a/b"])
def test_a_list_of_a_stranger_writes_into_the_folder_of_word_vectors_alone(
    file: str, server: PageServer, tmp_path: Path
) -> None:
    page = server.pages["/v"] = Page(DATA)
    (tmp_path / "mine.txt").write_text("mine")
    arguments = listing(tmp_path, f"{server.url}/v")
    entries = yaml.safe_load(arguments["locations"].read_text())
    entries["small"]["file"] = file.format(tmp_path)
    arguments["locations"].write_text(yaml.safe_dump(entries))
    done = CliRunner().invoke(app, ["fetch-vectors", "small", "--locations", str(arguments["locations"])])
    assert isinstance(done.exception, SourceError) and "outside of the folder of word" in str(done.exception)
    assert not list(Path(os.environ["SENTFOLD_VECTORS"]).glob("*"))
    assert (tmp_path / "mine.txt").read_text() == "mine" and page.asked == 0


def test_a_file_of_the_users_with_the_name_of_a_published_one_is_kept_and_titles_are_escaped(
    server: PageServer, tmp_path: Path
) -> None:
    page = server.pages["/v"] = Page(DATA)
    place = listing(tmp_path, f"{server.url}/v")["locations"]
    place.write_text(place.read_text().replace("title: small", r'title: "\x1b[2Jsmall"'))
    assert "small: \\x1b[2Jsmall" in run_command(tmp_path, "--locations", str(place)).stdout
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors/small.vec").write_text("mine")
    done = run_command(tmp_path, "small", "--locations", str(place))
    assert done.returncode != 0 and "would be lost" in done.stderr
    assert (tmp_path / "vectors/small.vec").read_text() == "mine" and page.asked == 0


@pytest.mark.slow
def test_the_command_refuses_an_unknown_hash_unless_told_to_record_it(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    place = str(listing(tmp_path, f"{server.url}/v", sha256=None)["locations"])
    refused = run_command(tmp_path, "small", "--locations", place)
    assert refused.returncode == 2
    assert "not recorded yet" in refused.stdout and "--record-hash" in refused.stderr
    assert not (tmp_path / "vectors").exists()
    done = run_command(tmp_path, "small", "--locations", place, "--record-hash")
    assert done.returncode == 0 and SHA in done.stdout


def test_the_command_without_a_name_lists_what_there_is_and_asks_no_server(tmp_path: Path) -> None:
    done = run_command(tmp_path)
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("glove-840b", "fasttext-crawl", "lexvec", "psl", "word2vec"))
    assert not (tmp_path / "vectors").exists()


def test_the_list_says_what_is_here(tmp_path: Path) -> None:
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors/glove.840B.300d.zip").write_bytes(b"")
    said = describe_locations()
    assert "glove.840B.300d.zip (here)" in said
    assert "crawl-300d-2M.vec.zip (not here)" in said
    assert "Public Domain" in said
