"""Write the sha256 of every distribution that the locks pin, for `pip install --require-hashes`.

    make hashes

Writes hashes/build.txt (the build backend), hashes/packages.txt (all pins but torch), hashes/torch-cpu.txt and
hashes/torch-cuda.txt (one binary of torch each) from requirements.lock, and hashes/cluster.txt, hashes/crate.txt,
hashes/docs.txt and hashes/train.txt from the locks of the same names, for Linux x86-64 and Python 3.11. The hashes are
those that the public index states; no wheel is downloaded. The CPU build of torch is not on the public index: its hash
is that of the file which pip's settings on this machine find (PyTorch's own index has it); its file stays as it is
where pip finds none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path("hashes")
LOCK = Path("requirements.lock")
FURTHER = ("cluster", "crate", "docs", "train")  # what is installed in addition, or apart, by requirements-NAME.lock
BACKEND = "setuptools"
# Settings of pip that could name another index than the public one.
SETTINGS = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX")


def resolve(python: str, *wanted: str, public: bool = True) -> dict[str, str]:
    """What pip would install, as `name==version` -> sha256. Raises CalledProcessError if it finds nothing."""
    environment = {name: value for name, value in os.environ.items() if not (public and name in SETTINGS)}
    if public:
        environment["PIP_CONFIG_FILE"] = os.devnull
    command = [python, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-", *wanted]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    items: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    described = ((item["metadata"], item["download_info"]["archive_info"]["hashes"]) for item in items)
    return {f"{about['name']}=={about['version']}": hashes["sha256"] for about, hashes in described}


def write(name: str, title: str, pins: dict[str, str]) -> None:
    """Write one file of requirements with their hashes."""
    lines = [f"{pin} --hash=sha256:{digest}" for pin, digest in sorted(pins.items(), key=lambda item: item[0].lower())]
    (FOLDER / name).write_text("\n".join([f"# {title} Written by `make hashes`.", *lines, ""]), encoding="utf-8")


def main() -> None:
    """Write the files."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = f"{folder}/bin/python"  # this Python's own pip may be one that downloads what it resolves
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", "pip"], check=True)
        pins = resolve(python, "--no-deps", "-r", str(LOCK))
        torch = next(pin for pin in pins if pin.startswith("torch=="))
        cuda = resolve(python, "-c", str(LOCK), torch)
        build = {pin: digest for pin, digest in cuda.items() if pin.startswith(f"{BACKEND}==")}
        write("build.txt", "The build backend, which is installed first.", build)
        write(
            "packages.txt",
            "What requirements.lock pins, but for torch.",
            {pin: pins[pin] for pin in pins if pin != torch},
        )
        further = {pin: digest for pin, digest in cuda.items() if pin == torch or pin not in {**pins, **build}}
        for name in FURTHER:
            lock = f"requirements-{name}.lock"
            write(f"{name}.txt", f"What {lock} pins.", resolve(python, "--no-deps", "-r", lock))
        write("torch-cuda.txt", "The build of torch on the public index, and the libraries that it needs.", further)
        try:
            cpu = resolve(python, "--no-deps", f"{torch}+cpu", public=False)
        except subprocess.CalledProcessError:
            print(f"pip finds no CPU build of {torch} here: hashes/torch-cpu.txt stays as it is", file=sys.stderr)
        else:
            write("torch-cpu.txt", "The CPU build of torch, on PyTorch's own index.", cpu)


if __name__ == "__main__":
    main()
