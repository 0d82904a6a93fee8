"""The whole path on a small real corpus: what runs, what does not, and whether the numbers are right."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import spearmanr
from sklearn.manifold import LocallyLinearEmbedding

from pipeline.base.artifacts import absence, read_lists, read_record, read_table, read_vectors
from sentfold.files import sha256_of
from sentfold.manifold.solver.eigensolver import canonical_signs, weight_matrix
from tests.checkout import ROOT, environment, make_checkout, repro

pytestmark = pytest.mark.slow  # a dozen runs of all stages

DATA = Path("data/quick")
TRANSFORMS = ("pca", "whitening", "lp-landmark", "npe")
SELECTIONS = ("lp-selected", "pca-selected")
STAGES = yaml.safe_load((ROOT / "plan.yaml").read_text(encoding="utf-8"))["stages"]
WORD_ENCODERS = tuple(STAGES["encode"])
ENCODE = {f"encode@{encoder}" for encoder in WORD_ENCODERS}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose quick suite (437 words of wordsim, and the referee sentences) has run once."""
    checkout = make_checkout(tmp_path_factory.mktemp("end") / "checkout", corpora="wordsim, happy")
    repro(checkout)
    return checkout


@pytest.fixture
def checkout(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished checkout to change."""
    return Path(shutil.copytree(finished, tmp_path / "copy", symlinks=True))


def digests(checkout: Path) -> dict[str, str]:
    return {str(path.relative_to(checkout)): sha256_of(path) for path in sorted((checkout / DATA).rglob("*.parquet"))}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} does not stand once in {path.name}"
    path.write_text(text.replace(old, new))


def test_a_second_repro_runs_nothing(checkout: Path) -> None:
    assert repro(checkout) == set()


def test_changed_parameters_run_their_stages_and_what_follows_from_them(checkout: Path) -> None:
    edit(checkout / "params.yaml", "neighbors: 30 ", "neighbors: 25 ")
    edit(checkout / "params.yaml", "&sif-settings {a: 0.001,", "&sif-settings {a: 0.0003,")
    assert repro(checkout) == {
        "plan", "reconstruction_weights@minilm-lp", "eigensolve@minilm-lp", "evaluate@minilm-lp",
        "encode@wl-sif", "evaluate@wl-sif", "report",
    }  # fmt: skip


def test_changing_the_dimension_alone_leaves_the_weights_as_they_are(checkout: Path) -> None:
    edit(checkout / "params.yaml", "components: 128 # p,", "components: 64 # p,")
    assert repro(checkout) == {"plan", "eigensolve@minilm-lp", "evaluate@minilm-lp", "report"}


def test_comments_in_the_files_of_methods_rerun_their_spaces_with_the_same_bytes_and_the_report(checkout: Path) -> None:
    before = digests(checkout)
    for name in ("encoders/transformer.py", "encoders/gem.py", "manifold/lle.py"):
        source = checkout / "sentfold" / name
        source.write_text(source.read_text() + "\n# a comment, and nothing else\n")
    # No space changes, so nothing is scored again; the report reads the titles in the library's files.
    assert repro(checkout) == {
        "embed@wordsim-minilm", "embed@happy-minilm", "encode@wl-gem", "reconstruction_weights@minilm-lp",
        "eigensolve@minilm-lp", "sweep@minilm-lp-selected", "selected@minilm-lp-selected", "report",
    }  # fmt: skip
    assert digests(checkout) == before


def test_a_block_added_to_the_catalogue_reruns_nothing(checkout: Path) -> None:
    catalogue = checkout / "pipeline/catalogue.yaml"
    text = catalogue.read_text()
    block = text[text.index("\nwordsim:") : text.index("\nhappy:")]
    catalogue.write_text(text + block.replace("wordsim:", "more:", 1).replace("{wordsim:", "{more:"))
    assert repro(checkout) == set()


def test_a_damaged_artifact_is_made_anew_and_not_taken_for_good(checkout: Path) -> None:
    before = digests(checkout)
    victim = checkout / DATA / "spaces/minilm-lp/wordsim.parquet"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    repro(checkout)
    assert digests(checkout) == before


def test_no_temporary_file_and_no_nested_gitignore_is_left(finished: Path) -> None:
    assert not list((finished / "data").rglob("*.tmp"))
    assert not list((finished / "data").rglob(".gitignore"))
    status = yaml.safe_load((finished / "dvc.lock").read_text())
    assert set(status["stages"]) == {
        "plan", "download@wordsim", "download@happy",
        *(f"{stage}@{name}" for stage in ("vocabulary", "word_counts") for name in STAGES["vocabulary"]),
        *(f"{stage}@{name}" for stage in ("word_vectors", "cluster_words") for name in STAGES[stage]),
        "embed@wordsim-minilm", "embed@happy-minilm", *ENCODE, "knn_graph@minilm",
        "reconstruction_weights@minilm-lp", "eigensolve@minilm-lp",
        *(f"transform@minilm-{name}" for name in TRANSFORMS),
        *(f"{stage}@minilm-{name}" for stage in ("sweep", "selected") for name in SELECTIONS),
        *(
            f"evaluate@minilm{name}"
            for name in ("", "-lp", *(f"-{name}" for name in (*TRANSFORMS, *SELECTIONS)))
        ),
        *(f"evaluate@{encoder}" for encoder in WORD_ENCODERS),
        "report",
    }  # fmt: skip


def test_the_space_is_what_dense_algebra_and_scikit_learn_find(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished)
    x = read_vectors(DATA / "spaces/minilm/wordsim.parquet")
    y = read_vectors(DATA / "spaces/minilm-lp/wordsim.parquet")
    notes = read_record(DATA / "spaces/minilm-lp/wordsim.parquet", kind="vectors")["notes"]
    source = DATA / "weights/minilm-lp/wordsim.parquet"
    table = read_table(source, kind="weights")
    w = weight_matrix(read_lists(table, "neighbor", path=source), read_lists(table, "weight", path=source))
    difference = np.eye(len(x)) - w.toarray()
    values, vectors = np.linalg.eigh(difference.T @ difference)
    assert notes["nullity"] == 1 == int((values <= 1e-10).sum())
    np.testing.assert_allclose(notes["eigenvalues"], values[1:129], atol=1e-8)
    assert max(notes["residuals"]) < 1e-8
    unit = y.astype(np.float64) / np.sqrt(len(x))
    outside = unit - vectors[:, 1:129] @ (vectors[:, 1:129].T @ unit)
    # float32 storage of entries around 1 leaves 6e-8 each.
    assert np.linalg.norm(outside, 2) < 1e-6
    theirs = LocallyLinearEmbedding(
        n_neighbors=30, n_components=128, reg=1e-3, eigen_solver="dense", neighbors_algorithm="brute"
    ).fit_transform(x.astype(np.float64))
    # Rows of nearly equal eigenvalues may rotate within their plane, so planes are compared, then rows' angles.
    np.testing.assert_allclose(np.linalg.svd(theirs.T @ unit)[1], 1.0, atol=1e-6)
    np.testing.assert_allclose(unit @ unit.T, theirs @ theirs.T, atol=1e-6)
    np.testing.assert_allclose(np.abs(canonical_signs(theirs)[:, :3]), np.abs(unit[:, :3]), atol=1e-5)


def test_where_every_sentence_is_a_landmark_the_space_is_that_of_the_manifold(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    for corpus in ("wordsim", "happy"):
        spaces = [DATA / f"spaces/{space}/{corpus}.parquet" for space in ("minilm-lp", "minilm-lp-landmark")]
        assert len({absence(path, kind="vectors") for path in spaces}) == 1
    vectors = [read_vectors(DATA / f"spaces/{space}/wordsim.parquet") for space in ("minilm-lp", "minilm-lp-landmark")]
    np.testing.assert_array_equal(*vectors)


def test_the_printed_score_is_the_spearman_of_the_stored_vectors(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    items = read_table(DATA / "corpora/wordsim/items.parquet", kind="items.similarity").to_pydict()
    printed = (finished / "reports/quick/tables/sts.csv").read_text().splitlines()
    assert printed[0] == "space,wordsim"
    for line in printed[1:]:
        space, value = line.split(",")
        v = read_vectors(DATA / f"spaces/{space}/wordsim.parquet").astype(np.float64)
        lengths = np.linalg.norm(v, axis=1, keepdims=True)
        v /= np.where(lengths > 0, lengths, 1)  # a word encoder may have nothing to say: its cosine is 0
        cosine = (v[items["row1"]] * v[items["row2"]]).sum(axis=1)
        assert float(value) == pytest.approx(100 * spearmanr(cosine, items["score"]).statistic, abs=0.0051)


def test_the_report_has_the_printed_cosines_of_the_referee_and_a_picture(finished: Path) -> None:
    table = (finished / "reports/quick/tables/hyperboloid-1.md").read_text()
    assert "0.943" in table and "0.665" in table and "0.685" in table
    assert (finished / "reports/quick/figures/differences.svg").stat().st_size > 1000
    assert b"<svg" in (finished / "reports/quick/figures/differences.svg").read_bytes()


def test_evaluating_again_gives_the_same_bytes(checkout: Path) -> None:
    scores = {path: path.read_bytes() for path in (checkout / "reports/quick/scores").glob("*.json")}
    assert len(scores) > 10
    subprocess.run(
        [sys.executable, "-m", "dvc", "repro", "--force", "--single-item", "evaluate@minilm-lp"],
        cwd=checkout, env=environment(), check=True, capture_output=True,
    )  # fmt: skip
    assert {path: path.read_bytes() for path in scores} == scores
