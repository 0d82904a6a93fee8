"""Suites: what a user writes, what follows from it, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.recovery import recover
from pipeline.base.suite import load_suite, plan_file, suite_file, suite_folder
from pipeline.plan import check_plan, write_plan
from sentfold.errors import SentfoldError, SuiteError
from tests.checkout import ROOT, make_checkout, make_suite


def write_suite(content: dict[str, Any]) -> None:
    """The suite file of the suite `mine`."""
    path = suite_file("mine")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")


OWN = {
    "task": "similarity", "title": "t", "citation": "c", "licence": "l", "splits": {"all": 4},
    "corpora": {"own": ["all"]}, "folder": "suites/mine/own",
}  # fmt: skip
SMALL = {"suite": "mine", "source": "package", "corpora": ["lee"], "spaces": ["minilm"]}


def test_four_lines_are_a_suite_with_the_stages_of_one_space(checkout: Path) -> None:
    write_suite(SMALL)
    write_plan("mine")
    stages = load_suite("mine").stages
    assert {name for name, instances in stages.items() if instances} == {"download", "embed", "evaluate"}
    assert load_suite("mine").encoder_of("minilm") == "minilm"
    assert load_suite("mine").derived_spaces == ()
    assert (checkout / "suites/mine/dvc.yaml").resolve() == (checkout / "dvc.yaml").resolve()


def test_the_makers_follow_from_the_spaces() -> None:
    suite = make_suite(spaces=("minilm-lp", "minilm-npe", "wl-s3e", "minilm-pca-selected"), development="lee")
    assert set(suite.stages["eigensolve"]) == set(suite.stages["reconstruction_weights"]) == {"minilm-lp"}
    assert set(suite.stages["transform"]) == {"minilm-npe"}
    assert set(suite.stages["sweep"]) == set(suite.stages["selected"]) == {"minilm-pca-selected"}
    assert set(suite.stages["knn_graph"]) == {"minilm"}
    assert (suite.tokenizers, suite.word_vectors, suite.clusterings) == (("regex",), ("wordllama-pvn",), ("s3e",))
    assert (suite.encoders, suite.word_encoders) == (("minilm",), ("wl-s3e",))
    assert suite.maker_of("minilm-lp") == "lp" and suite.maker_of("wl-s3e") is None


def test_a_space_with_a_corpus_of_its_own_is_chosen_by_the_other_sweep_and_made_by_the_same_stage() -> None:
    names = ("minilm-pca-selected", "minilm-lp-selected")
    suite = make_suite(spaces=names, corpora=("lee", "simlex"), development="simlex", chosen_on={names[1]: "lee"})
    assert set(suite.stages["sweep"]) == {names[0]}
    assert {space: item["development"] for space, item in suite.stages["sweep_clusters"].items()} == {names[1]: "lee"}
    assert set(suite.stages["selected"]) == set(names)


def test_a_suite_without_encoders_over_words_has_no_stage_about_words() -> None:
    suite = make_suite(spaces=("minilm", "minilm-pca"))
    assert not any(suite.stages[name] for name in ("vocabulary", "word_counts", "word_vectors", "cluster_words"))
    assert suite.paths["words"] == "data/mine/corpora"


def test_the_encoder_of_a_space_is_the_longest_name_that_fits() -> None:
    names = ("mini", "mini-lp", "mini-large", "mini-large-lp")
    suite = make_suite({"encoders": {"mini": {}, "mini-large": {}}}, spaces=names)
    assert suite.encoder_of("mini-large-lp") == "mini-large"
    assert suite.encoder_of("mini-lp") == "mini"


def test_a_suite_that_extends_another_has_its_keys_but_for_its_own(checkout: Path) -> None:
    write_suite({"suite": "mine", "extends": "quick", "corpora": ["lee"], "development": "lee"})
    write_plan("mine")
    quick, mine = load_suite("quick"), load_suite("mine")
    assert mine.spaces == quick.spaces and mine.corpora == ("lee",)
    assert mine.parent == "suite.yaml"


def test_a_suite_that_extends_a_suite_that_extends_another_is_refused(checkout: Path) -> None:
    """The stage `plan` depends on two suite files, so that `dvc repro` would not notice an edit of the third."""
    write_suite({"suite": "parent", "extends": "quick"})
    suite_folder("mine").rename(suite_folder("parent"))
    write_plan("parent")
    write_suite({"suite": "mine", "extends": "parent"})
    with pytest.raises(SuiteError, match=r"(?s)extends another.*mine -> parent -> quick.*extend quick"):
        write_plan("mine")
    write_suite({**SMALL, "extends": "mine"})  # a circle
    with pytest.raises(SuiteError, match="mine -> mine -> mine"):
        write_plan("mine")


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"corpora": []}, ["'corpora' is empty"]),
        ({"spaces": []}, ["'spaces' is empty"]),
        ({"corpora": ["lee", "simlex", "lee"]}, ["'corpora'", "lee", "twice"]),
        ({"spaces": ["minilm", "other"]}, ["names a space that nothing makes", "other"]),
        ({"spaces": ["minilm", "minilm-nothing"]}, ["names a space that nothing makes", "minilm-nothing"]),
        ({"corpora": ["a/b"]}, ["corpora.0", "a/b", "single hyphens"]),
        ({"corpora": "lee"}, ["corpora", "tuple", "'lee'"]),
        ({"development": "stsb"}, ["'development' names 'stsb'", "no corpus of the suite"]),
        ({"chosen_on": {"minilm": "stsb"}}, ["'chosen_on' names 'minilm: stsb'", "no space and corpus"]),
        ({"chosen_on": {"minilm": "lee"}}, ["'minilm' has no parameters to choose", "chosen_on"]),
        ({"wordless": ["stsb"]}, ["'wordless' names stsb", "no corpora of the suite"]),
        ({"baseline": "minilm-pca"}, ["'baseline' names 'minilm-pca'", "no space of the suite"]),
        ({"sensitivities": ["wl-nothing"]}, ["no block word_encoders.wl-nothing"]),
        ({"source": "disk"}, ["source", "'package', 'mirror' or 'hub'", "disk"]),
        ({"skip_missing": "no"}, ["skip_missing", "boolean", "'no'"]),
        ({"blanks": {"sbert": "=HYPERLINK(A1)"}}, ["blanks.sbert", "=HYPERLINK(A1)"]),
        ({"suite": "other"}, ["does not name its own suite", "suite: mine", "suite: other"]),
        ({"colour": "blue"}, ["unknown key 'colour'", "skip_missing"]),
        ({"makers": {}}, ["unknown key 'makers'"]),
    ],
)
def test_a_bad_suite_is_refused_by_file_key_and_value_and_no_plan_is_written(
    checkout: Path, change: dict[str, Any], parts: list[str]
) -> None:
    write_suite({**SMALL, **change})
    with pytest.raises(SentfoldError) as caught:
        write_plan("mine")
    for part in ["suites/mine/suite.yaml", *parts]:
        assert part in str(caught.value)
    assert not plan_file("mine").exists()


@pytest.mark.parametrize("key", ["suite", "source", "corpora", "spaces"])
def test_a_suite_that_lacks_a_key_is_refused_by_that_key(checkout: Path, key: str) -> None:
    write_suite({name: value for name, value in SMALL.items() if name != key})
    with pytest.raises(SuiteError, match=key):
        write_plan("mine")


def test_a_suite_that_brings_stages_of_its_own_is_refused(checkout: Path) -> None:
    """A folder of a stranger below suites/ is data: `sentfold run` would execute the commands of its dvc.yaml."""
    write_suite(SMALL)
    write_plan("mine")
    link, shared = Path("suites/mine/dvc.yaml"), Path("dvc.yaml").read_bytes()
    for put, says in (
        (lambda: link.write_bytes(shared.replace(b"python -m", b"touch x; python -m", 1)), "stages of its own"),
        (lambda: link.symlink_to("elsewhere.yaml"), "a link to elsewhere"),
        (link.mkdir, "stages of its own"),
    ):
        link.unlink()
        put()
        for call, suite in product((write_plan, check_plan), ("mine", "quick")):  # DVC reads all suites
            with pytest.raises(SuiteError, match=says):
                call(suite)
    link.rmdir()
    link.write_bytes(shared)  # where links cannot be made
    check_plan("mine")
    for name in ("params.yaml", ".dvc"):  # DVC would take further instances of stages from the first
        place = Path("suites/mine", name)
        place.write_text("stages: {download: {'x; touch y #': {}}}")
        for call, suite in product((write_plan, check_plan), ("mine", "quick")):
            with pytest.raises(SuiteError, match="DVC would read"):
                call(suite)
        place.unlink()
    link.write_text("../../dvc.yaml")  # as git writes it where there are no links
    check_plan("quick")
    with pytest.raises(SuiteError, match="stages of its own"):
        check_plan("mine")
    link.write_bytes(shared)
    Path("suites/quick").mkdir()
    for call, suite in product((write_plan, check_plan), ("mine", "quick")):
        with pytest.raises(SuiteError, match="in the root of the checkout"):
            call(suite)


@pytest.mark.parametrize(
    "put",
    [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to("/"),
     lambda path: path.open("wb").truncate(1 << 40)],
)  # fmt: skip
def test_what_could_be_read_for_ever_in_the_folder_of_a_suite_is_refused(
    checkout: Path, put: Callable[[Path], object]
) -> None:
    write_suite(SMALL)
    write_plan("mine")
    (checkout / "suites/mine/own").mkdir()
    for folder in ("reports/mine", "data/mine/plan"):
        (checkout / folder).mkdir(parents=True)
    below = ("dvc.lock", "own/notes", "plan.yaml")
    for name in ("data/mine/plan/checked.txt", "reports/mine/summary.txt", *(f"suites/mine/{one}" for one in below)):
        place = checkout / name
        place.unlink(missing_ok=True)
        put(place)
        for call in (lambda: check_plan("mine"), lambda: write_plan("mine"), lambda: recover(checkout)):
            with pytest.raises(SentfoldError) as caught:
                call()
            assert name in caught.value.where
        place.unlink()


def test_an_unknown_suite_is_refused_with_those_that_exist(checkout: Path) -> None:
    write_suite(SMALL)
    with pytest.raises(SuiteError, match="quick, mine"):
        load_suite("yours")


def test_a_suite_without_a_plan_names_the_command_that_writes_one(checkout: Path) -> None:
    write_suite(SMALL)
    with pytest.raises(SuiteError, match="sentfold plan --suite mine"):
        load_suite("mine")


@pytest.mark.parametrize("suite", ["quick", "paper", "paper-mirror", "layers-mirror", "train-mirror"])
def test_the_committed_plans_follow_from_their_suite_files(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    check_plan(suite)


def test_a_suite_s_own_catalogue_has_no_name_of_the_shared_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_checkout(tmp_path / "checkout", corpora="wordsim")
    monkeypatch.chdir(root)
    check_plan("quick")
    Path("catalogue.yaml").write_text(yaml.safe_dump({"wordsim": {**OWN, "folder": "wordsim"}}), encoding="utf-8")
    with pytest.raises(SuiteError, match="names of the shared one"):
        check_plan("quick")


@pytest.mark.parametrize(
    "change",
    [
        {"folder": "ssh://root@127.0.0.1:1/x"},
        {"folder": "/proc/self"},
        {"folder": "suites/mine/own/../../other"},
        {
            "folder": None,
            "package": {"package": "tests", "folder": "data", "files": ["a.txt"], "reader": "rated_texts"},
        },
        {"hub": {"all": {"id": "a/b", "file": "c.csv"}}},
        {"splits": {"../../notes": 4}, "corpora": {"own": ["../../notes"]}},
    ],
    ids=str,
)
def test_a_suite_s_own_data_are_in_its_folder_alone(checkout: Path, change: dict[str, object]) -> None:
    """DVC hashes what an address or a device gives, and hands the user's ssh agent to whoever answers."""
    write_suite(SMALL)
    for block, sound in ((OWN, True), ({**OWN, **change}, False)):
        (checkout / "suites/mine/catalogue.yaml").write_text(yaml.safe_dump({"own": block}))
        for call in (write_plan, check_plan):
            if sound:
                call("mine")
            else:
                with pytest.raises(SuiteError, match="not in the folder of the suite"):
                    call("mine")


@pytest.mark.parametrize("name", ["reports/mine", "data/mine", "data/mine/corpora", "reports/quick", "suites/mine"])
def test_a_link_in_the_place_of_a_folder_that_a_run_writes_is_refused(checkout: Path, name: str) -> None:
    """git brings such a link; DVC removes what has the name of an output, wherever a link on the way leads."""
    write_suite(SMALL)
    write_plan("mine")
    (checkout / "reports").mkdir(exist_ok=True)
    place, documents = checkout / name, checkout / "documents"
    if place.is_dir():
        place.rename(documents)
    else:
        documents.mkdir()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(documents)
    suite = name.split("/")[1]
    for call in (lambda: check_plan(suite), lambda: write_plan(suite), lambda: recover(checkout)):
        with pytest.raises(SuiteError, match="something else than files"):
            call()


def test_a_link_into_the_cache_of_dvc_and_one_of_an_editor_are_sound(checkout: Path) -> None:
    write_suite(SMALL)
    write_plan("mine")
    cached = checkout / ".dvc/cache/files/md5/ab/cdef"
    for folder in (cached.parent, checkout / "data/mine/plan"):
        folder.mkdir(parents=True)
    cached.write_text("checked")
    (checkout / "data/mine/plan/checked.txt").symlink_to(cached)
    (checkout / "suites/mine/.#suite.yaml").symlink_to("user@host.123:456")  # Emacs edits the file
    check_plan("mine")
    recover(checkout)
