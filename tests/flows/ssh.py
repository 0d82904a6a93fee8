"""An sshd on loopback for a DVC remote, with keys of its own, ended with the block that uses it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.flows.checkout import until


def missing() -> str:
    """Why sshd cannot be started here; "" if it can."""
    if not shutil.which("sshd"):
        return "not installed: sshd (apt-get install openssh-server)"
    return "" if os.geteuid() == 0 else "sshd lets accounts in as root alone"


@contextmanager
def ssh_server(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of an sshd on loopback with keys of its own, and the environment of a client that knows it."""
    home, port = folder / "home", _free_port()
    (home / ".ssh").mkdir(parents=True)
    for name in ("host", "client"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    (home / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    settings = {
        "ListenAddress": "127.0.0.1", "Port": port, "HostKey": folder / "host", "PidFile": "none", "UsePAM": "no",
        "AuthorizedKeysFile": folder / "client.pub", "StrictModes": "no", "PermitRootLogin": "prohibit-password",
        "PasswordAuthentication": "no", "Subsystem": "sftp internal-sftp",
    }  # fmt: skip
    (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    Path("/run/sshd").mkdir(exist_ok=True)
    words = [str(shutil.which("sshd")), "-D", "-e", "-f", str(folder / "sshd_config")]
    with (folder / "sshd.log").open("wb") as log:
        server = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        until(lambda: _answers(port), "sshd", seconds=60)
        yield f"ssh://127.0.0.1:{port}{folder}/store", {"HOME": str(home)}
    finally:
        server.terminate()
        server.wait(60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        return connection.recv(3) == b"SSH"
    return False
