"""`sentfold new-suite`: a user's file becomes a suite that runs, traces and audits like any other."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from unicodedata import normalize

import networkx as nx
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from pipeline.base.artifacts import read_vectors
from pipeline.base.params import load_parameters, read_yaml
from pipeline.base.suite import load_suite
from pipeline.corpora.catalogue import find_corpus
from pipeline.lineage.stages import load_graph
from pipeline.lineage.trees import WorkingTree
from pipeline.new_suite import _joined_forms, find_encoder, write_suite
from sentfold.data.tables import DataError
from sentfold.decision.inputs import kin_of
from sentfold.errors import ParameterError, SentfoldError, SuiteError
from sentfold.measures.base.classifiers import LogisticSettings, predict_by_logistic
from sentfold.measures.registry import evaluate_parameters
from tests.checkout import ROOT, environment, make_checkout, repro
from tests.pipeline.test_hermetic import run_alone

THINGS, DOES = ("kettle", "printer", "lamp", "bicycle"), ("leaks", "stops", "rattles")
PAIRS = [
    (f"The {THINGS[i % 4]} {DOES[i % 3]}, ticket {i}.", f'My {THINGS[i % 3]} "{DOES[i % 2]}"\nsince {i}.', i % 7 / 2)
    for i in range(40)
]


def write_pairs(path: Path, rows: list[tuple[str, str, float]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("left", "right", "score"), *rows])
    return path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of params.yaml alone, which is the working directory."""
    (tmp_path / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- what is written ----------------------------------------------------------------------------------


def test_the_suite_holds_the_texts_and_scores_of_the_file_in_their_order(root: Path) -> None:
    write_suite("mine", write_pairs(root / "pairs.csv", PAIRS), "minilm", columns={})
    frame = pl.read_csv("suites/mine/mine/all.csv")
    assert frame.select("sentence1", "sentence2", "score").rows() == PAIRS
    assert find_corpus("mine", "mine").dataset.splits == {"all": 40}


def test_of_two_commands_that_take_one_name_at_once_one_is_refused_and_the_other_one_s_data_stay(root: Path) -> None:
    begin = Barrier(2)

    def write(score: float) -> str:
        rows = [(left, right, score + number % 3) for number, (left, right, _) in enumerate(PAIRS)]
        file = write_pairs(root / f"{score}.csv", rows)
        begin.wait()
        try:
            write_suite("mine", file, "minilm", columns={})
        except SuiteError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as threads:
        said = list(threads.map(write, (1.0, 5.0)))
    assert sorted(map(bool, said)) == [False, True] and "'mine' is taken" in "".join(said)
    least = pl.read_csv("suites/mine/mine/all.csv")["score"].min()
    assert least == (5.0 if said[0] else 1.0)


@pytest.mark.parametrize("name", ["08", "2e3"])
def test_names_that_look_like_numbers_are_names(root: Path, name: str) -> None:
    """Data can lie in a folder of a month."""
    (root / name).mkdir()
    write_pairs(root / name / "08.csv", PAIRS)
    write_suite(name, root / name / "08.csv", "minilm", columns={})
    suite = load_suite(name)
    assert (suite.suite, suite.corpora) == (name, (name,))
    assert find_corpus(name, name).dataset.splits == {"all": 40}


def test_each_part_of_labelled_texts_is_a_split_and_classes_are_named(root: Path) -> None:
    rows = [(f"text {i} of it", ("spam", "ham")[i % 2], ("train", "test")[i // 20]) for i in range(24)]
    pl.DataFrame(rows, schema=["text", "label", "split"], orient="row").write_csv("labels.csv")
    write_suite("mail", root / "labels.csv", "wl-sif", columns={})
    dataset = find_corpus("mail", "mail").dataset
    assert (dataset.task, dataset.splits) == ("classification", {"train": 20, "test": 4})
    assert "0 = ham, 1 = spam" in dataset.text
    for split, rows_of in (("train", rows[:20]), ("test", rows[20:])):
        frame = pl.read_csv(f"suites/mail/mail/{split}.csv")
        assert frame.rows() == [(text, int(label == "spam")) for text, label, _ in rows_of]


def test_a_text_that_is_labelled_twice_is_in_the_suite_once_and_in_the_test_part_if_that_has_it(root: Path) -> None:
    """Labels by a coin, four times each, scored 99.4: a copy was learnt where a text was judged."""
    texts = [f"a text of number {number}" for number in range(40)]
    again = [f"A text, of number {number}!" for number in range(10)]
    rows = [(text, "ab"[number % 2], "train") for number, text in enumerate(texts)]
    rows += [(text, "ab"[number % 2], "test") for number, text in enumerate(texts[:10])]
    rows += [(text, "ba"[number % 2], "train") for number, text in enumerate(again)]
    frame = pl.DataFrame(rows, schema=["text", "label", "split"], orient="row")
    frame.write_csv("labels.csv")
    _, notes = write_suite("mail", root / "labels.csv", "wl-sif", columns={})
    test, train = (pl.read_csv(f"suites/mail/mail/{split}.csv")["text"].to_list() for split in ("test", "train"))
    assert test == texts[:10] and train == texts[10:]
    assert any("20 texts are those of others" in note and "(10 have another label)" in note for note in notes)
    frame.filter(pl.col("text").is_in(texts[:10])).write_csv("same.csv")
    with pytest.raises(DataError, match="no text that the test part lacks"):
        write_suite("same", root / "same.csv", "wl-sif", columns={})


def test_pairs_that_all_share_one_text_are_resampled_by_texts_and_others_by_groups(root: Path) -> None:
    apart, hub = write_pairs(root / "a.csv", PAIRS), write_pairs(root / "b.csv", [("a hub", b, s) for _, b, s in PAIRS])
    write_suite("apart", apart, "minilm", columns={})
    write_suite("hub", hub, "minilm", columns={})
    assert find_corpus("apart", "apart").dataset.resample == "groups"
    assert find_corpus("hub", "hub").dataset.resample == "texts"


def test_a_pair_in_other_forms_of_its_texts_is_in_the_suite_once_and_no_text_is_changed(root: Path) -> None:
    """Scores by chance of each pair in four forms had intervals half as wide as they should be."""
    forms = [(right.upper(), f"{left} !", 6 - score) for left, right, score in PAIRS]
    prices = [("It costs 3.20 euros.", "It costs 320 euros.", 0.0), ("It costs 3.20 euros.", "Its price is 3.20.", 6.0)]
    rows = [*PAIRS, *prices, PAIRS[0]]  # a copy is in the group of what it is a copy of
    _, notes = write_suite("mine", write_pairs(root / "mine.csv", [*rows, *forms]), "minilm", columns={})
    frame = pl.read_csv("suites/mine/mine/all.csv")
    assert frame.select("sentence1", "sentence2", "score").rows() == rows
    assert any("40 pairs have texts of earlier ones but for case" in note for note in notes)


def test_pairs_of_one_text_in_several_forms_are_in_one_group_or_left_out(root: Path) -> None:
    """Each query in twenty forms made twenty groups; of scores by chance, 14 of 40 intervals left out 0."""
    forms = [form for n in range(4) for form in (f"query {n}", f"Query {n}!", f"QUERY {n}")]
    rows = [(form, f"answer {number}", 1.0 * number) for number, form in enumerate(forms)]
    linked = [(forms[3], "answer 0", 6.0), ("Answer 11.", "answer 12", 1.0), ("answer 12", "a new text", 2.0)]
    _, notes = write_suite("mine", write_pairs(root / "mine.csv", [*rows, *linked]), "minilm", columns={})
    kept = pl.read_csv("suites/mine/mine/all.csv")
    assert kept.select("sentence1", "sentence2", "score").rows() == [*rows[::3], *linked]
    assert any("8 pairs have texts of earlier ones" in note for note in notes)


def test_of_a_long_chain_of_forms_every_second_pair_stays_and_takes_no_time(root: Path) -> None:
    """479 KB of one took 230 s, as each conflict took a pass over all pairs."""
    chain = [(f"text {n}?", f"text {n + 1}", float(n % 7)) for n in range(12_000)]
    write_suite("mine", write_pairs(root / "mine.csv", chain), "minilm", columns={})
    assert pl.read_csv("suites/mine/mine/all.csv")["sentence1"].to_list() == [f"text {n}?" for n in range(0, 12_000, 2)]


@given(st.lists(st.tuples(st.sampled_from("abcdABCD"), st.sampled_from("efghEFGH")), min_size=1, max_size=20))
def test_no_two_groups_have_forms_of_one_text_and_what_is_left_out_would_make_two(pairs: list[tuple[str, str]]) -> None:
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    rows = np.array([[texts.index(text) for text in pair] for pair in pairs])
    kept = _joined_forms(rows, kin_of(np.arange(len(texts)), texts))

    def is_sound(numbers: list[int]) -> bool:
        graph = nx.Graph([pairs[number] for number in numbers])
        group_of = {text: group for group, part in enumerate(nx.connected_components(graph)) for text in part}
        return all(group_of.get(text.lower(), group) == group for text, group in group_of.items())

    assert is_sound(kept.tolist())
    for number in set(range(len(pairs))) - set(kept.tolist()):
        assert not is_sound([*(one for one in kept.tolist() if one < number), number])


def test_where_texts_are_drawn_each_has_one_form(root: Path) -> None:
    """Of scores by chance for texts in eight forms, 119 of 400 intervals left out the truth."""
    rows = [(f"query {a}", f"document {b}", float((a * b) % 7)) for a in range(8) for b in range(6)]
    forms = [(left, right.upper() if n % 5 == 0 else right, score) for n, (left, right, score) in enumerate(rows)]
    _, notes = write_suite("mine", write_pairs(root / "mine.csv", forms), "minilm", columns={})
    assert find_corpus("mine", "mine").dataset.resample == "texts"
    kept = pl.read_csv("suites/mine/mine/all.csv")
    texts = {*kept["sentence1"], *kept["sentence2"]}
    assert len({text.lower() for text in texts}) == len(texts)
    assert f"{48 - len(kept)} pairs have texts of earlier ones" in " ".join(notes) and len(kept) > 20
    star = [("one text", f"One text{'!' * n}", float(n)) for n in range(1, 10)]
    with pytest.raises(DataError, match="all pairs have a text in two forms"):
        write_suite("star", write_pairs(root / "star.csv", star), "minilm", columns={})


def test_labels_that_whole_words_make_one_text_are_one_text(root: Path) -> None:
    """The tokenizer reads the Turkish capital i as a small one, which folds of case tell apart."""
    rows = [(f"İzmir {n // 2}" if n % 2 else f"izmir {n // 2}", "ab"[n // 2 % 2]) for n in range(60)]
    with (root / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    write_suite("mine", root / "t.csv", "wl-average", columns={})
    assert pl.read_csv("suites/mine/mine/all.csv")["text"].to_list() == [f"izmir {n}" for n in range(30)]


def test_an_encoder_over_word_vectors_gets_words_that_it_does_not_cut(root: Path) -> None:
    """Letters and accents apart, as macOS writes them, were two words: 39.1 for 45.8. Hindi is refused."""
    rows = [(f"caf\u00e9 {left}", right, score) for left, right, score in PAIRS]
    apart = write_pairs(root / "apart.csv", [(normalize("NFD", left), right, score) for left, right, score in rows])
    for encoder, form in (("wl-average", "NFC"), ("minilm", "NFD")):
        write_suite(encoder, apart, encoder, columns={})
        written = pl.read_csv(f"suites/{encoder}/{encoder}/all.csv").select("sentence1", "sentence2", "score").rows()
        assert written == [(normalize(form, left), right, score) for left, right, score in rows]
    for word, encoder, message in (("हिन्दी", "wl-average", "cut at their marks"), ("слово", "wl-usif", "left out")):
        rows = [(f"{word} {left}", f"{word} {right}", score) for left, right, score in PAIRS]
        with pytest.raises(DataError, match=message):
            write_suite("other", write_pairs(root / "other.csv", rows), encoder, columns={})
        assert not Path("suites/other").exists()
    few = write_pairs(root / "few.csv", [("x\u0301 rises", "x falls", 1.0), *PAIRS])
    assert "1 words cut at a letter with a mark (tokens)" in write_suite("few", few, "wl-sif", columns={})[1]
    write_suite("few-minilm", few, "minilm", columns={})


def test_a_space_of_more_dimensions_than_sentences_is_left_out_and_named(root: Path) -> None:
    _, notes = write_suite("mine", write_pairs(root / "pairs.csv", PAIRS), "minilm", columns={})  # 80 texts
    assert load_suite("mine").spaces == ("minilm", "minilm-abtt")
    assert "too few for lp, pca, whitening" in notes[-1]


def test_a_manifold_that_reads_the_graph_is_left_out_where_the_graph_has_too_few_sentences(root: Path) -> None:
    """knn_graph.neighbors is 100, and the stage refuses a corpus of 80 sentences."""
    _, notes = write_suite(
        "mine", write_pairs(root / "pairs.csv", PAIRS), "minilm", columns={}, manifolds=("smooth", "abtt")
    )
    assert load_suite("mine").spaces == ("minilm", "minilm-abtt")
    assert "too few for smooth" in notes[-1]


@pytest.mark.parametrize("parts", [(), ("train", "test"), ("train", "dev", "test")])
@pytest.mark.parametrize("rare", [9, 10, 11, 12])
def test_a_class_is_refused_where_the_folds_of_evaluate_would_refuse_it(
    root: Path, rare: int, parts: tuple[str, ...]
) -> None:
    """Before anything is encoded: one of ten folds is left out, and ten are made of the others."""
    labels = np.array([0] * 40 + [1] * rare + [0, 1] * 2 * max(0, len(parts) - 1))
    splits = [*["all" if not parts else "train"] * (40 + rare), *(part for part in parts[1:] for _ in range(4))]
    texts = [f"text {i} of it" for i in range(len(labels))]
    frame = pl.DataFrame({"text": texts, "label": [f"class {i}" for i in labels], "split": splits})
    frame.drop(() if parts else "split").write_csv("labels.csv")
    x = np.random.default_rng(0).normal(size=(len(labels), 2)).astype(np.float32)
    settings = load_parameters(evaluate_parameters(), "evaluate")
    logistic = LogisticSettings(**settings.model_dump(include=set(LogisticSettings.model_fields)))
    try:
        predict_by_logistic(x, labels, splits, logistic)
    except ParameterError:
        with pytest.raises(DataError, match=f"class 1: {rare}"):
            write_suite("mine", root / "labels.csv", "wl-sif", columns={})
        assert not Path("suites").exists()
    else:
        write_suite("mine", root / "labels.csv", "wl-sif", columns={})


@pytest.mark.parametrize(
    ("name", "block"),
    [("minilm", "minilm"), ("all-MiniLM-L6-v2", "minilm"), ("wl-gem", "wl-gem")],
)
def test_an_encoder_is_a_block_of_params_or_the_name_of_the_model_behind_one(name: str, block: str) -> None:
    assert find_encoder(name, read_yaml(ROOT / "params.yaml")) == block


@pytest.mark.parametrize("name", ["", "v2", "L6-v2", "tokens", "wordllama"])
def test_the_end_of_a_name_and_that_of_word_vectors_are_no_encoder(name: str) -> None:
    """An empty variable of a shell made a suite of the first model; wordllama, the model, one of other tokens."""
    with pytest.raises(ParameterError, match="no encoder"):
        find_encoder(name, read_yaml(ROOT / "params.yaml"))


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"name": "lee"}, SuiteError, "(?s)taken.*choose another name$"),
        ({"name": "quick"}, SuiteError, "(?s)taken.*choose another name$"),
        ({"encoder": "no-such"}, ParameterError, "no encoder 'no-such'"),
        ({"manifolds": ("pac",)}, ParameterError, "manifolds.pac"),
        ({"columns": {"left": "nope"}}, DataError, "no column 'nope'"),
        ({"columns": {"text": "left"}}, DataError, "a suite cannot score"),
        ({"file": Path("absent.csv")}, DataError, "no such file"),
    ],
)
def test_what_cannot_be_a_suite_is_refused_and_nothing_is_written(
    root: Path, changes: dict[str, object], error: type[SentfoldError], says: str
) -> None:
    file = write_pairs(root / "pairs.csv", PAIRS)
    asked: dict[str, object] = {"name": "mine", "file": file, "encoder": "minilm", "columns": {}} | changes
    with pytest.raises(error, match=says):
        write_suite(**asked)  # type: ignore[arg-type]  # each case replaces one value
    assert sorted(path.name for path in root.iterdir()) == ["pairs.csv", "params.yaml"]


def test_a_suite_that_exists_is_not_written_over(root: Path) -> None:
    file = write_pairs(root / "pairs.csv", PAIRS)
    write_suite("mine", file, "minilm", columns={})
    before = Path("suites/mine/suite.yaml").read_bytes()
    with pytest.raises(SuiteError, match=r"(?s)taken.*or move suites/mine away$"):
        write_suite("mine", file, "wl-sif", columns={})
    assert Path("suites/mine/suite.yaml").read_bytes() == before


@pytest.mark.parametrize("folder", ["reports", "data"])
def test_a_folder_of_the_user_in_which_a_run_would_replace_files_is_refused(root: Path, folder: str) -> None:
    file, own = write_pairs(root / "pairs.csv", PAIRS), root / folder / "thesis"
    own.mkdir(parents=True)
    with pytest.raises(SuiteError, match=f"(?s)taken.*choose another name, or move {folder}/thesis away"):
        write_suite("thesis", file, "minilm", columns={})
    assert not (root / "suites").exists()


# --- the whole path ---------------------------------------------------------------------------------------


def sentfold(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "pipeline", *words]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(folder: Path) -> None:
    for words in (("add", "-A"), ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "state")):
        subprocess.run(["git", *words], cwd=folder, check=True)


@pytest.mark.slow  # a run of eight stages
def test_a_users_file_runs_traces_and_audits_and_only_its_own_suite_depends_on_it(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout", corpora="wordsim, happy")
    commit(checkout)
    write_pairs(checkout / "pairs.csv", PAIRS)
    sentfold(checkout, "new-suite", "mine", "pairs.csv", "--encoder", "all-MiniLM-L6-v2")
    changed = subprocess.run(["git", "status", "--short"], cwd=checkout, capture_output=True, text=True, check=True)
    assert sorted(changed.stdout.split()) == ["??", "??", "pairs.csv", "suites/"]  # no tracked file is edited
    repro(checkout, "suites/mine/dvc.yaml")

    scores = json.loads((checkout / "reports/mine/scores/minilm.json").read_text())
    printed = scores["corpora"]["mine"]["scores"]["spearman.all.cosine"]["value"]
    x = read_vectors(checkout / "data/mine/spaces/minilm/mine.parquet").astype(np.float64)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    texts = list(dict.fromkeys(text for left, right, _ in PAIRS for text in (left, right)))
    cosines = [unit[texts.index(left)] @ unit[texts.index(right)] for left, right, _ in PAIRS]
    # Printed scores have two decimals; cosines of float32 rows that differ by rounding move no rank here.
    assert printed == pytest.approx(100 * spearmanr(cosines, [score for *_, score in PAIRS]).statistic, abs=0.01)

    assert " uncommitted" in sentfold(checkout, "audit", "--suite", "mine").splitlines()[1]
    commit(checkout)
    assert sentfold(checkout, "audit", "--suite", "mine").splitlines()[1].endswith(" verified, 0 wrong")
    table = "reports/mine/tables/similarity.csv"
    trace = sentfold(checkout, "trace", table, "--row", "minilm", "--column", "mine spearman.all.cosine")
    assert "suites/mine/mine/all.csv" in trace
    graph = load_graph(WorkingTree(checkout), "mine")
    for name in ("plan", "download@mine"):  # as `audit --recompute all` does
        run_alone(checkout, graph, graph.stages[name], tmp_path / name)

    assert repro(checkout, "suites/mine/dvc.yaml") == set()
    file = checkout / "suites/mine/mine/all.csv"
    file.write_text(file.read_text().replace(",0.5,", ",1.0,", 1))
    assert "suites/mine/dvc.yaml:download@mine" in repro(checkout, "suites/mine/dvc.yaml")


def test_a_grid_is_refused_as_one_file_has_nothing_to_choose_its_parameters_on(root: Path) -> None:
    file = write_pairs(root / "pairs.csv", PAIRS)
    with pytest.raises(ParameterError, match=r"(?s)a grid of parameters.*pca-selected"):
        write_suite("mine", file, "wl-average", columns={}, manifolds=("abtt", "pca-selected"))
    assert not Path("suites/mine").exists()


def test_labels_of_which_copies_leave_one_class_are_refused(root: Path) -> None:
    rows = [(f"text {n}" if kind == "a" else f"TEXT {n}!", kind) for kind in "ab" for n in range(40)]
    with (root / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    with pytest.raises(DataError, match=r"(?s)of one class.*40 texts of a"):
        write_suite("mine", root / "labels.csv", "wl-sif", columns={})
