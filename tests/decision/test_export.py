"""An exported folder gives the library's vectors, and needs no sentfold where the map is linear."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sentfold.data.vectors import encode_texts
from sentfold.decision.compress import compress
from sentfold.decision.export import export_space, model_card
from sentfold.decision.spaces import LandmarkSpace, LinearSpace, Space, Unchanged, save_space
from sentfold.encoders.model_folder import refuse_unsafe
from sentfold.errors import ArtifactError, EncoderError, ParameterError
from sentfold.manifold.base.linear import LinearMap

TEXTS = ["A dog sleeps.", "Snow falls on the quiet harbour.", "", "prices rose by 3%"]
LOAD = """
import json, sys
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu", local_files_only=True, trust_remote_code=sys.argv[2] == "1")
vectors = model.encode(json.loads(sys.argv[3]), show_progress_bar=False)
print(json.dumps({"vectors": vectors.tolist(), "sentfold": "sentfold" in sys.modules}))
"""


def load_elsewhere(folder: Path, *, trusted: bool) -> dict[str, object]:
    command = [sys.executable, "-c", LOAD, str(folder), str(int(trusted)), json.dumps(TEXTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder.parent)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def plain() -> np.ndarray:
    return encode_texts("all-MiniLM-L6-v2", TEXTS)


def linear() -> Space:
    rng = np.random.default_rng(0)
    return LinearSpace(LinearMap(rng.normal(size=384) / 20, rng.normal(size=(384, 24)), np.ones(24)))


def landmarks(plain: np.ndarray) -> Space:
    rng = np.random.default_rng(1)
    return LandmarkSpace(
        (plain[:1] + rng.normal(size=(60, 384)) / 20).astype(np.float32), rng.normal(size=(60, 5)), 8, 1e-3
    )


def test_a_linear_map_is_loaded_by_sentence_transformers_alone(tmp_path: Path, plain: np.ndarray) -> None:
    save_space(linear(), tmp_path / "space")
    (tmp_path / ".model.partial").mkdir()
    (tmp_path / ".model.partial/killed.py").write_text("what a killed export left")
    apart = export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")
    loaded = load_elsewhere(tmp_path / "model", trusted=False)
    assert loaded["sentfold"] is False
    wanted = linear().transform(plain)
    assert np.abs(np.array(loaded["vectors"]) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert apart <= 1e-5
    assert not [*(tmp_path / "model").rglob("*.py"), *(tmp_path / "model").rglob("*.bin")]
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert len({path.stat().st_mode for path in files}) == 1  # who reads one reads all
    with pytest.raises(ParameterError, match="not empty"):
        export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")


@pytest.mark.slow
def test_landmarks_are_loaded_through_the_library_and_sentfold_encode_knows_the_folder(
    tmp_path: Path, plain: np.ndarray
) -> None:
    space = landmarks(plain)
    save_space(space, tmp_path / "space")
    export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")
    loaded = load_elsewhere(tmp_path / "model", trusted=True)
    assert np.abs(np.array(loaded["vectors"]) - space.transform(plain)).max() <= 1e-5 * 5
    assert np.allclose(encode_texts(str(tmp_path / "model"), TEXTS), space.transform(plain), atol=5e-5)
    (tmp_path / "model/evil.py").write_text("raise SystemExit('code of the folder ran')")
    with pytest.raises(EncoderError, match="run code"):
        refuse_unsafe("model", tmp_path / "model")


def test_the_card_says_what_was_fitted_on_what_with_intervals_and_hashes(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    left, alike = rng.normal(size=(200, 384)), rng.uniform(size=200)
    right = alike[:, None] * left + np.sqrt(1 - alike**2)[:, None] * rng.normal(size=(200, 384))
    found = compress(np.concatenate([left, right]), pairs=(np.arange(200), np.arange(200, 400), alike), resamples=200)
    found.save(tmp_path / "space")
    save_space(Unchanged(), tmp_path / "space")
    export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")
    card = (tmp_path / "model/README.md").read_text()
    assert found.verdict in card
    form = found.forms[0]
    assert f"| {form.code.name} | {form.difference:+.2f} | {form.low:+.2f} | {form.high:+.2f} |" in card
    assert "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db" in card  # MiniLM's weights


def test_a_space_of_another_width_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    save_space(LinearSpace(LinearMap(np.zeros(7), np.eye(7), np.ones(7))), tmp_path / "space")
    with pytest.raises(ParameterError, match="another encoder"):
        export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")
    shutil.rmtree(tmp_path / "space")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("record", ["[" * 100_000, "[]", "{", '{"forms": [{}]}', '{"candidates": [{"name": "pca"}]}'])
def test_a_verdict_that_is_none_is_an_error_that_names_it(tmp_path: Path, record: str) -> None:
    save_space(linear(), tmp_path)
    (tmp_path / "verdict.json").write_text(record)
    with pytest.raises(ArtifactError, match="verdict cannot be read") as caught:
        model_card(tmp_path, linear(), "a", {}, plain=True)
    assert caught.value.where == str(tmp_path / "verdict.json")
