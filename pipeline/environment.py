"""Which environment variables reach a stage, and which of them travel to workers: the one list of them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

# Of the machine that a stage runs on: its account, terminal, libraries, network and processors. They do not travel.
MACHINE = (
    "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TERM", "COLUMNS", "NO_COLOR",
    "XDG_*", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHASHSEED", "VIRTUAL_ENV", "MPLCONFIGDIR", "SENTFOLD_*",
    "DVC_SITE_CACHE_DIR", "DVC_GLOBAL_CONFIG_DIR", "DVC_SYSTEM_CONFIG_DIR", "HF_HUB_*",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "ATEN_*", "CUDA_*", "MALLOC_*", "MKL_*", "NPY_*", "NUMBA_*", "OMP_*", "ONEDNN_*", "OPENBLAS_*", "TORCH_*",
)  # fmt: skip

# Of the user, for downloads: they travel to workers on other machines.
DOWNLOADS = (
    "SENTFOLD_MIRROR", "SENTFOLD_VECTORS", "SENTFOLD_CACHE", "HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE",
)  # fmt: skip

FOLDERS = ("SENTFOLD_MIRROR", "SENTFOLD_VECTORS", "SENTFOLD_CACHE", "HF_HOME", "HF_HUB_CACHE")  # of these

# The same, but secret: they travel encrypted or not at all.
TOKENS = ("HF_TOKEN",)

# A password with a slash in it parts an address that nobody can read.
ADDRESSES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_ENDPOINT")

# The address of a server with its user's password. That of a proxy may lack `http://`.
PASSWORD = re.compile(r"(^|://)[^/]*:[^/]*@|://[^/]*@")

# Names of what opens something, such as HF_HUB_TOKEN.
SECRET = re.compile(r"(TOKEN|KEY|SECRET|PASSWORD)$", re.IGNORECASE)

# Of the programs that start stages; no stage sees them.
STARTERS = ("PREFECT_*", "DASK_*")

# What opens a DVC remote. `dvc pull` and `dvc push` see them, and no stage.
REMOTES = ("AWS_*", "AZURE_*", "GOOGLE_*", "OSS_*", "SSH_AUTH_SOCK", "KRB5*")

# Settings of git that are numbered: the name of one, and its value.
GIT_KEY, GIT_VALUE = "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"


def stage_environment(sent: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of dvc and of the stages: `python` is this interpreter; no telemetry; no secret of others.

    sent  variables that travelled here, which replace those of this machine
    """
    # No resolve(): a venv's python is a link, and its target does not know the venv's libraries.
    folder = str(Path(sys.executable).parent)
    return {
        **_chosen(*MACHINE, *DOWNLOADS, *TOKENS),
        **_trusted_checkouts(),
        **(sent or {}),
        "PATH": os.pathsep.join([folder, os.environ.get("PATH", os.defpath)]),
        "PYTHONUNBUFFERED": "1",
        "DVC_NO_ANALYTICS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }


def audit_environment() -> dict[str, str]:
    """The environment of a stage that an audit runs again, which may be a stranger's: without tokens and passwords.

    The stage runs in another folder, so folders of this one are named from the root.
    """
    return {
        name: str(Path(value).absolute()) if name in FOLDERS and Path(value).is_dir() else value
        for name, value in stage_environment().items()
        if not SECRET.search(name) and not PASSWORD.search(value) and not ("@" in value and name.upper() in ADDRESSES)
    }


def flow_environment() -> dict[str, str]:
    """The environment of a flow, and so of the Dask workers that it starts: a stage's, and Prefect's and Dask's own."""
    return {**stage_environment(), **_chosen(*STARTERS)}


def remote_environment() -> dict[str, str]:
    """The environment of a dvc that talks to a remote and starts no stage."""
    return {**stage_environment(), **_chosen(*REMOTES)}


def travelling(*, encrypted: bool) -> dict[str, str]:
    """The variables that a stage takes along to a worker on another machine."""
    chosen = _chosen(*DOWNLOADS, *(TOKENS if encrypted else ()))
    return {name: value for name, value in chosen.items() if encrypted or not PASSWORD.search(value)}


def _trusted_checkouts() -> dict[str, str]:
    """Of git's settings that are variables, those that say whose checkouts git opens; others can hold passwords."""
    keys = [name for name, key in os.environ.items() if name.startswith(GIT_KEY) and key.lower() == "safe.directory"]
    found = {}
    for place, name in enumerate(sorted(keys)):
        found[f"{GIT_KEY}{place}"] = os.environ[name]
        found[f"{GIT_VALUE}{place}"] = os.environ.get(f"{GIT_VALUE}{name.removeprefix(GIT_KEY)}", "")
    return found | {"GIT_CONFIG_COUNT": str(len(keys))} if keys else {}


def _chosen(*names: str) -> dict[str, str]:
    """The variables whose names match one of `names`. Case does not count, and `*` matches any letters."""
    return {
        name: value for name, value in os.environ.items() if any(fnmatchcase(name.upper(), known) for known in names)
    }
