"""The most similar texts, files that grow, and how far new texts are from those that a space was fitted on."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.neighbors import NearestNeighbors

from sentfold.cli import append, similar
from sentfold.cli.encode import write_vectors
from sentfold.data.datasets import read_dataset
from sentfold.data.tables import DataError
from sentfold.decision.encoders import encode_by_name, hash_encoder, require_encoder
from sentfold.decision.spaces import LandmarkSpace, LinearSpace, SmoothedSpace, Unchanged, load_space, save_space
from sentfold.decision.use import (
    ACCESS_LIST,
    append_vectors,
    describe_distances,
    map_vectors,
    most_similar,
    new_texts,
    read_texts,
    renewed,
    require_same_file,
)
from sentfold.errors import ArtifactError, ParameterError
from sentfold.files import fixed_lists, write_json
from sentfold.manifold.base.linear import LinearMap
from tests.cli.test_main import sentfold


def test_the_most_similar_rows_are_those_of_largest_cosine_and_zero_vectors_come_behind() -> None:
    vectors = np.array([[1, 0], [3, 3], [0, 5], [0, 0], [2, 2]], dtype=np.float32)
    found = most_similar(np.array([1, 1], dtype=np.float32), vectors, 4)
    assert [row for row, _ in found] == [1, 4, 0, 2]
    assert [cosine for _, cosine in found] == pytest.approx([1, 1, 0.5**0.5, 0.5**0.5])


def test_the_distances_of_new_texts_to_landmarks_are_told_and_a_linear_map_has_none() -> None:
    rng = np.random.default_rng(0)
    fixed, new = rng.normal(size=(400, 8)), 6 + rng.normal(size=(60, 8))
    near = np.median(NearestNeighbors(n_neighbors=1).fit(fixed).kneighbors()[0])
    far = np.median(NearestNeighbors(n_neighbors=1).fit(fixed).kneighbors(new)[0])
    for space in (LandmarkSpace(fixed, rng.normal(size=(400, 3)), 10, 1e-3), SmoothedSpace(fixed, 5, 0.3)):
        said = describe_distances(space, new)
        assert f"of the 400 texts that the space was fitted on: {far:.3f} for new texts, {near:.3f} for these" in said
        assert describe_distances(space, new[:0]) == ""
    assert describe_distances(LinearSpace(LinearMap(np.zeros(3), np.eye(3), np.ones(3))), np.ones((4, 3))) == ""


def test_a_private_file_stays_private_and_a_link_stays_a_link(tmp_path: Path) -> None:
    ones = np.ones((1, 4), dtype=np.float32)
    path, link = tmp_path / "vectors.parquet", tmp_path / "link.parquet"
    append_vectors(path, ["a"], ones)
    path.chmod(0o600)
    link.symlink_to(path)
    marked = pq.read_table(path).replace_schema_metadata({"licence": "CC BY 4.0", "sentfold encode": "{}"})
    pq.write_table(marked, path)  # which keeps the permissions
    assert append_vectors(link, ["b"], ones) == (1, 2)
    assert pq.read_schema(path).metadata == {b"licence": b"CC BY 4.0"}
    assert link.is_symlink()
    assert pq.read_table(path).column("text").to_pylist() == ["a", "b"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_with_a_missing_text_is_not_added_to(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a", None], "vector": fixed_lists(np.ones((2, 4), np.float32))}), tmp_path / "v")
    with pytest.raises(DataError, match="texts that are missing"):
        append_vectors(tmp_path / "v", ["b"], np.ones((1, 4), dtype=np.float32))


RECORD = '{"verdict": "Keep cosine.", "metric": "Spearman", "items": {}, "candidates": []}'


def test_private_files_that_a_command_writes_again_stay_private(tmp_path: Path) -> None:
    path, texts = tmp_path / "verdict.json", tmp_path / "v.parquet"
    for mode in (None, 0o600, 0o640):
        for file in (path, texts) if mode else ():
            file.chmod(mode)
        with renewed(tmp_path) as fresh:
            (fresh / "verdict.json").write_text(RECORD)
        write_vectors(texts, np.ones((1, 4), dtype=np.float32), {}, ["a"])
        assert mode is None or path.stat().st_mode & 0o777 == texts.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(os.getuid() != 0, reason="root alone gives files to another group")
def test_files_that_a_command_writes_again_keep_their_group_and_access_list(tmp_path: Path) -> None:
    """Of a file with an access list, the group's permissions are those that the list grants at most."""
    path = tmp_path / "v.parquet"
    rules = ((1, 6, -1), (2, 4, 1234), (4, 0, -1), (16, 4, -1), (32, 0, -1))  # the owner, one account, the group, ...
    shared = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *rule) for rule in rules)
    write_vectors(path, np.ones((1, 4), dtype=np.float32), {}, ["a"])
    os.chown(path, -1, 4321)
    path.chmod(0o640)
    write_vectors(path, np.ones((1, 4), dtype=np.float32), {}, ["a"])
    assert (path.stat().st_gid, path.stat().st_mode & 0o777) == (4321, 0o640)
    try:
        os.setxattr(path, ACCESS_LIST, shared)
    except OSError:
        pytest.skip("the file system has no access lists")
    write_vectors(path, np.ones((1, 4), dtype=np.float32), {}, ["a"])
    assert os.getxattr(path, ACCESS_LIST) == shared
    os.removexattr(path, ACCESS_LIST)
    path.chmod(0o640)
    os.setxattr(tmp_path, ACCESS_LIST.replace("access", "default"), shared)  # of new files in the folder
    write_vectors(path, np.ones((1, 4), dtype=np.float32), {}, ["a"])
    assert ACCESS_LIST not in os.listxattr(path)
    assert (path.stat().st_gid, path.stat().st_mode & 0o777) == (4321, 0o640)


def test_the_folder_in_which_a_command_runs_can_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with renewed(Path()):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".decision.lock"]


def test_only_the_owner_can_open_the_lock_of_a_file_or_a_folder(tmp_path: Path) -> None:
    append_vectors(tmp_path / "vectors.parquet", ["a"], np.ones((1, 4), dtype=np.float32))
    with renewed(tmp_path / "space"):
        locks = [tmp_path / ".vectors.parquet.lock", tmp_path / "space/.decision.lock"]
        assert [lock.stat().st_mode & 0o777 for lock in locks] == [0o600, 0o600]
        folder = os.open(tmp_path / "space", os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)  # who can read the folder can lock it, and that matters not
        os.close(folder)


def test_a_file_grows_by_new_texts_alone_and_old_vectors_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "vectors.parquet"
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(1, 4)).astype(np.float32)
    assert new_texts(path, ["a", "b", "a", "c"]) == ["a", "b", "c"]
    assert append_vectors(path, ["a", "b", "c"], first) == (3, 3)
    assert new_texts(path, ["c", "d"]) == ["d"]
    assert append_vectors(path, ["d"], second) == (1, 4)
    table = pq.read_table(path)
    assert table.column("text").to_pylist() == ["a", "b", "c", "d"]
    assert np.array_equal(
        np.array(table.column("vector").to_pylist(), dtype=np.float32), np.concatenate([first, second])
    )
    with pytest.raises(DataError, match="another space"):
        append_vectors(path, ["e"], np.ones((1, 5), dtype=np.float32))
    pq.write_table(table.select(["vector"]), tmp_path / "bare.parquet")
    with pytest.raises(DataError, match="no texts"):
        new_texts(tmp_path / "bare.parquet", ["a"])


@pytest.mark.slow
def test_the_commands_find_the_text_itself_first_and_add_it_once(tmp_path: Path) -> None:
    texts = ["A dog sleeps.", "Snow falls on the harbour.", "Prices rose again.", "The dog naps."]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    found = sentfold("similar", "A dog sleeps.", "texts.txt", "--encoder", "wordllama", "--top", "2", folder=tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[0] == "1.000  A dog sleeps."
    assert len(found.stdout.splitlines()) == 2
    save_space(LinearSpace(LinearMap(np.zeros(256), np.eye(256)[:, :9], np.ones(9))), tmp_path / "space")
    words = ("append", "texts.txt", "all.parquet", "--encoder", "wordllama", "--space", "space")
    assert "4 texts added, 4 in all" in sentfold(*words, folder=tmp_path).stdout
    (tmp_path / "one.txt").write_text("A fifth text.\n")
    assert "1 texts added, 5 in all" in sentfold("append", "one.txt", *words[2:], folder=tmp_path).stdout
    assert "all of these texts already" in sentfold(*words, folder=tmp_path).stdout
    assert len(pq.read_table(tmp_path / "all.parquet").column("vector")[0]) == 9


def test_texts_of_one_vector_are_encoded(tmp_path: Path) -> None:
    """A model that reads no capitals gives two spellings of one question one vector; nothing is judged here."""
    x = encode_by_name("wordllama", ["Where is my invoice?", "Where is my invoice?"]).vectors
    np.testing.assert_array_equal(x[0], x[1])
    for texts in (["one"], ["two"], ["three"]):
        append_vectors(tmp_path / "all.parquet", texts, x[:1])
    assert len(pq.read_table(tmp_path / "all.parquet")) == 3


@pytest.mark.parametrize("is_link", [True, False])
def test_a_pipe_or_a_device_in_the_place_of_a_verdict_is_refused(tmp_path: Path, *, is_link: bool) -> None:
    save_space(Unchanged(), tmp_path / "space")
    place = tmp_path / "space/verdict.json"
    place.symlink_to("/dev/zero") if is_link else os.mkfifo(place)
    with pytest.raises(ArtifactError, match="a decision cannot be read"):
        require_encoder(tmp_path / "space", "wordllama")


def test_a_file_from_which_an_appended_text_would_take_something_is_refused(tmp_path: Path) -> None:
    """Further columns were dropped, and float64 became float32."""
    path, ones = tmp_path / "v.parquet", np.ones((1, 3), dtype=np.float32)
    for columns in (
        {"text": ["a"], "vector": fixed_lists(ones), "label": ["kept?"]},
        {"text": ["a"], "vector": fixed_lists(ones.astype(np.float64))},
        {"text": ["a", "b"], "vector": pa.array([[1.0], [1.0, 2.0]], pa.list_(pa.float32()))},
        {"text": ["a", "b"], "vector": pa.array([[1.0], None], pa.list_(pa.float32()))},
        {"text": ["a"], "vector": pa.array([[None, 1.0, 1.0]], pa.list_(pa.float32()))},
    ):
        pq.write_table(pa.table(columns), path)
        before = path.read_bytes()
        with pytest.raises(DataError, match="others can be added"):
            append_vectors(path, ["b"], ones)
        assert path.read_bytes() == before
    pq.write_table(pa.table({"text": ["a"], "vector": pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float32()))}), path)
    assert append_vectors(path, ["b"], ones) == (1, 2)
    assert pq.read_table(path).column("vector").to_pylist() == [[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]


def test_texts_that_two_processes_add_at_once_are_all_kept_once(tmp_path: Path) -> None:
    path, ones = tmp_path / "v.parquet", np.ones((3, 3), dtype=np.float32)
    with (tmp_path / ".v.parquet.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        adders = [
            threading.Thread(target=append_vectors, args=(path, [f"a {number}", f"b {number}", "both"], ones))
            for number in range(4)
        ]
        for adder in adders:
            adder.start()
        time.sleep(0.2)  # time in which a thread that did not wait for the lock would write
        assert not path.exists()
    for adder in adders:
        adder.join()
    wanted = ["both", *(f"{letter} {number}" for letter in "ab" for number in range(4))]
    assert sorted(pq.read_table(path).column("text").to_pylist()) == sorted(wanted)


def test_two_decisions_do_not_write_into_one_folder_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder could hold the space of one decision and the verdict of the other."""
    monkeypatch.setattr("sentfold.decision.use.PATIENCE", 0.1)
    with (
        renewed(tmp_path / "to"),
        pytest.raises(ArtifactError, match="another process"),
        renewed(tmp_path / "to"),
    ):
        pass
    with renewed(tmp_path / "to"):
        pass
    assert [path.name for path in (tmp_path / "to").iterdir()] == [".decision.lock"]


def test_a_decision_that_cannot_be_written_leaves_the_earlier_one(tmp_path: Path) -> None:
    """As on a full disk."""
    earlier = {"verdict.json": RECORD, "notes.txt": "a text of somebody else"}
    for name, text in earlier.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ArtifactError, match="No space left"), renewed(tmp_path) as fresh:
        assert list(fresh.iterdir()) == []
        (fresh / "space.safetensors").write_bytes(b"new")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.name != ".decision.lock"} == earlier
    with renewed(tmp_path) as fresh:
        (fresh / "space.safetensors").write_bytes(b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".decision.lock", "notes.txt", "space.safetensors"]


def test_of_a_decision_settings_come_before_their_arrays_and_the_verdict_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process leaves no arrays without settings, which the next decision would take for somebody else's."""
    names = ["verdict.json", "space.safetensors", "encoder.safetensors", "space.json", "encoder.json", "verdict.html"]
    moved: list[str] = []
    move = Path.replace

    def note(path: Path, to: Path) -> Path:
        moved.append(Path(to).name)
        return move(path, to)

    monkeypatch.setattr(Path, "replace", note)
    with renewed(tmp_path) as fresh:
        for name in names:
            (fresh / name).touch()
    assert moved[-1] == "verdict.json" and sorted(moved) == sorted(names)
    assert all(moved.index(f"{one}.json") < moved.index(f"{one}.safetensors") for one in ("space", "encoder"))


def test_nothing_of_a_folder_in_which_others_write_becomes_part_of_a_decision(tmp_path: Path) -> None:
    """Files of the user behind a link `.decision.new` of another account were moved to that account's folder."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private/letter.txt").write_text("dear")
    (tmp_path / "to").mkdir()
    (tmp_path / "to/.decision.new").symlink_to(tmp_path / "private")
    with renewed(tmp_path / "to") as fresh:
        assert fresh.stat().st_mode & 0o777 == 0o700
        assert not fresh.is_relative_to(tmp_path / "to")
        (fresh / "verdict.json").touch()
    assert (tmp_path / "private/letter.txt").read_text() == "dear"
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == [
        ".decision.lock", ".decision.new", "verdict.json",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["verdict.json", "verdict.html", "space.json", "space.safetensors", "encoder.json"])
def test_a_file_of_another_program_is_not_replaced_in_python_either(tmp_path: Path, name: str) -> None:
    """`compare --to verdict.json` writes the same keys but `candidates`."""
    content = '{"verdict": "A is better", "metric": "Spearman", "items": 5, "names": ["A", "B"]}'
    (tmp_path / name).write_text(content)
    with pytest.raises(ParameterError, match="no decision wrote"), renewed(tmp_path) as fresh:
        (fresh / "verdict.json").write_text(RECORD)
    assert (tmp_path / name).read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_disk_that_is_full_at_the_end_leaves_the_earlier_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "verdict.json").write_text(RECORD)
    (tmp_path / "space.json").write_text('{"kind": "unchanged"}')
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    copy = shutil.copyfile

    def fill(source: Path, target: Path) -> Path:
        if Path(source).name == "encoder.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        return copy(source, target)

    monkeypatch.setattr(shutil, "copyfile", fill)
    with pytest.raises(ArtifactError, match="ENOSPC"), renewed(tmp_path) as fresh:
        for name in ("encoder.json", "space.json", "verdict.json"):
            (fresh / name).touch()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != ".decision.lock"} == before


def test_vectors_of_another_space_or_encoder_are_not_mixed_with_those_of_a_file(tmp_path: Path) -> None:
    """`append` took any space of the same width; `similar` mapped vectors a second time that `append` had mapped."""
    texts = [f"The {noun} {verb}." for noun in ("dog", "cat", "snow", "price") for verb in ("sleeps", "falls", "rose")]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    (tmp_path / "new.txt").write_text("A harbour in the snow.")
    turned = np.random.default_rng(0).normal(size=(256, 256))
    save_space(LinearSpace(LinearMap(np.zeros(256), turned, np.ones(256))), tmp_path / "space")
    save_space(Unchanged(), tmp_path / "plain")
    own, target = tmp_path / "own.parquet", tmp_path / "all.parquet"
    append.command(tmp_path / "texts.txt", own, "wordllama", tmp_path / "plain")
    append.command(tmp_path / "texts.txt", target, "wordllama", tmp_path / "space")
    for path, space in ((own, "space"), (target, "plain")):
        before = path.read_bytes()
        with pytest.raises(DataError, match="another encoder or space"):
            append.command(tmp_path / "new.txt", path, "wordllama", tmp_path / space)
        assert path.read_bytes() == before
    append.command(tmp_path / "new.txt", target, "wordllama", tmp_path / "space")
    with pytest.raises(DataError, match="another encoder or space"):
        similar.command("A dog.", tmp_path / "texts.txt", "wordllama", vectors=target, space=tmp_path / "space", top=1)
    similar.command("A dog.", tmp_path / "texts.txt", "wordllama", vectors=own, space=tmp_path / "space", top=1)
    # A space of vectors of other lengths has another mean.
    np.save(tmp_path / "long.npy", 5 * encode_by_name("wordllama", texts).vectors)
    with pytest.raises(DataError, match="other lengths than the encoder gives"):
        similar.command(
            "A dog.", tmp_path / "texts.txt", "wordllama", vectors=tmp_path / "long.npy", space=tmp_path / "space"
        )
    for space in (None, tmp_path / "plain"):  # the cosine is that of any lengths
        similar.command("A dog.", tmp_path / "texts.txt", "wordllama", vectors=tmp_path / "long.npy", space=space)


def test_a_decision_that_names_no_encoder_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "texts.txt").write_text("The dog sleeps.\nThe cat falls.")
    save_space(Unchanged(), tmp_path / "space")
    append.command(tmp_path / "texts.txt", tmp_path / "v.parquet", "wordllama", tmp_path / "space")
    similar.command("A dog.", tmp_path / "texts.txt", "wordllama", space=tmp_path / "space")
    assert (
        capsys.readouterr().err.count("names no encoder, so nothing shows that its vectors were those of wordllama")
        == 2
    )
    write_json(tmp_path / "space/verdict.json", {"inputs": {"encoder": "wordllama", **hash_encoder("wordllama")}})
    similar.command("A dog.", tmp_path / "texts.txt", "wordllama", space=tmp_path / "space")
    assert "names no encoder" not in capsys.readouterr().err


def test_vectors_of_an_earlier_state_of_the_texts_show_no_other_text(tmp_path: Path) -> None:
    texts = [f"{thing} number {n}" for n in range(20) for thing in ("a lamp", "a laptop", "snow", "a harbour")]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    x = encode_by_name("wordllama", texts).vectors
    np.save(tmp_path / "now.npy", x)
    np.save(tmp_path / "then.npy", np.concatenate([x[:40], x[41:], x[:1]]))  # one text was deleted, one came in
    similar.command("snow number 15", tmp_path / "texts.txt", "wordllama", vectors=tmp_path / "now.npy", top=3)
    with pytest.raises(DataError, match="or of other texts"):
        similar.command("snow number 15", tmp_path / "texts.txt", "wordllama", vectors=tmp_path / "then.npy", top=3)
    np.save(tmp_path / "turned.npy", x[:, ::-1])  # as of another encoder: nothing is near, which says nothing
    with pytest.raises(DataError, match="another encoder or space"):
        similar.command("snow", tmp_path / "texts.txt", "wordllama", vectors=tmp_path / "turned.npy", least=0.9)


def test_rounding_of_texts_that_a_space_holds_makes_them_no_other_vectors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 24)).astype(np.float32)
    texts = [f"text {row}" for row in range(len(x))]
    space, path = SmoothedSpace(x, 5, 0.5), tmp_path / "v.parquet"
    append_vectors(path, texts, space.transform(x))
    require_same_file(path, space, lambda held: space.transform(x[: len(held)] + np.float32(1e-6)))
    with pytest.raises(DataError, match="another encoder or space"):
        require_same_file(path, space, lambda held: x[: len(held)])


def test_a_link_in_the_place_of_the_lock_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".v.parquet.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="no lock can be made"):
        append_vectors(tmp_path / "v.parquet", ["a"], np.ones((1, 3), dtype=np.float32))
    assert not (tmp_path / "elsewhere").exists()


def test_vectors_and_images_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    space = LinearSpace(LinearMap(np.zeros(2), np.full((2, 2), 1e300), np.ones(2)))
    with pytest.raises(ArtifactError, match="not finite"):
        map_vectors(space, np.ones((1, 2), dtype=np.float32), tmp_path)
    with pytest.raises(DataError, match="not finite"):
        map_vectors(space, np.array([[np.nan, 1]], dtype=np.float32), tmp_path)


def test_a_space_that_smooths_by_a_negative_amount_is_refused(tmp_path: Path) -> None:
    save_space(SmoothedSpace(np.eye(3), 1, -0.5), tmp_path)
    with pytest.raises(ArtifactError, match=r"amount -0\.5"):
        load_space(tmp_path)


def test_documents_are_appended_and_encoded_with_their_titles_as_they_are_judged(tmp_path: Path) -> None:
    (tmp_path / "d/qrels").mkdir(parents=True)
    documents = [{"_id": f"d{row}", "title": f"Title {row}", "text": "the same text"} for row in range(3)]
    queries = [{"_id": f"q{row}", "text": f"which title {row}"} for row in range(2)]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (tmp_path / f"d/{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "d/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t1\n")
    judged = read_dataset(tmp_path / "d").texts
    assert tuple(read_texts(tmp_path / "d", {})[0]) == judged
    found, notes = read_texts(tmp_path / "d/corpus.jsonl", {})
    assert tuple(found) == judged[:3] == tuple(f"Title {row} the same text" for row in range(3))
    assert any("titles stand before the texts" in note for note in notes)
    assert read_dataset(tmp_path / "d/corpus.jsonl").texts == judged[:3]


def test_texts_are_searched_whatever_their_labels_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("text,label\nA dog sleeps.,\nSnow falls.,x\nSnow falls.,\n")
    similar.command("A dog.", tmp_path / "t.csv", "wordllama", top=5)
    assert [line.split("  ")[1] for line in capsys.readouterr().out.splitlines()] == ["A dog sleeps.", "Snow falls."]
