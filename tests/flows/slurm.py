"""Slurm with two nodes on this machine: Debian's slurm-wlm and munge, set up in a folder, ended by process."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.flows.checkout import until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool.%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=4000
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why Slurm cannot be started here; "" if it can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "slurmd starts jobs as root alone"


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """What the environment of sbatch and its kin needs, for the length of a `with` block."""
    key, conf = folder / "munge.key", folder / "slurm.conf"
    (folder / "state").mkdir(parents=True)
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    conf.write_text(CONF.format(host=socket.gethostname(), folder=folder, ports=_free_ports(3)))
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> None:
        log = (folder / f"{words[0]}.out").open("ab")
        started.append(subprocess.Popen(words, env=environment, stdout=log, stderr=log))

    def nodes() -> str:
        command = ["sinfo", "--noheader", "--Node", "--format=%T"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout

    try:
        start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files)
        until((folder / "munge.socket").exists, "munge", seconds=60)
        start("slurmctld", "-D", "-c")
        for name in ("one", "two"):
            start("slurmd", "-D", "-N", name)
        until(lambda: nodes().split() == ["idle", "idle"], "two nodes", seconds=120)
        yield {"SLURM_CONF": str(conf)}
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(60)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
