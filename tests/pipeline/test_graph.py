"""dvc.yaml against the code: what each stage declares, what it imports, and how long the graph is."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo
from dvc.stage import PipelineStage

from pipeline.base.params import load_parameters, read_yaml
from pipeline.base.suite import load_suite
from pipeline.plan import GROUPS
from sentfold.measures.registry import evaluate_parameters
from tests.checkout import make_checkout_with_suites

ROOT = Path(__file__).parents[2]
# 231: two spaces chosen for clustering, three stages each, a train and a test part of 20 Newsgroups, six cheap changes
# of the vectors that newer papers recommend, and 36 searches, of which each takes seconds.
BUDGETS = {
    "quick": 64,
    "paper": 231,
    "paper-mirror": 231,
    "beir": 51,
    "beir-mirror": 51,
    "layers-mirror": 64,
    "train-mirror": 96,
}
SPACES = 57  # rows that a reader still compares, and what a report judges together
CONTENT: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
STAGES: dict[str, Any] = {name: stage.get("do", stage) for name, stage in CONTENT.items()}
LAYERS = ("sentfold", "pipeline", "flows")
MODULES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))


# --- the graph as DVC sees it -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[PipelineStage]]]:
    """The stages of every suite, as DVC expands them in a fresh repository."""
    folder = make_checkout_with_suites(tmp_path_factory.mktemp("graph") / "checkout", corpora=None)
    with Repo(str(folder)) as repo:
        repo.index.check_graph()  # raises on a cycle, or on two stages that own one output
        stages: dict[str, list[PipelineStage]] = {}
        for stage in repo.index.stages:
            home = Path(stage.path).parent
            stages.setdefault("quick" if home == folder else home.name, []).append(stage)
        yield stages


def test_dvc_finds_the_stages_of_exactly_these_suites(graph: dict[str, list[PipelineStage]]) -> None:
    assert set(graph) == set(BUDGETS) == {"quick", *(path.parent.name for path in ROOT.glob("suites/*/suite.yaml"))}


@pytest.mark.slow
def test_dvc_runs_nothing_that_an_unpacked_folder_of_data_brings_along(tmp_path: Path) -> None:
    """A stage that says that it writes requirements.lock would come before every stage of the project."""
    run = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True)
    run([sys.executable, "-m", "dvc", "init", "--no-scm", "--quiet"])
    shutil.copy(ROOT / ".dvcignore", tmp_path)
    (tmp_path / "suites/mine").mkdir(parents=True)
    (tmp_path / "unpacked/deep").mkdir(parents=True)
    (tmp_path / "dvc.yaml").write_text("stages: {first: {cmd: touch a, deps: [lock], outs: [a]}}")
    (tmp_path / "suites/mine/dvc.yaml").write_text("stages: {second: {cmd: touch b, deps: [../../lock], outs: [b]}}")
    (tmp_path / "lock").write_text("a dependency")
    (tmp_path / "suites/zz/dvc.yaml").mkdir(parents=True)
    for folder, up in (("unpacked", "../"), ("unpacked/deep", "../../"), ("suites/zz/dvc.yaml", "../../../")):
        stages = {"foreign": {"cmd": "touch foreign", "outs": [{f"{up}lock": {"cache": False, "persist": True}}]}}
        (tmp_path / folder / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}))
        (tmp_path / folder / ".dvcignore").write_text("!dvc.yaml\n!*.dvc\n")
    (tmp_path / "unpacked/x.dvc").write_text("deps: [{path: dvc.yaml}]\nouts: [{path: ../lock}]\n")
    assert run([sys.executable, "-m", "dvc", "stage", "list", "--all", "--name-only"]).stdout.split() == [
        "first",
        "suites/mine/dvc.yaml:second",
    ]
    run([sys.executable, "-m", "dvc", "repro", "--all-pipelines"])
    assert (tmp_path / "suites/mine/b").exists()
    assert not [*tmp_path.rglob("foreign")]
    assert (tmp_path / "lock").read_text() == "a dependency"
    # The user's own file in the root is read.
    (tmp_path / "mine.csv").write_text("one")
    run([sys.executable, "-m", "dvc", "add", "--quiet", "mine.csv"])
    (tmp_path / "mine.csv").write_text("two")
    assert "mine.csv.dvc" in json.loads(run([sys.executable, "-m", "dvc", "status", "--json"]).stdout)


@pytest.mark.parametrize("suite", BUDGETS)
def test_a_suite_keeps_its_budget_of_stages(graph: dict[str, list[PipelineStage]], suite: str) -> None:
    # Every instance costs time in each run, stale or not.
    assert 0 < len(graph[suite]) <= BUDGETS[suite]


@pytest.mark.parametrize("suite", BUDGETS)
def test_a_suite_keeps_its_budget_of_spaces(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert len(load_suite(suite).spaces) <= SPACES


def test_every_space_without_regressions_is_a_space_of_some_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    unfitted = set(load_parameters(evaluate_parameters(), "evaluate").unfitted)
    assert unfitted <= {space for suite in BUDGETS for space in load_suite(suite).spaces}


@pytest.mark.parametrize("suite", BUDGETS)
def test_every_suite_runs_in_the_root_and_writes_under_its_own_name(
    graph: dict[str, list[PipelineStage]], suite: str
) -> None:
    root = Path(graph["quick"][0].wdir)
    for stage in graph[suite]:
        assert Path(stage.wdir) == root
        assert stage.cmd.endswith(f"--suite {suite}")
        for out in stage.outs:
            assert Path(out.fs_path).relative_to(root).parts[:2] in {("data", suite), ("reports", suite)}


def test_every_parameter_that_a_stage_names_exists(graph: dict[str, list[PipelineStage]]) -> None:
    named: dict[str, list[ParamsDependency]] = {}
    for stages in graph.values():
        for dep in (dep for stage in stages for dep in stage.deps if isinstance(dep, ParamsDependency)):
            named.setdefault(dep.fs_path, []).append(dep)
    assert named
    for path, deps in named.items():
        deps[0].params = sorted({key for dep in deps for key in dep.params})  # so that DVC reads a file once
        missing = set(deps[0].params) - set(deps[0].read_params())
        assert not missing, f"{path} lacks {missing}"


def test_every_file_that_a_stage_names_exists_or_is_made_by_another(graph: dict[str, list[PipelineStage]]) -> None:
    for stages in graph.values():
        made = [out.fs_path for stage in stages for out in stage.outs]
        for stage in stages:
            for dep in stage.deps:
                inside = any(
                    f"{dep.fs_path}/".startswith(f"{path}/") or path.startswith(f"{dep.fs_path}/") for path in made
                )
                assert inside or Path(dep.fs_path).exists(), f"{stage.addressing}: {dep.def_path}"


@pytest.mark.parametrize("suite", sorted(set(BUDGETS) - {"quick"}))
def test_the_graph_of_a_suite_is_a_link_to_the_one_graph(suite: str) -> None:
    link = ROOT / "suites" / suite / "dvc.yaml"
    assert link.is_symlink()
    assert link.readlink() == Path("../../dvc.yaml")


def test_every_group_of_parameters_is_used() -> None:
    content = read_yaml(ROOT / "params.yaml")
    assert set(GROUPS) == set(content)
    named = {str(entry).partition(".")[0] for stage in STAGES.values() for entry in stage.get("params", [])}
    assert set(GROUPS) <= named


def test_the_method_can_be_read_in_five_minutes() -> None:
    assert len((ROOT / "dvc.yaml").read_text(encoding="utf-8").splitlines()) <= 320


def test_a_suite_has_the_instances_that_its_plan_lists(
    graph: dict[str, list[PipelineStage]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    for suite in BUDGETS:
        planned = load_suite(suite).stages
        wanted = {f"{stage}@{key}" for stage, instances in planned.items() for key in instances}
        assert {stage.name for stage in graph[suite]} == wanted | {"plan", "report"}


# --- layers and packages ------------------------------------------------------------------------------


def imported_modules(path: Path) -> set[str]:
    """Dotted names of the project's modules that a file imports, at its top or in a function."""
    names: set[str] = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not followed here"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return {name for name in names if name.partition(".")[0] in LAYERS}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_file(name: str) -> Path | None:
    """The file of a dotted module of this repository, or None."""
    path = ROOT.joinpath(*name.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down_only(path: Path) -> None:
    own = LAYERS.index(path.relative_to(ROOT).parts[0])
    above = {name for name in imported_modules(path) if LAYERS.index(name.partition(".")[0]) > own}
    assert not above


def closure(stage: str) -> set[str]:
    """Every file of this repository that the module of a stage imports, directly or through others."""
    waiting, known = {ROOT / f"pipeline/stages/{stage}.py"}, set[Path]()
    while waiting:
        file = waiting.pop()
        known.add(file)
        found = {module_file(name) for name in imported_modules(file)}
        if file == ROOT / "sentfold/measures/registry.py":  # finds the measures by the names of their files
            found |= set((ROOT / "sentfold/measures").glob("*.py"))
        waiting |= {file for file in found if file is not None and file.name != "__init__.py"} - known
    return {str(file.relative_to(ROOT)) for file in known}


@pytest.mark.parametrize("stage", sorted(set(STAGES) - {"plan"}))
def test_a_stage_depends_on_the_packages_that_it_imports(stage: str) -> None:
    deps = [dep for dep in STAGES[stage]["deps"] if dep.split("/")[0] in LAYERS]
    lacking = {file for file in closure(stage) if not any(file == dep or file.startswith(f"{dep}/") for dep in deps)}
    assert not lacking, "dvc.yaml lacks these: an edit would not rerun the stage"


@pytest.mark.parametrize("stage", sorted(set(STAGES) - {"plan"}))
def test_a_stage_depends_on_no_package_that_it_does_not_import(stage: str) -> None:
    deps = {dep for dep in STAGES[stage]["deps"] if dep.split("/")[0] in LAYERS and "$" not in dep}
    files = closure(stage)
    # A method's own file brings its packages with it, which an import by name does not show.
    methods = {
        dep for dep in deps if dep.startswith("sentfold/") and any("${item.method}" in d for d in STAGES[stage]["deps"])
    }
    unused = {dep for dep in deps - methods if not any(file == dep or file.startswith(f"{dep}/") for file in files)}
    assert not unused, "nothing imports these: an edit would rerun the stage for nothing"


def groups_loaded(file: str, others: list[str]) -> set[str]:
    """The groups of params.yaml that a file loads in functions which a stage calls: its own, or named by `others`."""
    functions = {node.name: node for node in ast.walk(parse(ROOT / file)) if isinstance(node, ast.FunctionDef)}
    texts = [(ROOT / other).read_text(encoding="utf-8") for other in others]
    called = {name for name in functions if file.startswith("pipeline/stages/") or any(name in text for text in texts)}
    waiting = set(called)
    while waiting:
        words = {node.id for node in ast.walk(functions[waiting.pop()]) if isinstance(node, ast.Name)}
        waiting |= (words & functions.keys()) - called
        called |= words & functions.keys()
    groups = set()
    for call in [node for name in called for node in ast.walk(functions[name]) if isinstance(node, ast.Call)]:
        if isinstance(call.func, ast.Name) and call.func.id == "load_parameters":
            key = call.args[1].values[0] if isinstance(call.args[1], ast.JoinedStr) else call.args[1]
            assert isinstance(key, ast.Constant), ast.unparse(call)
            groups.add(str(key.value).partition(".")[0])
    return groups


@pytest.mark.parametrize("stage", sorted(set(STAGES) - {"plan"}))
def test_a_stage_tracks_every_group_of_parameters_that_its_code_loads(stage: str) -> None:
    named = {str(entry).partition(".")[0] for entry in STAGES[stage].get("params", []) if isinstance(entry, str)}
    files = closure(stage)
    loaded = {group for file in files for group in groups_loaded(file, [other for other in files if other != file])}
    assert loaded <= named
    assert named <= loaded


def libraries(tree: ast.AST) -> set[str]:
    """Top-level names of everything that `tree` imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    return names


@pytest.mark.parametrize("layer", ["sentfold", "pipeline"])
def test_the_mathematics_and_the_stages_know_neither_prefect_nor_dvc(layer: str) -> None:
    for path in (ROOT / layer).rglob("*.py"):
        assert not libraries(parse(path)) & {"prefect", "dvc", "dask", "distributed"}, path


def test_no_internals_of_dvc_or_prefect_are_imported() -> None:
    for path in MODULES:
        for name in [node.module for node in ast.walk(parse(path)) if isinstance(node, ast.ImportFrom) and node.module]:
            inside = name.partition(".")[0] in {"dvc", "prefect"}
            assert not (inside and any(part.startswith("_") for part in name.split("."))), f"{path}: {name}"


IMPORT = """
import sys
import sentfold
heavy = {"numpy", "scipy", "sklearn", "numba", "torch", "pyarrow", "pydantic", "polars"} & set(sys.modules)
assert not heavy, heavy
"""


def test_importing_the_library_loads_nothing_heavy() -> None:
    subprocess.run([sys.executable, "-c", IMPORT], cwd=ROOT, check=True)
