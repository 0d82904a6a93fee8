"""Examples of which no test starts the real thing: their form."""

from __future__ import annotations

import copy
import os
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID
from pathspec import PathSpec

from tests.flows.checkout import SOURCE, settings_of


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((SOURCE / "flows/examples/kubernetes.yaml").read_text()))


def test_the_manifest_for_kubernetes_fits_its_schema_and_a_wrong_key_does_not() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    for document in documents():
        validate.validate(document, validate.latest_version(), strict=True)
    wrong = copy.deepcopy(documents()[-1])
    wrong["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    with pytest.raises(validate.ValidationError):
        validate.validate(wrong, validate.latest_version(), strict=True)


def test_what_a_container_of_the_manifest_mounts_and_reads_exists_there() -> None:
    known = {document["metadata"]["name"] for document in documents()}
    for document in documents():
        pod = document["spec"]["template"]["spec"] if document["kind"] == "Deployment" else {}
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        for container in (*pod.get("initContainers", []), *pod.get("containers", [])):
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert {source["configMapRef"]["name"] for source in container.get("envFrom", [])} <= known


@pytest.mark.slow
def test_the_first_key_of_a_fresh_clone_is_made_and_where_none_can_be_the_example_sets_nothing(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "SENTFOLD_KEY": str(tmp_path / "tmp/dask")}
    (tmp_path / "file").touch()
    settings = settings_of("dask-tls.sh", environment)
    certificate = Path(settings["DASK_DISTRIBUTED__COMM__TLS__WORKER__CERT"])
    assert certificate.is_file() and certificate.parent.stat().st_mode & 0o777 == 0o700
    assert certificate.with_suffix(".key").stat().st_mode & 0o777 == 0o600
    read = ["sh", "-c", f". {shlex.quote(str(SOURCE))}/flows/examples/dask-tls.sh && env"]
    run = partial(subprocess.run, read, capture_output=True, text=True, check=False)
    nowhere = run(env={**environment, "SENTFOLD_KEY": str(tmp_path / "file/dask")})
    assert nowhere.returncode and "error: no key could be written" in nowhere.stderr and not nowhere.stdout
    tools = tmp_path / "tools"  # without openssl, as on a worker that a key was copied to
    tools.mkdir()
    for name in ("sh", "mkdir", "chmod", "dirname", "env"):
        (tools / name).symlink_to(str(shutil.which(name)))
    bare = run(env={**environment, "PATH": str(tools)})
    assert bare.returncode == 0 and str(certificate) in bare.stdout
    certificate.write_bytes(before := expired_certificate(certificate.with_suffix(".key").read_bytes()))
    expired = run(env=environment)
    assert expired.returncode and "has expired. Remove it" in expired.stderr and not expired.stdout
    assert certificate.read_bytes() == before  # other machines have a copy


def expired_certificate(key: bytes) -> bytes:
    """A certificate of a private key, that ended yesterday."""
    private = load_pem_private_key(key, None)
    assert isinstance(private, RSAPrivateKey)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sentfold")])
    end = datetime.now(UTC) - timedelta(days=1)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(private.public_key())
    made = made.serial_number(1).not_valid_before(end - timedelta(days=30)).not_valid_after(end)
    return made.sign(private, hashes.SHA256()).public_bytes(Encoding.PEM)


def test_dask_s_commands_look_for_modules_in_no_folder_that_another_user_can_make(tmp_path: Path) -> None:
    """Dask puts its scratch folder at the front of sys.path; its own place is dask-scratch-space in /tmp."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    environment |= settings_of("dask-tls.sh", {**environment, "SENTFOLD_KEY": str(tmp_path / "key/dask")})
    scratch = Path(environment["DASK_TEMPORARY_DIRECTORY"])
    assert scratch.stat().st_mode & 0o777 == 0o700 and scratch.stat().st_uid == os.getuid()
    asked = "from dask import config; print(config.get('temporary-directory'))"
    read = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=True)
    assert Path(read.stdout.strip()) == scratch


def test_an_image_has_the_code_and_no_key_or_password_of_the_checkout_that_it_is_built_in() -> None:
    """`COPY . /sentfold` took the key of the cluster, and with it an image gave it to whoever may pull the image."""
    ignored = PathSpec.from_lines("gitignore", (SOURCE / ".dockerignore").read_text().splitlines())
    own = (
        ".dvc/config.local",
        ".dvc/tmp/dask.key",
        ".git/config",
        ".venv/.installed",
        ".sentfold/runs/a",
        "data/quick/a",
    )
    assert all(map(ignored.match_file, own))
    made_of = (
        "Makefile",
        "README.md",
        "hashes/packages.txt",
        "requirements-train.lock",
        "flows/flow.py",
        ".dvc/config",
    )
    assert not any(map(ignored.match_file, made_of))
    assert "COPY . /sentfold\n" in (SOURCE / "flows/examples/Containerfile").read_text()
