"""`sentfold encode`: the files it reads and writes, and what it refuses."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sentfold.cli.append import command as append
from sentfold.cli.encode import command, read_sentences, write_vectors
from sentfold.data.datasets import read_dataset
from sentfold.data.tables import DataError
from sentfold.data.vectors import read_vectors
from sentfold.data.words import count_numbers, read_columns, read_integers
from sentfold.decision.encoders import encode_by_name, fit_method
from sentfold.decision.use import append_vectors, read_texts
from sentfold.encoders.base.lexicon import Lexicon
from sentfold.encoders.base.protocol import known_methods
from sentfold.errors import ArtifactError, EncoderError, ParameterError, SentfoldError
from sentfold.files import fixed_lists
from tests.encoders.lexicons import encode, make_encoder, make_lexicon, make_sentences

SENTENCES = make_sentences(count=30)  # 34 lines


@dataclass(frozen=True)
class Files:
    """Input files of the command."""

    source: Path
    fit_on: Path
    words: Path
    counts: Path
    clusters: Path
    centroids: Path


def write_files(
    folder: Path, lexicon: Lexicon, sentences: list[str] = SENTENCES, fitting: list[str] = SENTENCES
) -> Files:
    """The command's input files, written as anyone else would write them."""
    names = ("s.txt", "f.txt", "words.parquet", "counts.parquet", "clusters.parquet", "centroids.parquet")
    files = Files(*(folder / name for name in names))
    files.source.write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
    files.fit_on.write_text("".join(f"{line}\n" for line in fitting), encoding="utf-8")
    words = pa.array(lexicon.words, pa.string())
    vectors = np.ascontiguousarray(lexicon.vectors, dtype=np.float32)
    pq.write_table(pa.table({"word": words, "vector": fixed_lists(vectors)}), files.words)
    counts = {"word": pa.array(lexicon.counts.words, pa.string()), "count": pa.array(lexicon.counts.counts, pa.int64())}
    pq.write_table(pa.table(counts), files.counts)
    clusters = lexicon.demand_clusters("test")
    assert clusters.centroids is not None
    pq.write_table(pa.table({"word": words, "cluster": pa.array(clusters.labels, pa.int32())}), files.clusters)
    numbers = pa.array(np.arange(len(clusters.centroids)), pa.int32())
    rows = {"cluster": numbers, "vector": fixed_lists(clusters.centroids.astype(np.float32))}
    pq.write_table(pa.table(rows), files.centroids)
    return files


def run(files: Files, out: Path, method: str, *settings: str, directions: Path | None = None) -> np.ndarray:
    """The vectors that the command writes, by whitespace tokens unless asked otherwise."""
    command(
        method,
        files.source,
        out,
        fit_on=files.fit_on,
        words=str(files.words),
        counts=files.counts,
        clusters=str(files.clusters),
        centroids=files.centroids,
        directions=directions,
        settings=["tokenizer=whitespace", *settings],
    )
    return read(out)


def read(path: Path) -> np.ndarray:
    column = pq.read_table(path).column("vector").combine_chunks()
    assert column.type.value_type == pa.float32()
    return np.asarray(column.flatten()).reshape(len(column), -1)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return write_files(tmp_path, make_lexicon())


def test_a_second_file_of_data_is_not_replaced_by_vectors(files: Files, tmp_path: Path) -> None:
    """`cat` and `wc` take one file after another, and so would who types `encode MODEL train.csv test.csv`."""
    for target in (tmp_path / "test.csv", tmp_path / "test.parquet"):
        shutil.copy(files.words, target)
        before = target.read_bytes()
        with pytest.raises(ParameterError, match=r"written as Parquet|something else than vectors"):
            run(files, target, "average")
        assert target.read_bytes() == before
    (tmp_path / "empty.npy").touch()
    for name in ("new.npy", "empty.npy"):
        with pytest.raises(ParameterError, match="written as Parquet"):
            run(files, tmp_path / name, "average")
    with pytest.raises(ParameterError, match="written as Parquet"):
        append(files.source, tmp_path / "new.npy", encoder="wordllama", space=tmp_path)
    first, again = (run(files, tmp_path / "out.parquet", "average") for _ in range(2))
    (tmp_path / "link.parquet").symlink_to("out.parquet")
    run(files, tmp_path / "link.parquet", "sif")
    assert (tmp_path / "link.parquet").is_symlink()
    assert not np.array_equal(read(tmp_path / "out.parquet"), first)
    (tmp_path / "out.parquet").chmod(0o444)  # as `dvc add` leaves the file, and its copy in the cache
    with pytest.raises(ParameterError, match="read-only"):
        run(files, tmp_path / "out.parquet", "average")
    with pytest.raises(ParameterError, match="read-only"):
        append(files.source, tmp_path / "out.parquet", encoder="wordllama", space=tmp_path)
    np.testing.assert_array_equal(first, again)


def test_texts_that_append_added_while_encode_ran_are_kept(tmp_path: Path) -> None:
    path, vectors = tmp_path / "v.parquet", np.ones((2, 4), dtype=np.float32)
    write_vectors(path, vectors, {}, ["a", "b"])
    write_vectors(path, vectors, {}, ["a", "b"])
    append_vectors(path, ["c"], vectors[:1])
    with pytest.raises(ParameterError, match="something else than vectors"):
        write_vectors(path, vectors, {}, ["a", "b"])
    assert pq.read_table(path).column("text").to_pylist() == ["a", "b", "c"]


def test_nobody_is_told_to_install_a_package_that_has_the_name_of_word_vectors(files: Files, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError) as refused:
        run(replace(files, words=Path("no_such_words")), tmp_path / "out.parquet", "average")
    assert "install" not in refused.value.remedy


def test_a_name_with_a_colon_or_a_tilde_is_that_of_a_file(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models have tags, as nomic:latest. pyarrow takes such a name for an address, and ~ for the home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    shutil.copy(files.words, "words:new.parquet")
    for name in ("nomic:latest.parquet", "~/v.parquet"):
        for _ in range(2):
            command("average", files.source, Path(name), words="words:new.parquet")
        assert read_texts(Path(name), {})[0] == files.source.read_text().splitlines()
    assert not (tmp_path / "home").exists()


def test_the_columns_of_the_source_are_not_asked_of_a_text_file_to_learn_from(files: Files, tmp_path: Path) -> None:
    lines = files.source.read_text().splitlines()
    pl.DataFrame({"review": lines, "other": lines}).write_csv(tmp_path / "s.csv")
    given = {"words": str(files.words), "columns": "text=review"}
    command("sif", tmp_path / "s.csv", tmp_path / "a.parquet", fit_on=files.fit_on, **given)
    pl.DataFrame({"text": lines}).write_csv(tmp_path / "f.csv")
    with pytest.raises(DataError) as refused:
        command("sif", tmp_path / "s.csv", tmp_path / "b.parquet", fit_on=tmp_path / "f.csv", **given)
    assert "f.csv" in refused.value.where and "with the columns of the source" in (refused.value.remedy or "")
    (tmp_path / "latin.csv").write_bytes("review\nDie T\u00fcr\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"(?s)not UTF-8.*save the file as UTF-8"):
        command("sif", tmp_path / "s.csv", tmp_path / "b.parquet", fit_on=tmp_path / "latin.csv", **given)


@pytest.mark.parametrize("method", known_methods())
@pytest.mark.parametrize("variant", ["published", "released"])
def test_the_command_gives_what_the_encoder_gives(files: Files, tmp_path: Path, method: str, variant: str) -> None:
    got = run(files, tmp_path / "out.parquet", method, f"variant={variant}")
    np.testing.assert_array_equal(got, encode(method, make_lexicon(), SENTENCES, variant=variant))


def shell(*words: object) -> subprocess.CompletedProcess[str]:
    code = "from sentfold.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "encode", *map(str, words)], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_command_line_takes_every_option_as_documented(files: Files, tmp_path: Path) -> None:
    out, directions = tmp_path / "out.parquet", tmp_path / "directions.parquet"
    rows, values = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0], np.arange(12.0, 0, -1)
    pq.write_table(pa.table({"vector": fixed_lists(rows), "singular_value": values}), directions)
    done = shell(
        *("GEM", files.source, out, "--fit-on", files.fit_on, "--words", files.words, "--counts", files.counts),
        *("--clusters", files.clusters, "--centroids", files.centroids, "--directions", directions),
        *("--set", "removed=3", "--set", "window=4", "--set", "candidates=9", "--set", "variant=released"),
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(SENTENCES)} vectors of 12 dimensions" in done.stdout
    encoder = make_encoder(
        "gem", make_lexicon(), tokenizer="wordpunct", variant="released", removed=3, window=4, candidates=9
    )
    wanted = encoder.fit_directions(rows, values).encode(SENTENCES).vectors
    np.testing.assert_array_equal(read(out), wanted)
    record = json.loads(pq.read_schema(out).metadata[b"sentfold encode"])
    assert record["encoder"] == "gem" and record["settings"]["removed"] == 3


@pytest.mark.slow
def test_a_refusal_is_printed_without_a_traceback(files: Files, tmp_path: Path) -> None:
    done = shell("s3e", files.source, tmp_path / "out.parquet", "--words", files.words)
    assert done.returncode == 2
    assert "needs clusters" in done.stderr and "--clusters" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.parquet").exists()


def test_a_name_that_is_neither_method_nor_model_is_refused(files: Files, tmp_path: Path) -> None:
    with pytest.raises(EncoderError) as caught:
        run(files, tmp_path / "out.parquet", "no-such-model")
    assert "no-such-model" in str(caught.value) and "sif" in caught.value.expected


# --- sentences --------------------------------------------------------------------------------------


def test_a_line_is_a_sentence_whatever_characters_it_has(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes("a\x0bb\u2028c\x85d\r\n\n  last \n".encode())
    assert read_sentences(path) == ["a\x0bb\u2028c\x85d", "", "  last "]
    path.write_bytes("\ufeffno newline at the end".encode())
    assert read_sentences(path) == ["no newline at the end"]
    path.write_bytes(b"")
    assert read_sentences(path) == []


def test_sentences_of_a_parquet_file_are_those_of_its_column_text(tmp_path: Path) -> None:
    texts = ["one\ntwo", "", "three"]
    pq.write_table(pa.table({"text": texts, "label": [1, 2, 3]}), tmp_path / "s.parquet")
    assert read_sentences(tmp_path / "s.parquet") == texts


def test_an_empty_line_keeps_its_row(tmp_path: Path) -> None:
    files = write_files(tmp_path, make_lexicon(), ["dog", "", "cat"], SENTENCES)
    got = run(files, tmp_path / "out.parquet", "average")
    assert len(got) == 3
    assert got[[0, 2]].any(axis=1).all() and not got[1].any()


def test_the_fit_is_on_the_fitting_file_alone(tmp_path: Path) -> None:
    files = write_files(tmp_path, make_lexicon(), SENTENCES[:5], SENTENCES[10:])
    wanted = make_encoder("sif", make_lexicon()).fit(SENTENCES[10:]).encode(SENTENCES[:5]).vectors
    np.testing.assert_array_equal(run(files, tmp_path / "out.parquet", "sif"), wanted)


# --- directions, words and clusters -----------------------------------------------------------------


@pytest.mark.parametrize("method", ["sif", "usif", "gem"])
def test_what_a_fit_learned_can_be_given_back(files: Files, tmp_path: Path, method: str) -> None:
    learned = make_encoder(method, make_lexicon()).fit(SENTENCES).learned
    path = tmp_path / "directions.parquet"
    columns = {"vector": fixed_lists(learned["directions"]), "singular_value": learned["singular_values"]}
    pq.write_table(pa.table(columns), path)
    got = run(files, tmp_path / "out.parquet", method, directions=path)
    # Shares of uSIF are computed again from the stored values: one rounding.
    np.testing.assert_allclose(got, encode(method, make_lexicon(), SENTENCES), atol=1e-6 * np.abs(got).max())


@pytest.mark.parametrize(("method", "part"), [("average", "removes no directions"), ("lase", "takes no directions")])
def test_directions_are_refused_by_a_method_that_removes_none(
    files: Files, tmp_path: Path, method: str, part: str
) -> None:
    path = tmp_path / "directions.parquet"
    pq.write_table(pa.table({"vector": fixed_lists(np.eye(12)), "singular_value": np.ones(12)}), path)
    with pytest.raises(SentfoldError, match=part):
        run(files, tmp_path / "out.parquet", method, directions=path)


def test_words_without_a_cluster_are_unknown_to_a_method_of_clusters(tmp_path: Path) -> None:
    lexicon = make_lexicon()
    files = write_files(tmp_path, lexicon)
    kept = np.array([word != "dog" for word in lexicon.words])
    pq.write_table(pq.read_table(files.clusters).filter(kept), files.clusters)
    got = run(files, tmp_path / "out.parquet", "s3e")
    np.testing.assert_array_equal(got, encode("s3e", lexicon.only(kept), SENTENCES))


@pytest.mark.parametrize(
    ("lines", "width"),
    [
        (["3 4", "a 0 1 2 3"], 4),
        (["new york 0.5 -1e-3 2", "a 1 2 3"], 3),
        (["a 1 2 3", ". . . 1 2 3"], 3),
        (["top 10 0.5 1 2", "b 1 2 3"], 3),
        (["1900 0.5 1 2"], 3),
        (["\ufeffa 1 2", "", "b 1 2"], 2),
        (["# 3 dimensions: 3", "a 1 2 3", "b 1 2 3"], 3),
        (["word vector", "a 1 2 3"], 3),
        (["2 3 cbow", "a 1 2 3"], 3),
        ([""], 1),
    ],
)
def test_the_width_of_word_vectors_is_that_of_the_first_lines(lines: list[str], width: int, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert count_numbers(tmp_path / "words.txt") == width
    with gzip.open(tmp_path / "words.gz", "wb") as stream:
        stream.write((tmp_path / "words.txt").read_bytes())
    assert count_numbers(tmp_path / "words.gz") == width


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("dimension", [None, 12])
def test_word_vectors_are_read_from_a_published_text_file_too(
    files: Files, tmp_path: Path, dimension: int | None, header: bool
) -> None:
    lexicon = make_lexicon()
    lines = [
        " ".join([word, *map(repr, row)]) for word, row in zip(lexicon.words, lexicon.vectors.tolist(), strict=True)
    ]
    text = tmp_path / "words.vec"
    text.write_text("\n".join([*[f"{len(lines)} 12"] * header, *lines, ""]))
    out = tmp_path / "out.parquet"
    command("average", files.source, out, words=str(text), dimension=dimension, settings=["tokenizer=whitespace"])
    np.testing.assert_array_equal(read(out), encode("average", lexicon, SENTENCES))


@pytest.mark.parametrize("spoil", ["missing", "no column", "twice", "not finite", "no parquet", "ragged"])
def test_a_file_that_is_not_what_it_should_be_is_named(files: Files, tmp_path: Path, spoil: str) -> None:
    lexicon = make_lexicon()
    words = pa.array(lexicon.words)
    vectors = lexicon.vectors.copy()
    if spoil == "missing":
        files.words.unlink()
    elif spoil == "no column":
        pq.write_table(pa.table({"word": words}), files.words)
    elif spoil == "twice":
        pq.write_table(pa.table({"word": pa.array(["dog"] * len(words)), "vector": fixed_lists(vectors)}), files.words)
    elif spoil == "not finite":
        vectors[3, 3] = np.nan
        pq.write_table(pa.table({"word": words, "vector": fixed_lists(vectors)}), files.words)
    elif spoil == "no parquet":
        files.words.write_text("dog 1 2 3")
    else:
        lists = [vectors[0].tolist()[: (5, 6, 7)[i % 3]] for i in range(len(words))]
        lists[0] = lists[0][:4]
        pq.write_table(pa.table({"word": words, "vector": pa.array(lists, pa.list_(pa.float32()))}), files.words)
    with pytest.raises(SentfoldError) as caught:
        run(files, tmp_path / "out.parquet", "average")
    assert "words.parquet" in str(caught.value)


@pytest.mark.parametrize("setting", ["variant=improved", "tokenizer=spaces", "component=some", "b=1", "a", "a=-1"])
def test_a_wrong_setting_is_refused_by_name(files: Files, tmp_path: Path, setting: str) -> None:
    with pytest.raises(SentfoldError) as caught:
        run(files, tmp_path / "out.parquet", "sif", setting)
    assert setting.partition("=")[0] in str(caught.value)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("count", [2**63, -1, 0.5, "many"])
def test_what_is_no_count_is_refused(tmp_path: Path, count: object) -> None:
    path = tmp_path / "counts.parquet"
    table = pa.table({"word": ["a"], "count": [count] if count != 2**63 else pa.array([count], pa.uint64())})
    pq.write_table(table, path)
    with pytest.raises(ArtifactError, match=r"(?s)column 'count'.*counts\.parquet"):
        read_integers(read_columns(path, "word", "count"), "count", path)


def test_what_encode_writes_of_a_file_with_a_blank_text_is_read(tmp_path: Path) -> None:
    texts = ["a cat", "", "a cow", "an owl"]
    (tmp_path / "s.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    pq.write_table(pa.table({"text": texts, "label": [0, 1, 0, 1]}), tmp_path / "s.parquet")
    for name in ("s.txt", "s.parquet"):
        command("wordllama", tmp_path / name, tmp_path / "v.parquet")
        data = read_dataset(tmp_path / name)
        np.testing.assert_array_equal(
            read_vectors(tmp_path / "v.parquet", data)[0], encode_by_name("wordllama", list(data.texts)).vectors
        )


def test_a_text_file_in_utf_16_is_read_as_other_commands_read_it(tmp_path: Path) -> None:
    (tmp_path / "u.txt").write_bytes("Der Drucker ist kaputt\r\n\r\nBitte kündigen\r\n".encode("utf-16"))
    assert read_sentences(tmp_path / "u.txt") == ["Der Drucker ist kaputt", "", "Bitte kündigen"]
    (tmp_path / "u.txt").write_bytes("Bitte kündigen".encode("cp1252"))
    with pytest.raises(DataError, match="a file is not UTF-8"):
        read_sentences(tmp_path / "u.txt")


@pytest.mark.parametrize("method", ["average", "sif", "gem"])
def test_a_method_has_the_vectors_that_it_has_in_all_other_commands(tmp_path: Path, method: str) -> None:
    """Split at blanks, `parcel?` is an unknown word: Spearman was 25.6 for 28.0."""
    texts = ["Where is the parcel?", "A parcel, which is late.", '"Late" is late!', "No (small) dog barks; it sleeps."]
    (tmp_path / "s.txt").write_text("\n".join([*texts, *texts[:1] * 5]))  # a text that comes again is learnt from once
    command(method, tmp_path / "s.txt", tmp_path / "v.parquet")
    np.testing.assert_array_equal(read(tmp_path / "v.parquet")[:4], fit_method(method, texts, "wordllama")[1].vectors)
