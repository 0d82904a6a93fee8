"""Whether dvc.yaml's stages, and the code that they run without listing it, are those that git has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

from pipeline.lineage.causes import Cause
from pipeline.lineage.phrases import brief
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import Stage, related

# Writes down and checks what stages did; nothing in it decides a number.
OBSERVERS = "lineage"


class DefinitionChecks:
    """What git's HEAD says of stages. A commit that is looked at by itself is its own witness."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.dvcfile = scope.graph.dvcfile

    def definition(self, stage: Stage) -> Iterator[Cause]:
        """A stage that dvc.yaml, or the suite file, defines otherwise than in git's HEAD."""
        if self.scope.revision is not None or self.scope.committed is None:
            return
        committed = self.scope.committed.stages.get(stage.name)
        told = "git's HEAD has no such stage" if committed is None else _differences(stage, committed)
        if told:
            place = f"{self.dvcfile}, stage {stage.name.partition('@')[0]}"
            yield Cause("definition", place, told, f"git checkout -- {self.dvcfile}, or commit it and the suite file")

    def unlisted_code(self, stage: Stage) -> Iterator[Cause]:
        """Files that Python runs before a stage's own: its package's entry, and what makes folders packages."""
        if self.scope.revision is not None or self.scope.head is None:
            return
        for path in entry_files(stage):
            here, head = self.scope.digest(path), self.scope.head_digest(path)
            if (here and here.md5) == (head and head.md5):
                continue
            found = "is not here" if here is None else "is not in git's HEAD" if head is None else "was edited here"
            remedy = f"remove or commit {path}" if head is None else f"git checkout -- {path}, or commit it"
            message = f"it {found}; stages run it, though none lists it"
            yield Cause("code", path, message, remedy)

    def edited_beside(self) -> list[str]:
        """Tracked Python files of the stages' package that no stage lists or runs unlisted, and that were edited."""
        if self.scope.revision is not None or self.scope.head is None:
            return []
        stages = self.scope.graph.stages.values()
        packages = {package for stage in stages if (package := package_of(stage))}
        deps = {path for stage in stages for path in (*stage.deps, *entry_files(stage))}
        return [
            path
            for path in self.scope.head.all_files()
            if path.endswith(".py")
            and path.partition("/")[0] in packages
            and PurePosixPath(path).parts[1] != OBSERVERS
            and not any(related(dep, path) for dep in deps)
            and ((here := self.scope.digest(path)) is None or here != self.scope.head_digest(path))
        ]


def package_of(stage: Stage) -> str:
    """The package of `python -m PACKAGE ...`; "" of any other command."""
    words = shlex.split(stage.command)
    return words[2] if words[:2] == ["python", "-m"] and len(words) > 2 else ""


def entry_files(stage: Stage) -> list[str]:
    """What Python runs of a stage's package that the stage does not list."""
    package = package_of(stage)
    if not package:
        return []
    modules = [PurePosixPath(dep) for dep in stage.deps if dep.startswith(f"{package}/")]
    folders = {folder.as_posix() for module in modules for folder in module.parents if folder.parts} | {package}
    files = [f"{package}/__main__.py", *(f"{folder}/__init__.py" for folder in sorted(folders))]
    return [file for file in files if not any(related(dep, file) for dep in stage.deps)]


def _differences(stage: Stage, committed: Stage) -> str:
    parts = []
    if stage.command != committed.command:
        parts.append(f"it runs '{brief(stage.command)}'; git's HEAD has '{brief(committed.command)}'")
    for what, ours, theirs in (
        ("deps", set(stage.deps), set(committed.deps)),
        ("outs", set(stage.outs), set(committed.outs)),
        ("params", _keys(stage), _keys(committed)),
    ):
        lacking, surplus = sorted(theirs - ours), sorted(ours - theirs)
        said = [f"lack {brief(', '.join(lacking))}"] if lacking else []
        said += [f"have {brief(', '.join(surplus))} too many"] if surplus else []
        parts += [f"against git's HEAD its {what} {' and '.join(said)}"] if said else []
    return "; ".join(parts)


def _keys(stage: Stage) -> set[str]:
    return {f"{file}: {key}" for file, keys in stage.params.items() for key in (keys or ("all",))}
