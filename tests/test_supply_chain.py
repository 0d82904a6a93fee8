"""What is installed: the same versions in the lock and in the hashes, and a bill of materials as CycloneDX has it."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from pipeline.lineage.machine import normal_name

ROOT = Path(__file__).parents[1]
HASHED = re.compile(r"^(\S+)==(\S+) --hash=sha256:([0-9a-f]{64})$")


def pins(name: str) -> dict[str, str]:
    """The versions that a file of hashes/ pins; every line of it must have one hash of full length."""
    lines = (ROOT / "hashes" / name).read_text().splitlines()
    found = [HASHED.match(line) for line in lines if not line.startswith("#")]
    assert all(found), f"a line of {name} is no pin with one sha256"
    return {normal_name(match[1]): match[2] for match in found if match}


def locked(name: str = "requirements.lock") -> dict[str, str]:
    lines = (ROOT / name).read_text().split()
    return {normal_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_the_hashes_pin_the_versions_of_the_lock() -> None:
    torch = {"torch": locked()["torch"]}
    assert pins("packages.txt") | torch == locked()
    assert pins("packages.txt").keys().isdisjoint({*torch, *pins("build.txt")})
    assert pins("torch-cuda.txt")["torch"] == pins("torch-cpu.txt")["torch"].partition("+")[0] == torch["torch"]


@pytest.mark.parametrize("name", ["cluster", "crate", "docs", "train"])
def test_the_hashes_of_a_further_environment_pin_the_versions_of_its_lock(name: str) -> None:
    assert pins(f"{name}.txt") == locked(f"requirements-{name}.lock")


def test_the_build_backend_is_pinned_and_young_enough_for_the_project() -> None:
    (least,) = re.findall(r'requires = \["setuptools>=(\d+)"\]', (ROOT / "pyproject.toml").read_text())
    assert int(pins("build.txt")["setuptools"].partition(".")[0]) >= int(least)


def test_what_is_installed_has_a_hash() -> None:
    """All but pip, which Python itself brings, the project, and the lock's versions of another machine."""
    have = {normal_name(package.metadata["Name"]): package.version for package in distributions()}
    known = pins("packages.txt").items() | pins("build.txt").items()
    known |= pins("cluster.txt").items() | pins("train.txt").items()
    known |= pins("torch-cpu.txt").items() | pins("torch-cuda.txt").items()
    assert {pin for pin in have.items() if pin[0] not in ("pip", "sentfold")} <= known


def test_pip_installs_by_hash_alone_and_refuses_another_file(tmp_path: Path) -> None:
    recipe = (ROOT / "Makefile").read_text()
    assert "HASHED = $(PIP) --require-hashes --no-deps" in recipe and recipe.count("$(HASHED) -r hashes/") == 7
    wheel = tmp_path / "six-1.17.0-py2.py3-none-any.whl"
    wheel.write_bytes(b"another file under a pinned name")
    (line,) = [line for line in (ROOT / "hashes/packages.txt").read_text().splitlines() if line.startswith("six==")]
    (tmp_path / "pins.txt").write_text(line)
    command = [sys.executable, "-m", "pip", "download", "--no-index", "--find-links", str(tmp_path), "--no-deps",
               "--require-hashes", "-r", str(tmp_path / "pins.txt"), "-d", str(tmp_path / "out")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "DO NOT MATCH THE HASHES" in done.stderr


@pytest.mark.slow
def test_dvc_keeps_its_pickles_where_no_other_user_can_write(tmp_path: Path) -> None:
    """DVC's own place for them is /var/tmp/dvc/repo, which it opens to everyone: who writes there runs code as us."""
    tmp_path = tmp_path / "a folder's name"  # of which make hands each part to DVC, where the recipe has no quotes
    tmp_path.mkdir()
    dvc = [sys.executable, "-m", "dvc"]
    subprocess.run([*dvc, "init", "-q", "--no-scm"], cwd=tmp_path, check=True)
    recipe = [
        line.strip().removeprefix("@") for line in (ROOT / "Makefile").read_text().splitlines() if "dvc-site" in line
    ]
    words = {"$(CURDIR)": str(tmp_path), "$(VENV)/bin/dvc": " ".join(dvc), "$(VENV)": "environment"}
    for name, text in words.items():
        recipe = [line.replace(name, text) for line in recipe]
    for line in recipe:
        subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True)
    (tmp_path / "data").write_text("text\n")
    subprocess.run([*dvc, "add", "-q", "data"], cwd=tmp_path, check=True)
    site = tmp_path / "environment/dvc-site"
    assert list(site.rglob("cache.db")), "DVC's state is in the private folder"
    assert stat.S_IMODE(site.stat().st_mode) == 0o700


# --- the bill of materials ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    command = [sys.executable, str(ROOT / ".ci/sbom.py")]
    return dict(json.loads(subprocess.check_output(command, cwd=ROOT)))


def test_the_bill_of_materials_has_the_fields_that_cyclonedx_requires(bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert type(bill["version"]) is int and bill["version"] >= 1
    parts = [bill["metadata"]["component"], *bill["components"]]
    for part in parts:
        assert part["type"] in ("application", "library") and part["name"]
        assert re.fullmatch(r"pkg:pypi/[a-z0-9-]+@[A-Za-z0-9.%]+", part["purl"])
        assert all(re.fullmatch("[0-9a-f]{64}", entry["content"]) for entry in part.get("hashes", []))
        said = part.get("licenses", [])
        assert (all("expression" in entry for entry in said) and len(said) <= 1) or all(
            ("id" in entry["license"]) != ("name" in entry["license"]) for entry in said
        )
    references = Counter(part["bom-ref"] for part in parts)
    assert set(references.values()) == {1}
    for entry in bill["dependencies"]:
        assert {entry["ref"], *entry["dependsOn"]} <= references.keys()


def test_a_further_environment_has_a_bill_of_its_own_with_the_hashes_of_its_lock(tmp_path: Path) -> None:
    (line,) = [line for line in (ROOT / "hashes/docs.txt").read_text().splitlines() if line.startswith("alabaster==")]
    name, version, digest = re.split(r"==| --hash=sha256:", line)
    about = tmp_path / ".venv-docs/lib/python3.11/site-packages" / f"{name}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nLicense: BSD\n")
    command = [sys.executable, str(ROOT / ".ci/sbom.py"), str(tmp_path / ".venv-docs")]
    found = json.loads(subprocess.check_output(command, cwd=ROOT))
    assert found["metadata"]["component"]["name"] == ".venv-docs"
    (part,) = found["components"]
    assert (part["name"], part["hashes"][0]["content"], part["licenses"]) == (
        name, digest, [{"license": {"name": "BSD"}}],
    )  # fmt: skip


def test_the_bill_of_materials_lists_what_is_installed_with_licences(bill: dict[str, Any]) -> None:
    names = {normal_name(package.metadata["Name"]) for package in distributions()}
    parts = {normal_name(part["name"]): part for part in bill["components"]}
    assert parts.keys() | {"sentfold"} == names
    assert parts["numba"]["licenses"] and parts["pyarrow"]["hashes"][0]["alg"] == "SHA-256"
    assert parts["scipy"]["bom-ref"] in {ref for entry in bill["dependencies"] for ref in entry["dependsOn"]}
    silent = [name for name, part in parts.items() if "licenses" not in part]
    assert len(silent) < 5, silent
