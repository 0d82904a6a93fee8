"""The command line as a user meets it: what goes wrong is said in a few lines, and nothing is left behind."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

from pipeline.__main__ import app
from pipeline.base.artifacts import corpus_path, fixed_lists, space_path, weights_path, write_table, write_vectors
from tests.checkout import copy_code, write_plans

ROOT = Path(__file__).parents[1]
PROXIES = {name for name in os.environ if name.lower().endswith("_proxy")}
UNSET = {"SENTFOLD_MIRROR", "HF_ENDPOINT", "HF_HUB_OFFLINE", "DVC_ROOT", "COLUMNS", *PROXIES}


@dataclass
class Checkout:
    """A copy of what a user has, and a way to run commands in it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, file_limit: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run `python -m pipeline ...` here; no file that it writes may exceed `file_limit` bytes."""

        def limit() -> None:
            if file_limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        clean = {name: value for name, value in os.environ.items() if name not in UNSET}
        home = str(self.folder.parent / "home")
        return subprocess.run(
            [sys.executable, "-m", "pipeline", *arguments],
            cwd=self.folder,
            env={**clean, "PYTHONDONTWRITEBYTECODE": "1", "HOME": home, "HF_HOME": home, **self.environment},
            capture_output=True,
            text=True,
            timeout=300,  # machines may be busy
            check=False,
            preexec_fn=limit,  # setrlimit alone is safe between fork and exec
        )

    def files(self) -> dict[str, bytes]:
        """Every file by its path, with its content; not the manifest, to which every stage adds a line."""
        found = {str(path.relative_to(self.folder)): path for path in self.folder.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if not name.startswith(".sentfold/")}

    def change(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def add_suite(self, name: str, corpus: str) -> None:
        """A suite of one corpus, so that a stage needs one artifact and not five."""
        content = yaml.safe_load((self.folder / "suite.yaml").read_text(encoding="utf-8"))
        file = f"suites/{name}/suite.yaml"
        (self.folder / file).parent.mkdir()
        content |= {"suite": name, "corpora": [corpus], "development": corpus}
        (self.folder / file).write_text(yaml.safe_dump(content), encoding="utf-8")
        write_plans(self.folder, name)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Checkout]:
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("params.yaml", "suite.yaml", "plan.yaml", "dvc.yaml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "suites", folder / "suites", symlinks=True)
    copy_code(folder)
    # Artifacts are written from inside, as a stage would.
    monkeypatch.chdir(folder)
    yield Checkout(folder)


@pytest.fixture
def closed_port() -> Iterator[str]:
    """The address of a port that is taken but answers nobody."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"


def write_space(suite: str, corpus: str, rows: int) -> Path:
    path = space_path(suite, "minilm", corpus)
    x = np.random.default_rng(rows).standard_normal((rows, 6), dtype=np.float32)
    write_vectors(path, x, parameters={}, notes={"sentences": rows, "task": "similarity"})
    return path


def write_sentences(suite: str, corpus: str) -> Path:
    path = corpus_path(suite, corpus, "sentences")
    texts = pa.table({"text": ["The kettle boils.", "Snow fell."]})
    write_table(path, texts, kind="sentences", parameters={}, notes={"task": "similarity"})
    return path


def write_ring_weights(suite: str, corpus: str, rows: int) -> Path:
    """Every sentence is the mean of its two neighbours on a ring."""
    path = weights_path(suite, "minilm-lp", corpus)
    number = np.arange(rows)
    neighbors = np.column_stack([(number - 1) % rows, (number + 1) % rows]).astype(np.int32)
    columns = {"neighbor": fixed_lists(neighbors), "weight": fixed_lists(np.full((rows, 2), 0.5))}
    write_table(path, pa.table(columns), kind="weights", parameters={})
    return path


# --- what goes wrong --------------------------------------------------------------------------------

CASES: dict[str, Callable[[Checkout], tuple[list[str], list[str]]]] = {}
SLOW = {  # they reach the user on the way of the other cases
    "a_mirror_that_is_no_folder", "a_mirror_without_the_corpus", "a_damaged_artifact",
    "more_components_than_a_graph_has", "more_components_than_dimensions", "an_unknown_encoder",
    "a_model_of_other_bytes", "an_unknown_group_in_params", "a_parameter_out_of_range", "no_params",
    "an_unknown_corpus", "a_misspelled_corpus_of_a_suite", "a_suite_whose_corpus_has_a_slash",
    "a_check_of_an_unknown_suite", "an_unknown_space", "a_misspelled_space",
    "a_check_of_a_mirror_that_is_no_folder",
}  # fmt: skip
LIMITS = {"a_full_disk": 4096}
STARTED = {"a_report_without_scores": "report: compares 17 spaces on 5 corpora\n"}  # what it prints before it fails


def case(prepare: Callable[[Checkout], tuple[list[str], list[str]]]) -> None:
    """Each case spoils the checkout, and returns the command to run and what the message must name."""
    CASES[prepare.__name__] = prepare


@case
def no_mirror(_: Checkout) -> tuple[list[str], list[str]]:
    return ["download", "stsb", "--suite", "paper-mirror"], ["SENTFOLD_MIRROR", "unset"]


@case
def a_mirror_that_is_no_folder(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.environment["SENTFOLD_MIRROR"] = "no/such/folder"
    return ["download", "stsb", "--suite", "paper-mirror"], ["SENTFOLD_MIRROR", "no/such/folder"]


@case
def a_mirror_without_the_corpus(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.environment["SENTFOLD_MIRROR"] = "suites"
    command = ["download", "stsb", "--suite", "paper-mirror", "--no-skip-missing"]
    return command, ["stsb/test.parquet", "skip_missing"]


@case
def a_truncated_artifact(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.add_suite("mine", "lee")
    path = write_space("mine", "lee", 100)
    path.write_bytes(path.read_bytes()[:-100])
    return ["knn_graph", "minilm", "--suite", "mine"], [str(path), "dvc repro"]


@case
def a_damaged_artifact(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.add_suite("mine", "lee")
    path = write_space("mine", "lee", 100)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    return ["transform", "minilm-pca", "--suite", "mine"], [str(path), "damaged", "dvc repro"]


@case
def more_neighbours_than_sentences(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.add_suite("mine", "lee")
    write_space("mine", "lee", 60)
    return ["knn_graph", "minilm", "--suite", "mine"], ["neighbors", "k < n = 60", "k = 100"]


@case
def more_components_than_a_graph_has(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.add_suite("mine", "lee")
    write_ring_weights("mine", "lee", 20)
    return ["eigensolve", "minilm-lp", "--suite", "mine"], ["components", "p <= n - 2 = 18", "p = 128"]


@case
def more_components_than_dimensions(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.add_suite("mine", "lee")
    write_space("mine", "lee", 100)
    return ["transform", "minilm-pca", "--suite", "mine"], ["components", "min(n, d) = 6", "p = 128"]


@case
def an_unknown_encoder(_: Checkout) -> tuple[list[str], list[str]]:
    write_sentences("quick", "lee")
    return ["embed", "lee", "--encoder", "maxilm"], ["encoders.maxilm", "minilm, sbert-base-nli"]


@case
def an_unpinned_encoder(_: Checkout) -> tuple[list[str], list[str]]:
    write_sentences("paper", "stsb")
    command = ["embed", "stsb", "--encoder", "sbert-base-nli", "--suite", "paper"]
    return command, ["encoders.sbert-base-nli.revision", "pin-encoder sbert-base-nli"]


@case
def a_model_of_other_bytes(checkout: Checkout) -> tuple[list[str], list[str]]:
    write_sentences("quick", "lee")
    checkout.change("params.yaml", "53aa51172d142c89", "0" * 16)
    return ["embed", "lee", "--encoder", "minilm"], ["model.safetensors", "53aa51172d142c89", "encoders.minilm.sha256"]


@case
def an_unknown_key_in_params(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.change("params.yaml", "  metric: euclidean", "  metrik: euclidean")
    return ["knn_graph", "minilm"], ["knn_graph.metrik", "metric"]


@case
def an_unknown_group_in_params(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.change("params.yaml", "\nknn_graph:", "\nknn-graph:")
    return ["plan", "--check"], ["knn-graph", "knn_graph"]


@case
def a_parameter_out_of_range(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.change("params.yaml", "resamples: 2000", "resamples: 20")
    return ["check"], ["evaluate.resamples", "100", "20"]


@case
def params_that_are_no_yaml(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.change("params.yaml", "\nembed:", "\nembed: [")
    return ["embed", "lee", "--encoder", "minilm"], ["params.yaml", "YAML", "line"]


@case
def no_params(checkout: Checkout) -> tuple[list[str], list[str]]:
    (checkout.folder / "params.yaml").unlink()
    return ["knn_graph", "minilm"], ["params.yaml is missing", "root"]


@case
def an_unknown_corpus(_: Checkout) -> tuple[list[str], list[str]]:
    return ["download", "stsbench"], ["stsbench", "catalogue", "stsb"]


@case
def a_misspelled_corpus(_: Checkout) -> tuple[list[str], list[str]]:
    return ["download", "worsim"], ["there is no corpus 'worsim'", "did you mean wordsim?"]


@case
def a_misspelled_corpus_of_a_suite(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.change("suite.yaml", "corpora: [lee,", "corpora: [leee,")
    return ["plan"], ["there is no corpus 'leee'", "did you mean lee?"]


@case
def a_corpus_with_a_slash(_: Checkout) -> tuple[list[str], list[str]]:
    return ["download", "../lee"], ["../lee"]


@case
def a_suite_whose_corpus_has_a_slash(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.change("suite.yaml", "corpora: [lee,", "corpora: [news/lee,")
    return ["plan"], ["suite.yaml", "news/lee", "a-z"]


@case
def an_unknown_suite(_: Checkout) -> tuple[list[str], list[str]]:
    return ["evaluate", "minilm", "--suite", "papers"], ["papers", "paper-mirror", "quick", "did you mean paper?"]


@case
def a_check_of_an_unknown_suite(_: Checkout) -> tuple[list[str], list[str]]:
    return ["check", "--suite", "qick"], ["there is no suite 'qick'", "did you mean quick?"]


@case
def an_unknown_space(_: Checkout) -> tuple[list[str], list[str]]:
    return ["evaluate", "minilm-isomap"], ["minilm-isomap"]


@case
def a_misspelled_space(_: Checkout) -> tuple[list[str], list[str]]:
    return ["evaluate", "minilm-ppca"], ["minilm-ppca", "did you mean minilm-pca?"]


@case
def a_misspelled_claim(checkout: Checkout) -> tuple[list[str], list[str]]:
    shutil.copytree(ROOT / "reports/quick", checkout.folder / "reports/quick")
    return ["claims", "lase-fastr"], ["there is no claim 'lase-fastr'", "did you mean lase-faster?"]


@case
def a_check_of_a_mirror_that_is_no_folder(checkout: Checkout) -> tuple[list[str], list[str]]:
    checkout.environment["SENTFOLD_MIRROR"] = "no/such/folder"
    return ["check", "--suite", "paper-mirror"], ["SENTFOLD_MIRROR", "no/such/folder", "set SENTFOLD_MIRROR=FOLDER"]


@case
def no_report_yet(_: Checkout) -> tuple[list[str], list[str]]:
    return ["show", "--suite", "paper"], ["paper", "sentfold run"]


@case
def a_report_without_scores(_: Checkout) -> tuple[list[str], list[str]]:
    return ["report"], ["minilm"]


@case
def a_full_disk(_: Checkout) -> tuple[list[str], list[str]]:
    return ["download", "simlex"], ["data/quick/corpora/simlex/sentences.parquet", "EFBIG", "free space"]


@case
def a_data_path_that_is_a_file(checkout: Checkout) -> tuple[list[str], list[str]]:
    (checkout.folder / "data").write_text("a file stands where a folder should\n")
    return ["download", "simlex"], ["data/quick/corpora/simlex/sentences.parquet", "cannot write"]


def check_refusal(
    checkout: Checkout,
    command: list[str],
    named: list[str],
    file_limit: int | None = None,
    code: int = 2,
    printed: str = "",
) -> None:
    before = checkout.files()
    done = checkout.run(*command, file_limit=file_limit)
    assert done.stderr.startswith("error: "), done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 8
    for name in named:
        assert name in done.stderr, f"{name!r} is not in:\n{done.stderr}"
    assert str(checkout.folder) not in done.stderr
    assert (done.returncode, done.stdout) == (code, printed)
    assert checkout.files() == before


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES])
def test_a_bad_input_is_refused_in_a_few_lines_and_leaves_no_file(checkout: Checkout, name: str) -> None:
    command, named = CASES[name](checkout)
    check_refusal(checkout, command, named, file_limit=LIMITS.get(name), printed=STARTED.get(name, ""))


@pytest.mark.slow
def test_without_a_network_the_place_that_was_asked_is_named(checkout: Checkout, closed_port: str) -> None:
    checkout.environment["HF_ENDPOINT"] = closed_port
    named = ["stsb", closed_port.removeprefix("http://")]
    check_refusal(checkout, ["download", "stsb", "--suite", "paper"], named, code=os.EX_TEMPFAIL)


def test_without_a_network_an_encoder_cannot_be_pinned(checkout: Checkout, closed_port: str) -> None:
    checkout.environment["HF_ENDPOINT"] = closed_port
    command = ["pin-encoder", "sbert-base-nli"]
    check_refusal(checkout, command, ["sbert-base-nli", "sentence-transformers/bert-base-nli-mean-tokens", "network"])


@pytest.mark.slow
def test_the_folder_of_a_bare_transformer_is_pinned_by_the_sha256_of_its_files(checkout: Checkout) -> None:
    folder = checkout.folder / "transformer"  # as Hugging Face saves a model: without modules.json
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        (folder / name).write_text(name)
    checkout.change("params.yaml", "\nembed:", f"\n  bare:\n    folder: {folder}\nembed:")
    done = checkout.run("pin-encoder", "bare")
    pinned = yaml.safe_load(done.stdout)["sha256"]
    assert pinned == {name: hashlib.sha256(name.encode()).hexdigest() for name in pinned}
    assert set(pinned) == {"config.json", "model.safetensors", "vocab.txt"}
    for place in ("config.json", "0_Transformer/config.json"):  # also where modules.json leads to the transformer
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_text('{"transformers_weights": "adapter_model.bin"}')
        refused = checkout.run("pin-encoder", "bare")
        assert refused.returncode == 2 and f"{place}, transformers_weights" in refused.stderr
        (folder / place).unlink()


@pytest.mark.slow
def test_without_a_network_a_pinned_encoder_cannot_be_fetched(checkout: Checkout, closed_port: str) -> None:
    write_sentences("paper", "stsb")
    hub = "    hub: sentence-transformers/bert-base-nli-mean-tokens\n"
    checkout.change("params.yaml", f"{hub}    revision: null", f"{hub}    revision: {'abcdef0123' * 4}")
    checkout.environment["HF_ENDPOINT"] = closed_port
    before = checkout.files()
    done = checkout.run("embed", "stsb", "--encoder", "sbert-base-nli", "--suite", "paper")
    # The hub's client says first that it tries again, five times over some 23 seconds.
    refusal = done.stderr[done.stderr.index("error: ") :]
    assert f"bert-base-nli-mean-tokens@{'abcdef0123' * 4}" in refusal
    assert "network" in refusal
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (os.EX_TEMPFAIL, "")
    assert checkout.files() == before


@pytest.mark.slow
def test_outside_a_checkout_the_user_is_told_where_to_go(checkout: Checkout) -> None:
    for path in ("params.yaml", "suite.yaml"):
        (checkout.folder / path).unlink()
    check_refusal(checkout, ["knn_graph", "minilm"], ["params.yaml", "root of a sentfold checkout"])


# --- what goes right --------------------------------------------------------------------------------

PURPOSES = {
    "download": "distinct sentences",
    "plan": "plan.yaml",
    "new-suite": "a file of yours",
    "vocabulary": "tokenizer",
    "word_counts": "unigram",
    "word_vectors": "vocabularies",
    "cluster_words": "controls",
    "embed": "sentence transformer",
    "pool": "one forward pass",
    "pooled": "one pooling",
    "postprocess": "fitted",
    "train": "last checkpoint",
    "embed_trained": "trained encoder",
    "encode": "word vectors",
    "knn_graph": "nearest neighbours",
    "reconstruction_weights": "weights",
    "eigensolve": "eigenvectors",
    "transform": "space",
    "sweep": "development corpus",
    "sweep_clusters": "k-means",
    "selected": "parameters",
    "sensitivity": "one at a time",
    "search": "way to search",
    "evaluate": "Score",
    "report": "tables",
    "show": "table",
    "claims": "verdict",
    "check": "params.yaml",
    "catalogue": "corpus",
    "pin-encoder": "commit",
    "fetch-vectors": "word vectors",
    "audit": "Exit 1",
    "trace": "one printed number",
    "diff": "two commits",
    "crate": "RO-Crate",
}


@pytest.mark.slow
def test_every_command_is_listed_with_its_purpose(checkout: Checkout) -> None:
    done = checkout.run("--help")
    listing = done.stdout.partition("Commands:")[2]
    listed = re.findall(r"^  (\S+)  ", listing, re.MULTILINE)
    assert (done.returncode, set(listed)) == (0, set(PURPOSES))
    stages = [name for name in listed if name in yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]]
    own = [name for name in listed if name == "plan" or name not in stages]  # `plan` is also a user's command
    assert listed == [*own, *(name for name in stages if name != "plan")], "stages come last"


@pytest.mark.parametrize("command", PURPOSES)
def test_the_help_of_a_command_says_its_purpose(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"])  # in this process: one for each command takes a minute
    assert (done.exit_code, done.stderr) == (0, "")
    assert PURPOSES[command].replace(" ", "") in "".join(done.stdout.split())  # a line may end at a hyphen


@pytest.mark.slow
def test_a_sound_checkout_passes_the_check(checkout: Checkout) -> None:
    before = checkout.files()
    done = checkout.run("check")
    assert done.returncode == 0, done.stderr
    # quick chooses parameters on a corpus that it also scores, and says so.
    assert [line.split()[:2] for line in done.stderr.splitlines()] == [["warning:", "wordsim"]]
    assert "'quick'" in done.stdout
    assert checkout.files() == before


@pytest.mark.slow
def test_a_download_says_what_it_wrote_and_writes_only_that(checkout: Checkout) -> None:
    before = set(checkout.files())
    done = checkout.run("download", "wordsim")
    assert (done.returncode, done.stderr) == (0, "")
    assert "353 items" in done.stdout
    new = set(checkout.files()) - before
    assert new == {f"data/quick/corpora/wordsim/{part}.parquet" for part in ("sentences", "items")}


@pytest.mark.slow
def test_an_evaluation_says_what_it_begins_and_what_it_wrote(checkout: Checkout) -> None:
    checkout.add_suite("mine", "lee")
    write_space("mine", "lee", 200)
    rows = np.arange(100)
    items = {"row1": rows, "row2": rows + 100, "score": rows / 20, "subset": [""] * 100, "split": ["all"] * 100}
    about = {"corpus": "lee", "resample": "items", "sentences": 200, "task": "similarity", "text": "made up"}
    write_table(
        corpus_path("mine", "lee", "items"), pa.table(items), kind="items.similarity", parameters={}, notes=about
    )
    done = checkout.run("evaluate", "minilm", "--suite", "mine")
    assert done.returncode == 0, done.stderr
    begun, ended = done.stdout.splitlines()
    assert begun == "minilm: is scored on lee"
    for written in ("reports/mine/scores/minilm.json", "data/mine/resamples/minilm"):
        assert written in ended and (checkout.folder / written).exists()


@pytest.mark.slow
def test_the_file_of_a_new_suite_is_looked_for_in_the_users_folder(checkout: Checkout) -> None:
    folder = checkout.folder / "tables/own"
    folder.mkdir(parents=True)
    rows = "".join(f"text number {i},{'ab'[i % 2]}\n" for i in range(200))
    (folder / "texts.csv").write_text(f"text,label\n{rows}")
    checkout.environment["SENTFOLD_FOLDER"] = "tables/own"  # as `sentfold` sets it (tests/cli/test_main.py)
    done = checkout.run("new-suite", "mine", "texts.csv", "--encoder", "minilm")
    assert done.returncode == 0, done.stderr
    assert (checkout.folder / "suites/mine/mine/all.csv").is_file()


def test_the_small_commands_load_none_of_the_large_libraries(checkout: Checkout) -> None:
    # A command that waits seconds for libraries it does not use is a command that nobody asks for help.
    code = (
        "import json, runpy, sys\n"
        "sys.argv = ['sentfold', 'catalogue']\n"
        "try:\n    runpy.run_module('pipeline', run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout.folder, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert not loaded & {"torch", "transformers", "sentence_transformers", "prefect", "dvc", "sklearn", "matplotlib"}
