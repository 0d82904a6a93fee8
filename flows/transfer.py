"""Artifacts go from checkout to checkout through a DVC remote: `dvc pull` and `dvc push`, tried again if they fail."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.processes import Stop, dvc_command, dvc_environment, new_log, pause, start_guarded, wait_for
from flows.profile import Transfer
from pipeline.environment import remote_environment
from sentfold.errors import RunError

LOG = Path(".dvc/tmp/sentfold-logs/remote.log")
LAST_LINES = 8


@dataclass(frozen=True)
class Remote:
    """A DVC remote by the name that it has in DVC's configuration, and how patient to be with it."""

    name: str
    policy: Transfer

    def pull(self, targets: Sequence[str], root: Path, *, stop: Stop | None = None, missing: bool = False) -> None:
        """Bring outputs into a checkout, in the place of whatever is there.

        targets  stages, outputs, or a dvc.yaml
        missing  what the remote does not have is no error
        Raises RunError if each attempt fails.
        """
        self._run(["pull", "--force", *(["--allow-missing"] if missing else []), *targets], root, stop)

    def push(self, targets: Sequence[str], root: Path, *, stop: Stop | None = None) -> None:
        """Send the outputs of stages that the remote does not have. Raises RunError if each attempt fails."""
        self._run(["push", *targets], root, stop)

    def _run(self, words: list[str], root: Path, stop: Stop | None) -> None:
        log = root / LOG
        command = dvc_command(words[0], "--remote", self.name, *words[1:])
        environment = dvc_environment(root, remote_environment())
        for attempt in range(1, self.policy.attempts + 1):
            with new_log(log).open("wb") as output:
                process = start_guarded(command, cwd=root, env=environment, output=output)
                late = Deadline(time.monotonic() + self.policy.seconds, stop)
                code = wait_for(process, late)
            if code == 0:
                return
            if attempt == self.policy.attempts or (stop and stop.is_set()):
                raise self._failure(words[0], log, attempt, f"exit code {code}" if not late.is_set() else "no end")
            pause(self.policy.delay * attempt, stop)

    def _failure(self, verb: str, log: Path, attempts: int, how: str) -> RunError:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        return RunError(
            f"`dvc {verb}` failed, {attempts} times",
            where=f"remote '{self.name}'",
            expected=f"an end within {self.policy.seconds:g} s (run.yaml: retries.remote)",
            got="\n".join([how, *lines[-LAST_LINES:]]),
            state="stages that finished are kept, here or on the machine that made them",
            remedy="see to the remote, then run the same command again",
        )

    def require_verified(self, root: Path) -> None:
        """Raise RunError unless DVC knows the remote and compares each file that it reads there with its hash."""
        words = dvc_command("config", f"remote.{self.name}.verify")
        done = subprocess.run(words, cwd=root, env=remote_environment(), capture_output=True, text=True, check=False)
        if done.stdout.strip() != "true":
            raise RunError(
                "the remote is not set up",
                where=f"DVC's configuration: remote.{self.name}",
                expected="verify = true: by default DVC believes that a remote has what was sent to it",
                got=done.stdout.strip() or "nothing",
                state="no stage was started",
                remedy=f"dvc remote add {self.name} URL; dvc remote modify {self.name} verify true; commit .dvc/config",
            )


@dataclass(frozen=True)
class Deadline:
    """A Stop: set after a moment of time.monotonic(), or when another Stop is."""

    moment: float
    stop: Stop | None = None

    def is_set(self) -> bool:
        """Whether to end."""
        return time.monotonic() > self.moment or bool(self.stop and self.stop.is_set())
