"""How a run may use the machine: limits per kind of stage, and when to try again (run.yaml)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pydantic import Field

from flows.graph import group_of
from pipeline.base.params import read_yaml
from sentfold.errors import ParameterError
from sentfold.settings import Parameters, validate

PROFILE_FILE = Path("run.yaml")


class Kind(Parameters):
    """Stages that compete for something.

    stages   their names in dvc.yaml
    at_once  how many of them may run at a time, whatever `--jobs` says
    """

    stages: tuple[str, ...]
    at_once: int = Field(ge=1)


class Retry(Parameters):
    """How often a stage is tried, and how long after the first failure it is tried again, in seconds.

    The second repetition waits twice as long, the third three times, and so on.
    """

    attempts: int = Field(ge=1, le=20)
    delay: float = Field(ge=0, le=3600)


class Transfer(Retry):
    """The same for `dvc pull` and `dvc push`, each ended after some seconds: a remote may never answer."""

    seconds: float = Field(gt=0)


class Retries(Parameters):
    """When something is tried again.

    download    a server of texts or of a model did not answer
    contention  dvc failed, and the stage did not
    remote      a DVC remote that workers share refused, was full, or did not answer
    """

    download: Retry = Retry(attempts=3, delay=20)
    contention: Retry = Retry(attempts=6, delay=3)
    remote: Transfer = Transfer(attempts=4, delay=10, seconds=3600)


class RunProfile(Parameters):
    """What run.yaml holds; what it leaves out has these values."""

    kinds: dict[str, Kind] = {}
    retries: Retries = Retries()

    def kinds_of(self, stage: str) -> tuple[str, ...]:
        """The kinds that a stage, given by its address, belongs to."""
        return tuple(name for name, kind in self.kinds.items() if group_of(stage) in kind.stages)


def read_profile(root: Path, path: Path | None) -> RunProfile:
    """The profile in `path`, from `root`; without a path that of run.yaml, or the defaults if there is none.

    Raises ParameterError if there is no such file, or naming the key, its value and what is allowed.
    """
    if path is None and not (root / PROFILE_FILE).exists():
        return RunProfile()
    if path is not None and not (root / path).is_file():
        raise ParameterError(
            f"there is no run profile '{path}'",
            where="--profile",
            expected="a YAML file with the keys of run.yaml; its path begins at the root of the checkout",
            got="a folder" if (root / path).is_dir() else "no such file",
            state="no stage was started",
            remedy="correct the path, or leave out --profile, which takes run.yaml",
        )
    from sentfold.data.tables import refuse_holes

    place = path or PROFILE_FILE
    refuse_holes(root / place)
    content = read_yaml(root / place)
    # YAML has lists; a frozen model has tuples.
    kinds = content.get("kinds")
    for kind in kinds.values() if isinstance(kinds, dict) else ():
        if isinstance(kind, dict) and isinstance(kind.get("stages"), list):
            kind["stages"] = tuple(kind["stages"])
    return validate(RunProfile, content, where=str(place))


def check_profile(profile: RunProfile, groups: Collection[str], *, where: str) -> None:
    """Raise ParameterError if a kind names a stage that is not in `groups`: the kind would limit nothing."""
    for name, kind in profile.kinds.items():
        for stage in kind.stages:
            if stage not in groups:
                raise ParameterError(
                    f"the kind '{name}' names no stage of dvc.yaml",
                    where=f"{where}: kinds.{name}.stages",
                    expected=f"some of: {', '.join(sorted(groups))}",
                    got=stage,
                    remedy="correct the spelling or remove the name",
                )
