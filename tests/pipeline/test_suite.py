"""A suite as its stages see it: what its plan says of each space, and plans that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pipeline.base.suite import freeze, known_suites, load_suite, plan_file, require_suite, suite_file
from pipeline.plan import check_plan, mark_checked, write_plan
from sentfold.errors import SuiteError
from tests.checkout import make_suite

# --- spaces, corpora and words ----------------------------------------------------------------------


def test_a_derived_space_is_made_from_its_encoder_by_its_block_and_an_encoders_own_by_none() -> None:
    suite = make_suite(spaces=("minilm", "minilm-lp", "wl-sif", "wl-sif-pca"))
    assert suite.made_from("minilm-lp") == ("minilm", "lp")
    assert suite.made_from("wl-sif-pca") == ("wl-sif", "pca")
    assert suite.derived_spaces == ("minilm-lp", "wl-sif-pca")
    assert suite.maker_of("minilm") is None
    with pytest.raises(SuiteError, match="'minilm' is an encoder's own space") as caught:
        suite.made_from("minilm")
    assert caught.value.expected == "one of: minilm-lp, wl-sif-pca"


def test_a_space_that_the_suite_lacks_is_refused_with_those_it_has() -> None:
    suite = make_suite(spaces=("minilm", "minilm-lp"))
    for ask in (suite.check_space, suite.encoder_of, suite.maker_of, suite.made_from):
        with pytest.raises(SuiteError, match="no space 'minilm-pca'") as caught:
            ask("minilm-pca")  # params.yaml could make it, but the suite does not name it
        assert caught.value.expected == "one of: minilm, minilm-lp"


def test_an_encoder_is_named_once_however_many_spaces_are_made_from_it() -> None:
    suite = make_suite(corpora=("lee", "wordsim"), spaces=("minilm-lp", "minilm-pca", "wl-sif-pca"))
    assert (suite.encoders, suite.word_encoders) == (("minilm",), ("wl-sif",))
    assert set(suite.stages["embed"]) == {"lee-minilm", "wordsim-minilm"}


def test_a_wordless_corpus_is_scored_but_adds_no_word_to_the_vocabulary() -> None:
    suite = make_suite(corpora=("lee", "wordsim", "simlex"), wordless=("lee",))
    assert suite.worded_corpora == ("wordsim", "simlex")
    assert set(suite.stages["download"]) == set(suite.corpora)


def test_a_grid_is_one_selection_over_all_encoders_and_a_sweep_for_each() -> None:
    names = ("minilm-pca-selected", "wl-sif-pca-selected", "minilm-whitening-selected", "minilm-pca")
    suite = make_suite(spaces=names, development="lee")
    assert set(suite.stages["sweep"]) == set(suite.stages["selected"]) == set(names[:3])
    assert suite.paths["sweeps"] == "reports/mine/sweeps"


def test_word_vectors_are_asked_for_by_every_tokenizer_that_wants_them_and_no_other() -> None:
    suite = make_suite(spaces=("wl-average", "wl-usif", "wl-s3e"))
    assert suite.stages["word_vectors"]["wordllama"] == {"tokenizers": ("regex", "treebank")}
    assert suite.stages["word_vectors"]["wordllama-pvn"] == {"tokenizers": ("regex",)}
    assert suite.stages["encode"]["wl-usif"]["vectors"] == "data/mine/words/vectors/wordllama"
    # A method without clusters depends on its vectors twice, because a template cannot leave a line out.
    assert suite.stages["encode"]["wl-usif"]["clusters"] == suite.stages["encode"]["wl-usif"]["vectors"]
    assert suite.stages["encode"]["wl-s3e"]["clusters"] == "data/mine/words/clusters/s3e"
    assert suite.stages["cluster_words"]["s3e"]["method"] == "kmeans"


def test_a_varied_word_encoder_gets_its_words_though_no_space_is_made_with_it() -> None:
    suite = make_suite(spaces=("minilm",), sensitivities=("wl-gem",))
    assert set(suite.stages["sensitivity"]) == {"wl-gem"}
    assert not suite.stages["encode"]
    assert suite.tokenizers and suite.word_vectors
    assert suite.paths == {"words": "data/mine/words", "sweeps": "reports/mine/sweeps"}


def test_a_method_that_reads_a_graph_depends_on_it_and_another_on_the_space_alone() -> None:
    stages = make_suite(spaces=("minilm-npe", "minilm-pca")).stages
    assert stages["transform"]["minilm-npe"]["reads"] == "data/mine/graphs/minilm"
    assert stages["transform"]["minilm-pca"]["reads"] == "data/mine/spaces/minilm"
    assert set(stages["knn_graph"]) == {"minilm"}
    assert not make_suite(spaces=("minilm-pca",)).stages["knn_graph"]


# --- files ------------------------------------------------------------------------------------------


def test_the_files_of_quick_are_in_the_root_and_those_of_others_in_folders_of_their_names(checkout: Path) -> None:
    assert (suite_file("quick"), plan_file("quick")) == (Path("suite.yaml"), Path("plan.yaml"))
    assert (suite_file("mine"), plan_file("mine")) == (Path("suites/mine/suite.yaml"), Path("suites/mine/plan.yaml"))
    assert require_suite("quick") == Path("suite.yaml")
    assert known_suites() == ["quick"]
    (checkout / "suites/mine").mkdir(parents=True)
    assert known_suites() == ["quick"], "a folder without a suite file is no suite"
    suite_file("mine").touch()
    assert known_suites() == ["quick", "mine"]


def spoil(change: dict[str, Any]) -> None:
    """Change keys of the plan of quick by hand."""
    path = plan_file("quick")
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"corpora": "lee"}, "corpora"),
        ({"spaces": ["not a name"]}, "spaces"),
        ({"source": "disk"}, "source"),
        ({"colour": "blue"}, "colour"),
        ({"suite": "other"}, "the plan is of another suite"),
    ],
)
def test_a_plan_that_was_edited_by_hand_is_refused_with_the_command_that_writes_it_anew(
    checkout: Path, change: dict[str, Any], part: str
) -> None:
    spoil(change)
    with pytest.raises(SuiteError, match=part) as caught:
        load_suite("quick")
    assert "sentfold plan --suite quick" in str(caught.value)
    with pytest.raises(SuiteError, match="does not follow from its suite file"):
        check_plan("quick")
    write_plan("quick")
    check_plan("quick")
    assert load_suite("quick").suite == "quick"


def test_a_plan_that_is_right_is_not_written_again(checkout: Path) -> None:
    before = plan_file("quick").stat()
    write_plan("quick")
    after = plan_file("quick").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_check_leaves_the_same_bytes_for_every_plan_so_that_nothing_reruns_after_it(checkout: Path) -> None:
    first = mark_checked("quick").read_bytes()
    (checkout / "suite.yaml").write_text((checkout / "suite.yaml").read_text().replace("lee, wordsim", "wordsim"))
    write_plan("quick")
    assert load_suite("quick").corpora == ("wordsim",)
    assert mark_checked("quick").read_bytes() == first == mark_checked("other").read_bytes()


# --- lists and tuples -------------------------------------------------------------------------------

YAML = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


def thaw(content: Any) -> Any:
    """Tuples of a frozen content as lists again; freezing reaches into mappings, not into lists."""
    if isinstance(content, tuple):
        return list(content)
    return {key: thaw(value) for key, value in content.items()} if isinstance(content, dict) else content


@given(content=YAML)
def test_freezing_makes_tuples_of_the_lists_in_mappings_and_changes_nothing_else(content: Any) -> None:
    frozen = freeze(content)
    assert thaw(frozen) == content
    waiting = [frozen]
    while waiting:
        value = waiting.pop()
        assert not isinstance(value, list)
        waiting += value.values() if isinstance(value, dict) else ()
