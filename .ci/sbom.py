"""Print which distributions are installed here, with their licences and hashes, as CycloneDX 1.6.

    make sbom
    python .ci/sbom.py [ENVIRONMENT]     a folder such as .venv-docs, instead of the environment of this Python

One component per distribution of the environment. A licence is the expression of its metadata where it has one, else
the field `License` where that is one line, else its classifiers; a distribution that says nothing has no licence here.
A hash is that of the file in hashes/. The same environment gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

PROJECT = "sentfold"
PIN = re.compile(r"^(\S+)==(\S+) --hash=sha256:([0-9a-f]{64})$", re.MULTILINE)


def normal(name: str) -> str:
    """The name of a distribution as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def reference(name: str, version: str) -> str:
    """The package URL of a distribution; a `+` is written %2B in it."""
    return f"pkg:pypi/{normal(name)}@{version.replace('+', '%2B')}"


def licences(package: Distribution) -> list[dict[str, Any]]:
    """The licences of a distribution in CycloneDX's form."""
    about = package.metadata
    if about.get("License-Expression"):
        return [{"expression": about["License-Expression"]}]
    name = (about.get("License") or "").strip()
    classified = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if line.startswith("License")]
    names = [name] if name and "\n" not in name and name != "UNKNOWN" else classified
    return [{"license": {"name": name}} for name in names]


def component(package: Distribution, hashes: dict[tuple[str, str], str]) -> dict[str, Any]:
    """One distribution as a component."""
    name, version = package.metadata["Name"], package.version
    found: dict[str, Any] = {"type": "library", "bom-ref": reference(name, version), "name": name, "version": version}
    found["purl"] = found["bom-ref"]
    digest = hashes.get((normal(name), version))
    if digest:
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
    said = licences(package)
    return found | ({"licenses": said} if said else {})


def bill(environment: Path | None = None) -> dict[str, Any]:
    """The whole document, of this Python's environment or of the virtual environment in a folder."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(Path("hashes").glob("*.txt")))
    hashes = {(normal(name), version): digest for name, version, digest in PIN.findall(text)}
    where = (
        {} if environment is None else {"path": [str(path) for path in environment.glob("lib/python*/site-packages")]}
    )
    packages = {normal(package.metadata["Name"]): package for package in distributions(**where)}
    own = {"type": "application", "name": environment.name, "bom-ref": environment.name} if environment else {}
    own = own or component(packages.pop(PROJECT), hashes) | {"type": "application"}
    needs = {normal(name): _needs(package, packages) for name, package in packages.items()}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [component(packages[name], hashes) for name in sorted(packages)],
        "dependencies": [
            {"ref": _reference(packages[name]), "dependsOn": needs[name]} for name in sorted(packages) if needs[name]
        ],
    }


def _reference(package: Distribution) -> str:
    return reference(package.metadata["Name"], package.version)


def _needs(package: Distribution, packages: dict[str, Distribution]) -> list[str]:
    """The installed distributions that one requires, extras apart."""
    lines = [line for line in package.requires or [] if "extra ==" not in line]
    names = {normal(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]) for line in lines}
    return sorted(_reference(packages[name]) for name in names & packages.keys())


if __name__ == "__main__":
    print(json.dumps(bill(*map(Path, sys.argv[1:])), indent=1, sort_keys=True, ensure_ascii=False))
