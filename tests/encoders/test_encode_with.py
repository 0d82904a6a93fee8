"""`encode-with`: the files it reads and writes, what it decides by itself, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.artifacts import fixed_lists, read_record
from pipeline.encoders.encode_with import Files, Request, encode_with, read_lines
from pipeline.encoders.lexicon import Clusters, Lexicon
from pipeline.encoders.protocol import known_methods
from pipeline.errors import ArtifactError, ParameterError, SentfoldError
from pipeline.words.adjust import level_variance
from pipeline.words.partition import Partition, centroids_of
from tests.encoders.lexicons import encode, make_encoder, make_lexicon, make_sentences

ROOT = Path(__file__).parents[2]
SENTENCES = make_sentences(count=30)  # 34 lines


def write_files(
    folder: Path, lexicon: Lexicon, sentences: list[str] = SENTENCES, corpus: list[str] = SENTENCES
) -> Files:
    """The command's input files, written as anyone else would write them."""
    files = Files(
        sentences=folder / "s.txt",
        fit_on=folder / "f.txt",
        words=folder / "words.parquet",
        counts=folder / "counts.parquet",
        clusters=folder / "clusters.parquet",
        centroids=folder / "centroids.parquet",
    )
    files.sentences.write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8")
    files.fit_on.write_text("".join(f"{line}\n" for line in corpus), encoding="utf-8")
    words = pa.array(lexicon.words, pa.string())
    vectors = np.ascontiguousarray(lexicon.vectors, dtype=np.float32)
    pq.write_table(pa.table({"word": words, "vector": fixed_lists(vectors)}), files.words)
    counts = {"word": pa.array(lexicon.counts.words, pa.string()), "count": pa.array(lexicon.counts.counts, pa.int64())}
    pq.write_table(pa.table(counts), files.counts)
    clusters = lexicon.demand_clusters("test")
    assert clusters.centroids is not None and files.clusters is not None
    pq.write_table(pa.table({"word": words, "cluster": pa.array(clusters.labels, pa.int32())}), files.clusters)
    numbers = pa.array(np.arange(len(clusters.centroids)), pa.int32())
    rows = {"cluster": numbers, "vector": fixed_lists(clusters.centroids.astype(np.float32))}
    pq.write_table(pa.table(rows), files.centroids)
    return files


def run(files: Files, out: Path, method: str, **request: object) -> np.ndarray:
    """The vectors that the command writes, by whitespace tokens unless asked otherwise."""
    settings = request.pop("settings", [])
    encode_with(files, Request(method, **{"tokenizer": "whitespace", **request}, settings=settings), out)  # type: ignore[arg-type]
    column = pq.read_table(out).column("vector").combine_chunks()
    assert column.type.value_type == pa.float32()
    return np.asarray(column.flatten()).reshape(len(column), -1)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return write_files(tmp_path, make_lexicon())


@pytest.mark.parametrize("method", known_methods())
@pytest.mark.parametrize("variant", ["published", "released"])
def test_the_command_gives_what_the_encoder_gives(files: Files, tmp_path: Path, method: str, variant: str) -> None:
    got = run(files, tmp_path / "out.parquet", method, variant=variant)
    np.testing.assert_array_equal(got, encode(method, make_lexicon(), SENTENCES, variant=variant))


def test_the_command_line_takes_every_option_as_documented(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    directions = tmp_path / "directions.parquet"
    rows, values = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0], np.arange(12.0, 0, -1)
    pq.write_table(pa.table({"vector": fixed_lists(rows), "singular_value": values}), directions)
    command = [
        *("encode-with", "GEM", "--sentences", str(files.sentences), "--fit-on", str(files.fit_on)),
        *("--words", str(files.words), "--counts", str(files.counts), "--directions", str(directions)),
        *("--clusters", str(files.clusters), "--centroids", str(files.centroids)),
        *("--variant", "released", "--component", "joint", "--tokenizer", "wordpunct"),
        *("--set", "removed=3", "window=4", "--set", "candidates=9", "--out", str(out)),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(SENTENCES)} vectors of 12 dimensions" in done.stdout
    got = np.asarray(pq.read_table(out).column("vector").combine_chunks().flatten()).reshape(len(SENTENCES), -1)
    from pipeline.encoders.gem import Directions, GemEncoder

    encoder = make_encoder(
        "gem", make_lexicon(), tokenizer="wordpunct", variant="released", removed=3, window=4, candidates=9
    )
    assert isinstance(encoder, GemEncoder)
    np.testing.assert_array_equal(got, encoder.fit_directions(Directions(rows, values)).encode(SENTENCES).vectors)


def test_a_refusal_is_printed_without_a_traceback(files: Files, tmp_path: Path) -> None:
    command = [
        *("encode-with", "s3e", "--sentences", str(files.sentences), "--fit-on", str(files.fit_on)),
        *("--words", str(files.words), "--counts", str(files.counts), "--out", str(tmp_path / "out.parquet")),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "needs clusters" in done.stderr and "--clusters" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.parquet").exists()


def test_what_was_done_stands_in_the_record(files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    run(files, out, "sif", settings=["a=0.01"])
    record = read_record(out, kind="vectors")
    assert record["parameters"]["settings"]["a"] == 0.01
    assert set(record["inputs"]) == {str(path) for path in files.all}
    assert "unknown words (tokens)" in record["notes"]["fallbacks"]


# --- sentences --------------------------------------------------------------------------------------


def test_a_line_is_a_sentence_whatever_stands_in_it(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes("a\x0bb\u2028c\x85d\r\n\n  last \n".encode())
    assert read_lines(path) == ["a\x0bb\u2028c\x85d", "", "  last "]
    path.write_bytes("\ufeffno newline at the end".encode())
    assert read_lines(path) == ["no newline at the end"]
    path.write_bytes(b"")
    assert read_lines(path) == []


def test_an_empty_line_keeps_its_row(tmp_path: Path) -> None:
    files = write_files(tmp_path, make_lexicon(), ["dog", "", "cat"], SENTENCES)
    got = run(files, tmp_path / "out.parquet", "average")
    assert len(got) == 3
    assert got[[0, 2]].any(axis=1).all() and not got[1].any()


def test_the_fit_is_on_the_fitting_file_alone(tmp_path: Path) -> None:
    files = write_files(tmp_path, make_lexicon(), SENTENCES[:5], SENTENCES[10:])
    wanted = make_encoder("sif", make_lexicon()).fit(SENTENCES[10:]).encode(SENTENCES[:5]).vectors
    np.testing.assert_array_equal(run(files, tmp_path / "out.parquet", "sif"), wanted)


# --- components -------------------------------------------------------------------------------------


def sides_apart(first: list[str], second: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoder = make_encoder("sif", make_lexicon())
    left, right = (encoder.fit(side).encode(side).vectors for side in (first, second))
    return left, right


def test_no_component_leaves_the_weighted_mean(files: Files, tmp_path: Path) -> None:
    got = run(files, tmp_path / "out.parquet", "sif", component="none")
    np.testing.assert_array_equal(got, encode("sif", make_lexicon(), SENTENCES, component="none"))


def test_per_side_takes_the_halves_of_the_files_apart(files: Files, tmp_path: Path) -> None:
    got = run(files, tmp_path / "out.parquet", "sif", component="per-side")
    half = len(SENTENCES) // 2
    np.testing.assert_array_equal(got, np.vstack(sides_apart(SENTENCES[:half], SENTENCES[half:])))


def test_per_side_takes_turns_where_sides_are_interleaved(files: Files, tmp_path: Path) -> None:
    got = run(files, tmp_path / "out.parquet", "sif", component="per-side", settings=["sides=interleaved"])
    left, right = sides_apart(SENTENCES[::2], SENTENCES[1::2])
    np.testing.assert_array_equal(got[::2], left)
    np.testing.assert_array_equal(got[1::2], right)


@pytest.mark.parametrize("side", [slice(None, 17), slice(17, None), slice(None, None, 2), slice(1, None, 2)])
def test_per_side_knows_one_side_of_the_fitting_file(tmp_path: Path, side: slice) -> None:
    files = write_files(tmp_path, make_lexicon(), SENTENCES[side], SENTENCES)
    got = run(files, tmp_path / "out.parquet", "sif", component="per-side")
    np.testing.assert_array_equal(got, sides_apart(SENTENCES[side], SENTENCES[side])[0])


def test_per_side_refuses_what_has_no_two_sides(tmp_path: Path) -> None:
    files = write_files(tmp_path, make_lexicon(), SENTENCES[:7], SENTENCES)
    with pytest.raises(ParameterError, match="odd number"):
        run(files, tmp_path / "out.parquet", "sif", component="per-side")


@pytest.mark.parametrize("method", ["sif", "usif", "gem"])
def test_what_a_fit_learned_can_be_given_back(files: Files, tmp_path: Path, method: str) -> None:
    learned = make_encoder(method, make_lexicon()).fit(SENTENCES).learned
    path = tmp_path / "directions.parquet"
    columns = {"vector": fixed_lists(learned["directions"]), "singular_value": learned["singular_values"]}
    pq.write_table(pa.table(columns), path)
    got = run(replace(files, directions=path), tmp_path / "out.parquet", method)
    # Shares of uSIF are computed again from the stored values: one rounding.
    np.testing.assert_allclose(got, encode(method, make_lexicon(), SENTENCES), atol=1e-6 * np.abs(got).max())


def test_directions_are_refused_by_a_method_that_removes_none(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "directions.parquet"
    pq.write_table(pa.table({"vector": fixed_lists(np.eye(12)), "singular_value": np.ones(12)}), path)
    with pytest.raises(ParameterError, match="removes no directions"):
        run(replace(files, directions=path), tmp_path / "out.parquet", "average")
    with pytest.raises(ParameterError, match="per side"):
        run(replace(files, directions=path), tmp_path / "out.parquet", "sif", component="per-side")


# --- words and clusters -----------------------------------------------------------------------------


def test_words_without_a_cluster_are_unknown_to_a_method_of_clusters(tmp_path: Path) -> None:
    lexicon = make_lexicon()
    files = write_files(tmp_path, lexicon)
    assert files.clusters is not None
    table = pq.read_table(files.clusters)
    pq.write_table(table.filter(np.array([word != "dog" for word in lexicon.words])), files.clusters)
    kept = lexicon.only(np.array([word != "dog" for word in lexicon.words]))
    got = run(files, tmp_path / "out.parquet", "s3e")
    np.testing.assert_array_equal(got, encode("s3e", kept, SENTENCES))


def test_a_clustered_word_without_a_vector_gets_the_mean_one_as_released(tmp_path: Path) -> None:
    lexicon = make_lexicon()
    files = write_files(tmp_path, lexicon)
    table = pq.read_table(files.words)
    kept = np.array([word != "dog" for word in lexicon.words])
    pq.write_table(table.filter(kept), files.words)
    mean = lexicon.vectors[kept].astype(np.float64).mean(axis=0).astype(np.float32)
    vectors = lexicon.vectors.copy()
    vectors[~kept] = mean
    got = run(files, tmp_path / "out.parquet", "s3e", variant="released")
    wanted = encode("s3e", replace(lexicon, vectors=vectors), SENTENCES, variant="released")
    # The order of the lexicon changes the order of no sum but the solver's.
    np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_clusters_are_the_nearest_centroids_where_only_those_are_given(tmp_path: Path) -> None:
    lexicon = make_lexicon()
    files = replace(write_files(tmp_path, lexicon), clusters=None)
    clusters = lexicon.demand_clusters("test")
    assert clusters.centroids is not None
    distances = ((lexicon.vectors[:, None].astype(np.float64) - clusters.centroids) ** 2).sum(axis=2)
    nearest = replace(lexicon, clusters=Clusters(distances.argmin(axis=1).astype(np.int32), clusters.centroids))
    np.testing.assert_array_equal(run(files, tmp_path / "out.parquet", "vlawe"), encode("vlawe", nearest, SENTENCES))


@pytest.mark.parametrize("rule", ["mean", "weighted-mean", "scaled-mean"])
@pytest.mark.parametrize("method", ["s3e", "lase"])
def test_words_are_levelled_where_the_centroids_lie_in_that_space(tmp_path: Path, method: str, rule: str) -> None:
    lexicon = make_lexicon(dimension=14)
    levelled = replace(lexicon, vectors=level_variance(lexicon.vectors, 10))
    weights = lexicon.smooth_inverse_frequency(1e-3)
    clusters = lexicon.demand_clusters("test")
    for words, expected in ((lexicon, lexicon), (levelled, levelled)):
        partition = Partition(clusters.labels, clusters.size)
        centroids = centroids_of(partition, words.vectors, weights, rule)  # type: ignore[arg-type]
        given = replace(lexicon, clusters=replace(clusters, centroids=centroids))
        files = write_files(tmp_path, given)
        got = run(files, tmp_path / "out.parquet", method, variant="released")
        stored = centroids.astype(np.float32).astype(np.float64)
        in_space = replace(expected, clusters=replace(clusters, centroids=stored))
        np.testing.assert_allclose(got, encode(method, in_space, SENTENCES, variant="released"), atol=1e-5)
    told = run(files, tmp_path / "out.parquet", method, variant="released", settings=["pvn=0"])
    assert np.abs(told - got).max() > 1e-3


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
    with pytest.raises(ArtifactError) as caught:
        run(files, tmp_path / "out.parquet", "average")
    assert "words.parquet" in str(caught.value)


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        ({"method": "glove"}, "no encoding method"),
        ({"method": "sif", "variant": "improved"}, "variant"),
        ({"method": "sif", "tokenizer": "spaces"}, "tokenizer"),
        ({"method": "sif", "component": "some"}, "component"),
        ({"method": "sif", "settings": ["b=1"]}, "b"),
        ({"method": "sif", "settings": ["sides=left"], "component": "per-side"}, "sides"),
        ({"method": "s3e", "settings": ["pvn=-3"], "variant": "released"}, "pvn"),
    ],
)
def test_a_wrong_request_is_refused_by_name(
    files: Files, tmp_path: Path, request_: dict[str, object], part: str
) -> None:
    with pytest.raises(SentfoldError) as caught:
        run(files, tmp_path / "out.parquet", **request_)  # type: ignore[arg-type]
    assert part in str(caught.value)
    assert not (tmp_path / "out.parquet").exists()
