"""`sentfold threshold` and `sentfold compress` on files: same bytes, same record; errors name the option."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from sentfold.cli.inputs import refuse_target
from sentfold.data.tables import DataError
from sentfold.decision.encoders import PAGE_START
from sentfold.decision.page import PAGE
from sentfold.decision.spaces import ARRAYS, SETTINGS, Unchanged, save_space
from sentfold.errors import ArtifactError, EncoderError, ParameterError
from tests.cli.test_main import sentfold


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 6, 300)
    left = rng.normal(size=(300, 16))
    right = grades[:, None] / 5 * left + rng.normal(size=(300, 16))
    np.save(tmp_path / "v.npy", np.concatenate([left, right]).astype(np.float32))
    rows = [f"text {row} on the left\ttext {row} on the right\t{grade}" for row, grade in enumerate(grades)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    return tmp_path


def test_a_threshold_says_that_it_takes_the_pairs_of_all_parts(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentfold.cli.threshold import command

    monkeypatch.chdir(folder)
    lines = Path("pairs.tsv").read_text().splitlines()
    parts = [f"{line}\t{'train' if row % 2 else 'test'}" for row, line in enumerate(lines[1:])]
    Path("parts.tsv").write_text("\n".join([f"{lines[0]}\tsplit", *parts]) + "\n")
    for name, said in (("pairs.tsv", False), ("parts.tsv", True)):
        command(Path(name), vectors=Path("v.npy"), match_from=4.0)
        assert ("all pairs are taken" in capsys.readouterr().err) is said


@pytest.mark.slow
def test_the_same_files_give_the_same_record_and_it_names_their_hashes(folder: Path) -> None:
    for name in ("first", "second"):
        words = ("pairs.tsv", "--vectors", "v.npy", "--to")
        done = sentfold("threshold", *words, f"{name}.json", "--match-from", "4", folder=folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("From cosine 0.")
        done = sentfold("compress", *words, name, folder=folder)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) <= 12
    assert (folder / "first.json").read_bytes() == (folder / "second.json").read_bytes()
    assert (folder / "first/verdict.json").read_bytes() == (folder / "second/verdict.json").read_bytes()
    assert set(json.loads((folder / "first/verdict.json").read_text())["inputs"]) == {"pairs.tsv", "v.npy"}


@pytest.mark.slow
def test_graded_scores_without_a_border_are_refused_before_anything_is_encoded(folder: Path) -> None:
    done = sentfold("threshold", "pairs.tsv", "--encoder", "no-such-model", "--to", "out.json", folder=folder)
    assert done.returncode == 2
    assert "--match-from" in done.stderr
    assert not (folder / "out.json").exists()


@pytest.mark.slow
def test_pairs_that_all_share_texts_are_refused_before_anything_is_encoded(tmp_path: Path) -> None:
    rows = [f"{row},{row + 1},{row % 2}" for row in range(60)] + ["60,999999999999999999,1"]
    (tmp_path / "p.csv").write_text("\n".join(["row1,row2,score", *rows]) + "\n")
    done = sentfold("threshold", "p.csv", "--encoder", "no-such-model", folder=tmp_path)
    assert done.returncode == 2
    assert "too few pairs are independent" in done.stderr


TARGETS = {
    "the input": ("pairs.tsv", "would be lost"),
    "the vectors": ("v.npy", "would be lost"),
    "a folder": (".", "the target is not a file"),
    "a pipe": ("pipe", "a device or a pipe"),
}


@pytest.mark.parametrize("case", TARGETS)
def test_a_target_that_would_replace_an_input_or_a_device_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """As root, `--to /dev/null` replaced the device by a file."""
    from sentfold.cli import encode, threshold

    monkeypatch.chdir(folder)
    os.mkfifo("pipe")
    name, said = TARGETS[case]
    before = sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir())
    with pytest.raises(ParameterError) as refused:
        threshold.command(Path("pairs.tsv"), vectors=Path("v.npy"), match_from=4.0, to=Path(name))
    assert said in str(refused.value)
    if case != "the vectors":
        with pytest.raises(ParameterError):
            encode.command("average", Path("pairs.tsv"), Path(name))
    assert sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir()) == before


@pytest.mark.parametrize("target", ["", "new", "new/file.json"])
def test_a_target_in_a_folder_that_cannot_be_written_is_refused_before_anything_is_computed(target: str) -> None:
    """Root may write everywhere, so a process of another user asks, in a folder that this user may enter."""
    with tempfile.TemporaryDirectory() as outer:
        Path(outer).chmod(0o755)
        closed = Path(outer) / "closed"
        closed.mkdir(mode=0o555)
        if (child := os.fork()) == 0:
            refused = False
            with suppress(BaseException):
                if os.getuid() == 0:
                    os.setuid(65534)
                try:
                    refuse_target(closed / target, folder="file" not in target)
                except ParameterError as error:
                    refused = "cannot be written" in str(error)
            os._exit(0 if refused else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_folder_is_not_written_in_the_place_of_a_file_or_into_the_data(folder: Path) -> None:
    refuse_target(None, folder)
    refuse_target(folder / "new", folder, folder=True)
    refuse_target(folder, folder / "pairs.tsv", folder=True)
    with pytest.raises(ParameterError, match="not a folder"):
        refuse_target(folder / "v.npy", folder / "pairs.tsv", folder=True)
    with pytest.raises(ParameterError, match="would be lost"):
        refuse_target(folder, folder, folder=True)
    with pytest.raises(ParameterError, match="would be lost"):
        refuse_target(folder / "v.npy", folder)
    (folder / "verdict").mkdir()
    (folder / "verdict/verdict.json").write_text('{"verdict": "", "metric": "", "items": 0, "candidates": []}')
    refuse_target(folder / "verdict", folder, folder=True)  # a second decision on the data in the folder


def test_a_link_called_verdict_in_a_folder_of_data_leads_to_no_decision_elsewhere(tmp_path: Path) -> None:
    """An archive keeps links: `verdict -> ../verdict` had the user's own decision replaced."""
    for name in ("verdict", "data"):
        (tmp_path / name).mkdir()
    (tmp_path / "data/verdict").symlink_to("../verdict")
    with pytest.raises(ParameterError, match="is a link"):
        refuse_target(tmp_path / "data/verdict", tmp_path / "pairs.tsv", folder=True)
    refuse_target(tmp_path / "verdict", tmp_path / "pairs.tsv", folder=True)


def test_a_file_whose_name_json_cannot_hold_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    from sentfold.cli.inputs import read_inputs

    name = os.fsdecode(b"p\xff.csv")
    (tmp_path / name).write_text("left,right,score\na,b,1\nc,d,0\n")
    for source in (tmp_path / name, tmp_path):
        with pytest.raises(DataError, match="not UTF-8") as refused:
            read_inputs(source, Path("v.npy"), None, None, "")
        assert refused.value.where.endswith(r"p\udcff.csv")


def test_pairs_that_are_left_out_because_all_share_a_text_are_counted_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentfold.cli.compress import command

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 8))
    np.save("v.npy", x.astype(np.float32))
    pairs = [f"{row},{row + 1},{x[row] @ x[row + 1]:.1f}" for row in range(399)]
    Path("pairs.csv").write_text("\n".join(["row1,row2,score", *pairs]) + "\n")
    command(Path("pairs.csv"), vectors=Path("v.npy"))
    assert "of 399 pairs, which cross two folds, are left out" in capsys.readouterr().err


def test_a_table_is_encoded_with_its_texts_which_decide_matches(tmp_path: Path) -> None:
    from sentfold.cli.encode import command
    from sentfold.cli.inputs import read_inputs

    words = {"word": ["a", "b", "c"], "vector": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]}
    pq.write_table(pa.table(words), tmp_path / "words.parquet")
    (tmp_path / "pairs.csv").write_text("left,right,score\na b,c,1\n,b,0\nc,a b,2\n")
    command("average", tmp_path / "pairs.csv", tmp_path / "v.parquet", words=str(tmp_path / "words.parquet"))
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.column("text").to_pylist() == ["a b", "c", "c", "b", "a b"]
    read = read_inputs(tmp_path / "pairs.csv", tmp_path / "v.parquet", None, None, "")
    assert read.data.texts == ("a b", "c")
    assert read.vectors[:2].tolist() == [[0.5, 0.5], [1.0, 1.0]]


@pytest.mark.parametrize("name", ["encoder.safetensors", ARRAYS])
def test_vectors_in_the_folder_to_write_are_not_replaced_or_removed(folder: Path, name: str) -> None:
    """`--to` of the folder of the vectors lost them, where they had the name of a file of a decision."""
    from sentfold.cli import compress, decide

    vectors = folder / name
    save_file({"v": np.load(folder / "v.npy")}, vectors)
    before = vectors.read_bytes()
    for command in (decide.command, compress.command):
        with pytest.raises(ParameterError, match="would be lost"):
            command(folder / "pairs.tsv", vectors=vectors, to=folder)
    assert vectors.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("verdict.json", '{"verdict": "guilty", "judge": "A. B."}'), ("verdict.json", "[]"),
        (SETTINGS, '{"kind": "office"}'), (SETTINGS, '{"kind": "linear", "rooms": [1, 2]}'),
        ("verdict.json", '{"verdict": "guilty", "shapes": 3}'), (SETTINGS, '{"rooms": 3}'),
        ("encoder.json", '{"method": "post"}'),
    ],
)  # fmt: skip
def test_a_file_of_another_program_in_the_folder_to_write_is_not_lost(folder: Path, name: str, content: str) -> None:
    from sentfold.cli import compress, decide

    (folder / name).write_text(content)
    for command in (decide.command, compress.command):
        with pytest.raises(ParameterError, match="would be lost"):
            command(folder / "pairs.tsv", vectors=folder / "v.npy", to=folder)
    assert (folder / name).read_text() == content


@pytest.mark.parametrize("source", ["pairs.tsv", "texts.txt"])
def test_a_decision_may_be_written_again(folder: Path, source: str) -> None:
    from sentfold.cli import decide

    (folder / "texts.txt").write_text("\n".join(f"text {row} here" for row in range(600)) + "\n")
    written = []
    for _ in range(2):
        decide.command(folder / source, vectors=folder / "v.npy", to=folder / "again")
        written.append({path.name: path.read_bytes() for path in (folder / "again").iterdir()})
    assert written[0] == written[1]


@pytest.mark.parametrize("name", ["verdict.html", ARRAYS, "encoder.safetensors"])
def test_a_file_without_a_key_is_not_lost_either(folder: Path, name: str) -> None:
    from sentfold.cli import compress, decide

    (folder / name).write_bytes(b"mine")
    for command in (decide.command, compress.command):
        with pytest.raises(ParameterError, match="would be lost"):
            command(folder / "pairs.tsv", vectors=folder / "v.npy", to=folder)
    assert (folder / name).read_bytes() == b"mine"


def test_data_that_are_written_between_the_two_models_of_a_comparison_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second model was given the texts in their new order, and judged by the labels of the old one."""
    from sentfold.cli import compare, inputs

    def read_and_write(*given: Any, **options: Any) -> inputs.Inputs:
        read = inputs.read_inputs(*given, **options)
        lines = (folder / "pairs.tsv").read_text().splitlines()
        (folder / "pairs.tsv").write_text("\n".join([lines[0], *sorted(lines[1:])]) + "\n")
        return read

    monkeypatch.setattr(compare, "read_inputs", read_and_write)
    with pytest.raises(DataError, match="changed while it was read"):
        compare.command(str(folder / "v.npy"), str(folder / "v.npy"), on=folder / "pairs.tsv")


def test_a_threshold_takes_matches_and_texts_of_one_reading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that was sorted and saved between the two readings had a precision of 50.0 for 99.2."""
    from sentfold.cli import inputs, threshold

    lines = (folder / "pairs.tsv").read_text().splitlines()
    texts = [line.split("\t")[place] for place in (0, 1) for line in lines[1:]]
    table = pa.table({"text": texts, "vector": list(np.load(folder / "v.npy"))})
    pq.write_table(table, folder / "v.parquet")
    backwards = "\n".join([lines[0], *lines[:0:-1]]) + "\n"

    def write_and_read(*given: Any, **options: Any) -> inputs.Inputs:
        (folder / "pairs.tsv").write_text(backwards)
        return inputs.read_inputs(*given, **options)

    given = {"vectors": folder / "v.parquet", "match_from": 4.0}
    with monkeypatch.context() as patch:
        patch.setattr(threshold, "read_inputs", write_and_read)
        threshold.command(folder / "pairs.tsv", **given, to=folder / "one.json")
    assert (folder / "pairs.tsv").read_text() == backwards
    threshold.command(folder / "pairs.tsv", **given, to=folder / "two.json")
    assert (folder / "one.json").read_bytes() == (folder / "two.json").read_bytes()


def test_a_target_whose_name_is_not_utf8_is_refused_before_anything_is_computed(folder: Path) -> None:
    name = Path(os.fsdecode(os.fsencode(folder) + b"/o\xff.parquet"))
    for as_folder in (True, False):
        with pytest.raises(DataError, match="not UTF-8"):
            refuse_target(name, folder=as_folder)


def test_what_a_killed_decision_left_is_replaced(folder: Path) -> None:
    left = folder / "left"
    left.mkdir()
    for name, content in (("verdict.html", PAGE.encode()), (ARRAYS, b""), (".decision.lock", b"")):
        (left / name).write_bytes(content)
    with pytest.raises(ParameterError, match="would be lost"):
        refuse_target(left, folder=True)  # no decision leaves the arrays of a space without its settings
    (left / ARRAYS).unlink()
    (left / SETTINGS).write_text('{"kind": "linear"}')
    refuse_target(left, folder=True)  # raises nothing
    from sentfold.cli import decide

    decide.command(folder / "pairs.tsv", vectors=folder / "v.npy", to=left)
    assert (left / "verdict.html").read_text() != PAGE
    assert json.loads((left / "verdict.json").read_text())["verdict"]


def test_word_vectors_and_a_model_are_no_target_and_a_name_is_no_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentfold.cli import append, compare, decide, export, threshold

    monkeypatch.chdir(folder)
    words, model = Path("words.parquet"), Path("model")
    words.write_bytes(b"words")
    model.mkdir()
    for name in ("modules.json", "config.json"):
        (model / name).write_text("{}")
    with pytest.raises(ParameterError, match="would be lost"):
        threshold.command(Path("pairs.tsv"), encoder="sif", words=str(words), match_from=4.0, to=words)
    with pytest.raises(ParameterError, match="would be lost"):
        compare.command("sif", "average", Path("pairs.tsv"), words=str(words), to=words)
    for name in ("config.json", "new.json"):
        with pytest.raises(ParameterError, match="in the model's folder"):
            threshold.command(Path("pairs.tsv"), encoder="model", match_from=4.0, to=model / name)
    with pytest.raises(ParameterError, match="in the model's folder"):
        append.command(Path("pairs.tsv"), model / "new.parquet", "model", Path("verdict"))
    with pytest.raises(ParameterError, match="in the model's folder"):
        export.command(Path("verdict"), "model", model / "new")
    for place in (model, model / "results"):
        with pytest.raises(ParameterError, match="in the model's folder"):
            compare.command("v.npy", "model", Path("pairs.tsv"), mteb=place)
        with pytest.raises(ParameterError, match="in the model's folder"):
            decide.command(Path("pairs.tsv"), encoder="model", mteb=place)
    monkeypatch.chdir(model)
    with pytest.raises(ParameterError, match="in the model's folder"):  # it would make the model another one
        decide.command(folder / "pairs.tsv", encoder=".")
    monkeypatch.chdir(folder)
    with pytest.raises(ParameterError, match="would be lost"):
        decide.command(Path("pairs.tsv"), encoder="model", to=model)
    Path("wordllama").mkdir()  # where an earlier decision on that encoder was written
    refuse_target(Path("wordllama"), "wordllama", folder=True)
    assert words.read_bytes() == b"words"


def test_a_table_whose_columns_cannot_be_told_is_encoded_as_the_message_says(tmp_path: Path) -> None:
    from sentfold.cli.encode import read_sentences

    (tmp_path / "t.csv").write_text("one,two,three\na b,c d,e f\ng h,i j,k l\n")
    with pytest.raises(DataError) as refused:
        read_sentences(tmp_path / "t.csv")
    assert "--columns" in refused.value.remedy
    assert read_sentences(tmp_path / "t.csv", "text=two") == ["c d", "i j"]


def test_pairs_in_parquet_are_encoded_as_those_in_csv(tmp_path: Path) -> None:
    from sentfold.cli.encode import read_sentences

    columns = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, 2.0]}
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    (tmp_path / "p.csv").write_text("sentence1,sentence2,score\na,c,1\nb,d,2\n")
    for named in (None, "left=sentence1,right=sentence2,score=score"):
        assert read_sentences(tmp_path / "p.parquet", named) == read_sentences(tmp_path / "p.csv", named)
    (tmp_path / "t.tab").write_text("text\tlabel\na cat\tx\n")
    with pytest.raises(DataError, match="has a tab"):
        read_sentences(tmp_path / "t.tab")


def test_a_parquet_file_is_encoded_by_the_column_that_is_named(tmp_path: Path) -> None:
    from sentfold.cli.encode import read_sentences

    columns = {"text": ["Great", "Bad"], "body": ["It works.", ""]}
    pq.write_table(pa.table(columns), tmp_path / "r.PARQUET")
    assert read_sentences(tmp_path / "r.PARQUET") == columns["text"]
    assert read_sentences(tmp_path / "r.PARQUET", "text=body") == columns["body"]
    (tmp_path / "lines.txt").write_text("a\nb\n")
    for file, named in (("r.PARQUET", "left=text,right=body"), ("lines.txt", "text=a")):
        with pytest.raises(DataError, match=r"no such columns|which columns to use"):
            read_sentences(tmp_path / file, named)
    with pytest.raises(DataError, match="no complete column 'none'"):
        read_sentences(tmp_path / "r.PARQUET", "text=none")


def test_no_file_of_an_earlier_decision_stays_beside_another_verdict(folder: Path) -> None:
    from sentfold.cli import compress, decide

    (folder / "texts.txt").write_text("\n".join(f"text {row} here" for row in range(600)) + "\n")
    for command, source, left in (
        (compress.command, "pairs.tsv", {"verdict.json", SETTINGS, ARRAYS}),
        (decide.command, "texts.txt", {"verdict.json"}),
    ):
        save_space(Unchanged(), folder / "to")
        (folder / "to/verdict.html").write_bytes(PAGE_START)
        (folder / "to/encoder.json").write_text('{"method": "sif", "counts": {}, "sha256": ""}')
        command(folder / source, vectors=folder / "v.npy", to=folder / "to")
        assert {path.name for path in (folder / "to").iterdir()} == left | {".decision.lock"}


def test_a_note_is_one_line_whatever_a_column_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    from sentfold.cli.inputs import print_notes

    print_notes(["columns: left = a\n  to do     rm -r\x1b[2J"])
    assert capsys.readouterr().err == "columns: left = a\\n  to do     rm -r\\x1b[2J\n"


def test_vectors_of_an_encoder_that_are_not_finite_are_not_written(tmp_path: Path) -> None:
    from sentfold.cli.encode import write_vectors

    with pytest.raises(EncoderError, match=r"(?s)not finite.*sentence 1 "):
        write_vectors(tmp_path / "v.parquet", np.array([[1, 2], [np.inf, 0]], dtype=np.float32), {}, ["a", "b"])
    assert not (tmp_path / "v.parquet").exists()


def test_vectors_that_were_read_are_those_of_the_hash_though_their_file_is_written_again(folder: Path) -> None:
    from sentfold.cli.inputs import read_inputs

    read = read_inputs(folder / "pairs.tsv", folder / "v.npy", None, None, "")
    before = read.vectors.copy()
    array = np.load(folder / "v.npy")
    with (folder / "v.npy").open("r+b") as file:
        file.seek(-array.nbytes, os.SEEK_END)
        file.write(np.zeros_like(array).tobytes())
    np.testing.assert_array_equal(read.vectors, before)


@pytest.mark.parametrize("name", ["v.npy", "data/train.csv", "data/parts/more.csv"])
def test_a_file_that_is_written_while_it_is_read_and_hashed_is_refused(tmp_path: Path, name: str) -> None:
    from sentfold.data.tables import unchanged

    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("one")
    given = tmp_path / name.partition("/")[0]
    with unchanged(given, None) as read:
        read.append(file)
        file.with_name("run.log").write_text("a file that is not read")
    with pytest.raises(DataError, match="changed while it was read") as refused, unchanged(given, None) as read:
        read.append(file)
        file.write_text("two")
    assert refused.value.where == str(file)
    with pytest.raises(DataError, match="changed while it was read"), unchanged(given, None) as read:
        read.append(file)
        file.unlink()


@pytest.mark.parametrize("gone", [True, False])
def test_a_decision_is_written_whoever_reads_what_is_printed_and_printed_whatever_can_be_written(
    folder: Path, gone: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentfold.cli import compress, decide

    def refuse(*_words: object, **_options: object) -> None:
        raise BrokenPipeError

    for command, target in ((decide.command, folder / "one"), (compress.command, folder / "two")):
        if gone:  # as `| true` does
            monkeypatch.setattr("builtins.print", refuse)
            monkeypatch.setattr(f"{command.__module__}.print_notes", lambda notes: None)
            monkeypatch.setattr("sentfold.cli.inputs.print_notes", lambda notes: None)
            with pytest.raises(BrokenPipeError):
                command(folder / "pairs.tsv", vectors=folder / "v.npy", to=target)
            assert (target / "verdict.json").is_file()
        else:
            target.write_text("a file in place of the folder")
            monkeypatch.setattr(f"{command.__module__}.refuse_target", lambda *paths, folder: None)
            with pytest.raises(ArtifactError):
                command(folder / "pairs.tsv", vectors=folder / "v.npy", to=target)
            assert "Spearman of cosine" in capsys.readouterr().out


def test_texts_that_a_model_reads_in_part_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sentfold.cli.inputs import read_inputs

    long = " ".join(["and then the train was late again"] * 60)  # MiniLM reads 256 tokens
    rows = [f"{long if n < 3 else 'short'} {n},{n % 2}" for n in range(8)]
    (tmp_path / "l.csv").write_text("\n".join(["text,label", *rows]))
    read_inputs(tmp_path / "l.csv", None, "all-MiniLM-L6-v2", None, "")
    assert "all-MiniLM-L6-v2: texts cut at the model's limit: 3" in capsys.readouterr().err


@pytest.mark.parametrize("gone", [True, False])
def test_numbers_are_written_whoever_reads_what_is_printed_and_printed_whatever_can_be_written(
    folder: Path, gone: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentfold.cli import compare, threshold

    def refuse(*_words: object, **options: object) -> None:
        if options.get("file") is not sys.stderr:
            raise BrokenPipeError

    pairs, own = folder / "pairs.tsv", folder / "v.npy"
    calls: list[Callable[[Path], object]] = [
        lambda to: compare.command(str(own), str(own), on=pairs, to=to, mteb=to.with_suffix("")),
        lambda to: threshold.command(pairs, vectors=own, match_from=4.0, to=to),
    ]
    for number, call in enumerate(calls):
        target = folder / f"{number}.json"
        if gone:  # as `| true` does
            monkeypatch.setattr("builtins.print", refuse)
            with pytest.raises(BrokenPipeError):
                call(target)
            assert json.loads(target.read_bytes())
            assert number or any(target.with_suffix("").iterdir())
        else:
            target.mkdir()
            for module in (compare, threshold):
                for name in ("refuse_target", "refuse_other_record"):
                    monkeypatch.setattr(module, name, lambda *paths, **options: None)
            with pytest.raises(ArtifactError):
                call(target)
            assert any(char.isdigit() for char in capsys.readouterr().out)


def test_a_second_file_of_data_is_not_replaced_by_numbers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--to test.csv` reads as if the threshold of the first file were to be used on the second."""
    from sentfold.cli import compare, threshold

    monkeypatch.chdir(folder)
    content = Path("pairs.tsv").read_bytes()
    given: dict[str, Any] = {"vectors": Path("v.npy"), "match_from": 4.0}
    calls: list[Callable[[Path], object]] = [
        lambda to: threshold.command(Path("pairs.tsv"), **given, to=to),
        lambda to: compare.command("v.npy", "v.npy", on=Path("pairs.tsv"), to=to),
    ]
    for number, call in enumerate(calls):
        for name in ("test.tsv", "test.json"):
            Path(name).write_bytes(content)
            with pytest.raises(ParameterError, match="numbers"):
                call(Path(name))
            assert Path(name).read_bytes() == content
        own = Path(f"{number}.json")
        call(own)
        own.chmod(0o600)
        call(own)
        assert own.stat().st_mode & 0o777 == 0o600
        own.chmod(0o444)
        with pytest.raises(ParameterError, match="read-only"):
            call(own)
