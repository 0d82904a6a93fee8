"""The command `sentfold fold`: its answer, its options, a kill in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sentfold.manifold.base.protocol import Source
from sentfold.manifold.landmark import embed
from tests.checkout import ROOT, environment
from tests.fold.corpus import (
    LANDMARKS,
    SOLVER,
    check_target,
    cloud,
    contents,
    identities,
    read_folded,
    sentences,
    write_texts,
    write_vectors,
)

SMALL = [f"--{name}={value}" for name, value in LANDMARKS.model_dump(exclude={"method"}).items()]
RUN = "import sys; from sentfold.cli.main import main; main()"


def fold(*words: str, folder: Path) -> subprocess.Popen[str]:
    """`sentfold fold` in a folder that is no checkout."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, "fold", *words],
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_the_command_folds_a_file_and_says_how_many_rows(tmp_path: Path) -> None:
    write_vectors(tmp_path / "x.parquet", cloud())
    process = fold("x.parquet", "y", *SMALL, "--tolerance=1e-6", folder=tmp_path)
    printed, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, "")
    assert printed == "y/folded: 900 rows in 1 partitions by 150 landmarks\n"
    wanted = embed(Source(cloud(), solver=SOLVER), LANDMARKS).vectors
    # The two processes may choose other loops of BLAS, which round differently in float64.
    np.testing.assert_allclose(read_folded(tmp_path / "y"), wanted, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_fold_says_which_files_it_read_and_which_texts_the_encoder_took_otherwise(tmp_path: Path) -> None:
    for number in (2, 10):
        write_texts(tmp_path / f"x/part-{number}.parquet", [*sentences()[100 * number :][:99], ""], group=100)
    process = fold("x", "y", "--encoder=wordllama", *SMALL, folder=tmp_path)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "200 rows of 2 files in the order of their numbers, 'part-2.parquet' to 'part-10.parquet', in" in printed
    assert printed.endswith("; texts blank: 2\n")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--landmarks=2"], "where     --landmarks\n"),
        pytest.param(["--selection=first"], "kmeans++", marks=pytest.mark.slow),
        pytest.param(["--scaling=third"], "quarter", marks=pytest.mark.slow),
        pytest.param(["--tolerance=0"], "tolerance", marks=pytest.mark.slow),
        (["--landmarks=100", "--components=99"], "n - 2 = 98"),
        (["--landmarks=100", "--neighbors=100"], "to do     lower --neighbors\n"),
        (["--batch-size=0"], "--batch-size"),
        (["--encoder=no-such"], "no-such"),
        pytest.param(["--encoder=wordllama"], "text", marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_setting_that_does_not_fit_is_refused_by_name(tmp_path: Path, options: list[str], told: str) -> None:
    write_vectors(tmp_path / "x.parquet", cloud(500))
    process = fold("x.parquet", "y", "--neighbors=8", "--components=4", *options, folder=tmp_path)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == 2 and "Traceback" not in errors and not printed
    assert told in errors
    assert "params.yaml" not in errors and "suite" not in errors and "correct the file" not in errors
    assert not list((tmp_path / "y").glob("folded/*"))


@pytest.mark.slow
def test_a_fold_that_was_killed_in_the_middle_continues_to_the_same_bytes(tmp_path: Path) -> None:
    write_texts(tmp_path / "x.parquet", list(sentences()[:2000]), group=20)
    words = ["x.parquet", "--encoder=wordllama", "--partition-rows=20", *SMALL]
    assert fold(*words[:1], "whole", *words[1:], folder=tmp_path).wait(timeout=300) == 0
    killed = fold(*words[:1], "run", *words[1:], folder=tmp_path)
    while killed.poll() is None and len(list(tmp_path.glob("run/receipts/folded-*.json"))) < 10:
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    finished = {name: part for name, part in identities(tmp_path / "run").items() if not name.endswith(".tmp")}
    assert 110 < len(finished) < 201
    process = fold(*words[:1], "run", *words[1:], folder=tmp_path)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "kept from an earlier run: 100 vectors, 1 landmarks" in printed
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    kept = [name for name, part in identities(tmp_path / "run").items() if finished.get(name) == part]
    assert len(kept) >= len(finished) - 1
    check_target(tmp_path / "run")
