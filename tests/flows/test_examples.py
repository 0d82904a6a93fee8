"""Examples of which no test starts the real thing: their form."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from tests.flows.checkout import SOURCE


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
