"""dvc.yaml against the code: every stage names what it imports, and no suite has too many stages."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc.dependency.param import ParamsDependency
from dvc.repo import Repo
from dvc.stage import PipelineStage

from pipeline.encoders.embed import EmbedParameters
from pipeline.encoders.protocol import known_methods
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.params import GROUPS, load_parameters, read_yaml
from pipeline.selection.sensitivity_parameters import sensitivities_of
from pipeline.suite import load_suite
from tests.checkout import FILES

ROOT = Path(__file__).parents[1]
BUDGETS = {"quick": 55, "paper": 148, "paper-mirror": 148}
SPACES = 40  # rows that a reader still compares, and what a report judges together
STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
MODULES = sorted((ROOT / "pipeline").rglob("*.py"))


# --- the graph as DVC sees it -----------------------------------------------------------------------


def copy_checkout(folder: Path) -> Path:
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "suites", folder / "suites", symlinks=True)
    shutil.copytree(ROOT / "reports/benchmarks", folder / "reports/benchmarks")
    shutil.copytree(ROOT / "pipeline", folder / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[PipelineStage]]]:
    """The stages of every suite, as DVC expands them in a fresh repository."""
    folder = copy_checkout(tmp_path_factory.mktemp("checkout"))
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "-q"], cwd=folder, check=True, env=environment)
    with Repo(str(folder)) as repo:
        repo.index.check_graph()  # raises on a cycle, or on two stages that own one output
        stages: dict[str, list[PipelineStage]] = {}
        for stage in repo.index.stages:
            home = Path(stage.path).parent
            stages.setdefault("quick" if home == folder else home.name, []).append(stage)
        yield stages


def test_dvc_finds_the_stages_of_exactly_these_suites(graph: dict[str, list[PipelineStage]]) -> None:
    assert set(graph) == set(BUDGETS) == {"quick", *(path.parent.name for path in ROOT.glob("suites/*/suite.yaml"))}


@pytest.mark.parametrize("suite", BUDGETS)
def test_a_suite_keeps_its_budget_of_stages(graph: dict[str, list[PipelineStage]], suite: str) -> None:
    # A stage costs 10-20 ms in every run, stale or not, and that is what the budget protects: a run that finds
    # nothing to do is to take under 3 s in quick, under 6 s in a paper suite. Of the 148, 50 are the corpora of
    # every task, downloaded and embedded one by one so that a new one leaves the others alone.
    assert 0 < len(graph[suite]) <= BUDGETS[suite]


@pytest.mark.parametrize("suite", BUDGETS)
def test_a_suite_keeps_its_budget_of_spaces(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert len(load_suite(suite).spaces) <= SPACES


def test_every_space_without_regressions_is_a_space_of_some_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    unfitted = set(load_parameters(EvaluateParameters, "evaluate").unfitted)
    assert unfitted <= {space for suite in BUDGETS for space in load_suite(suite).spaces}


@pytest.mark.parametrize("suite", BUDGETS)
def test_a_suite_expands_to_every_corpus_and_space_it_lists(
    graph: dict[str, list[PipelineStage]], suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    content = load_suite(suite)
    manifolds = [f"{e}-{m}" for e in content.encoders for m in content.manifolds]
    transforms = [f"{e}-{t}" for e in content.encoders for t in content.transforms]
    selections = [f"{e}-{s}" for e in content.encoders for s in content.selections]
    graph_transforms = [f"{e}-{t}" for e in content.encoders for t in content.graph_transforms]
    wanted = {
        *(f"download@{corpus}" for corpus in content.corpora),
        "vocabulary",
        "word_counts",
        *(f"word_vectors@{source}" for source in content.makers.word_vectors),
        *(f"cluster_words@{clustering}" for clustering in content.makers.clusterings),
        *(f"embed@{corpus}-{encoder}" for corpus in content.corpora for encoder in content.encoders),
        *(f"knn_graph@{encoder}" for encoder in content.encoders),
        *(f"{stage}@{space}" for stage in ("reconstruction_weights", "eigensolve") for space in manifolds),
        *(f"transform@{space}" for space in transforms),
        *(f"graph_transform@{space}" for space in graph_transforms),
        *(f"{stage}@{space}" for stage in ("sweep", "selected") for space in selections),
        *(f"encode@{encoder}" for encoder in content.word_encoders),
        *(f"sensitivity@{encoder}" for encoder in sensitivities_of(content)),
        *(f"evaluate@{space}" for space in content.spaces),
        "report",
    }
    assert {stage.name for stage in graph[suite]} == wanted


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
    named = {
        (dep.fs_path, tuple(dep.params)): (stage, dep)  # most stages name the same keys of the same file
        for stages in graph.values()
        for stage in stages
        for dep in stage.deps
        if isinstance(dep, ParamsDependency)
    }
    assert named
    for stage, dep in named.values():
        there = dep.read_params()
        missing = [key for key in dep.params if key not in there]
        assert not missing, f"{stage.addressing}: {dep.fs_path} lacks {missing}"


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
    named = {str(entry).partition(".")[0] for stage in STAGES.values() for entry in stage["params"]}
    assert set(GROUPS) <= named


# --- the code that each stage imports ---------------------------------------------------------------


def module_file(name: str) -> Path | None:
    """The file of a dotted module of this repository, or None."""
    path = ROOT.joinpath(*name.split("."))
    found = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    return found[0] if found else None


def is_package(name: str) -> bool:
    """Whether a dotted name is a package of this repository."""
    file = module_file(name) if name.partition(".")[0] in {"pipeline", "flows"} else None
    return file is not None and file.name == "__init__.py"


def skip_type_checking(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that can run: what stands under `if TYPE_CHECKING:` never does."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from skip_type_checking(child)


def imported(tree: ast.AST) -> set[Path]:
    """Files of this repository that the code in `tree` imports, at its top or in a function."""
    names: set[str] = set()
    for node in skip_type_checking(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
            assert not any(is_package(alias.name) for alias in node.names), "import the module, not its package"
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed here"
            if is_package(str(node.module)):
                lazy = [alias.name for alias in node.names if not module_file(f"{node.module}.{alias.name}")]
                assert not lazy, f"the closure could not follow {lazy}: import from the module that holds it"
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = {module_file(name) for name in names if name.partition(".")[0] in {"pipeline", "flows"}}
    return {file for file in files if file is not None and file.name != "__init__.py"}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def command_of(stage: str) -> ast.FunctionDef:
    """The function of pipeline/__main__.py that the stage's command line calls."""
    called = re.fullmatch(r"python -m pipeline (\w+)(?: .*)?", STAGES[stage]["cmd"])
    assert called, STAGES[stage]["cmd"]
    functions = {node.name: node for node in parse(ROOT / "pipeline/__main__.py").body if hasattr(node, "name")}
    function = functions[called[1]]
    assert isinstance(function, ast.FunctionDef)
    return function


# The one file that imports by a computed name: find_method loads pipeline/encoders/<method>.py.
FINDER = ROOT / "pipeline/encoders/protocol.py"
METHOD_FILES = {FINDER.with_name(f"{method}.py") for method in known_methods()}


def closure(stage: str) -> set[Path]:
    """Every file of this repository that a run of the stage may import, pipeline/__main__.py aside."""
    waiting, known = imported(command_of(stage)), set[Path]()
    while waiting:
        file = waiting.pop()
        known.add(file)
        waiting |= (imported(parse(file)) | (METHOD_FILES if file == FINDER else set())) - known
    return known


def relative(files: set[Path]) -> set[str]:
    return {str(file.relative_to(ROOT)) for file in files}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_exactly_the_code_that_it_imports(stage: str) -> None:
    listed = {dep for dep in STAGES[stage]["deps"] if dep.endswith(".py")}
    folders = {dep for dep in STAGES[stage]["deps"] if (ROOT / dep).is_dir() and dep.startswith("pipeline/")}
    needed = relative(closure(stage))
    for folder in folders:
        inside = {file for file in needed if file.startswith(f"{folder}/")}
        assert inside, f"nothing in {folder} is imported"
        needed -= inside
    assert needed - listed == set(), "dvc.yaml lacks these: an edit would not rerun the stage"
    assert listed - needed == set(), "nothing imports these: an edit would rerun the stage for nothing"


IMPORT_EACH = """
import json, os, sys
import matplotlib.figure, numpy, polars, pyarrow.parquet, pydantic
import scipy.sparse, sklearn.decomposition, sklearn.linear_model, sklearn.neighbors
for stage, lines in json.loads(sys.argv[1]).items():
    sys.stdout.flush()
    if os.fork() == 0:
        exec(lines)
        files = [module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "pipeline"]
        print(json.dumps([stage, files]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, stage
"""


@pytest.mark.slow
def test_importing_a_stage_loads_nothing_that_the_closure_lacks() -> None:
    # The interpreter as second opinion on the closure: import what the command imports, and look.
    # One process loads the libraries and forks for each stage, which starts without our modules.
    lines = {
        stage: "\n".join(ast.unparse(node) for node in command_of(stage).body if isinstance(node, ast.ImportFrom))
        for stage in STAGES
    }
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH, json.dumps(lines)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = dict(json.loads(line) for line in done.stdout.splitlines())
    assert set(loaded) == set(STAGES)
    for stage, files in loaded.items():
        modules = {Path(file) for file in files if not file.endswith("__init__.py")}
        assert modules
        assert relative(modules) <= relative(closure(stage)), stage


def test_the_transformer_stage_stays_small() -> None:
    # Every file in it re-embeds every corpus when it is edited.
    files = relative(closure("embed"))
    assert len(files) <= 4
    assert EmbedParameters.__module__ == "pipeline.encoders.embed"
    assert "pipeline/encoders/embed.py" in files


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_tracks_every_group_of_parameters_that_its_code_loads(stage: str) -> None:
    named = {str(entry).partition(".")[0] for entry in STAGES[stage]["params"] if isinstance(entry, str)}
    loaded = set()
    for file in closure(stage):
        for node in ast.walk(parse(file)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "load_parameters":
                key = node.args[1].values[0] if isinstance(node.args[1], ast.JoinedStr) else node.args[1]
                assert isinstance(key, ast.Constant), ast.unparse(node)
                loaded.add(str(key.value).partition(".")[0])
    assert loaded <= named
    assert named <= loaded


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_reads_its_suite_tracks_the_suite_file(stage: str) -> None:
    reads = "pipeline/suite.py" in relative(closure(stage))
    tracks = any(isinstance(entry, dict) and "${file}" in entry for entry in STAGES[stage]["params"])
    assert reads == tracks


@pytest.mark.parametrize("stage", STAGES)
def test_the_data_files_beside_the_code_are_tracked_by_the_stages_that_read_them(stage: str) -> None:
    # By the convention that a module reads a file of its own package by name: Path(__file__).with_name("...").
    read = {
        str((file.parent / str(node.value)).relative_to(ROOT))
        for file in closure(stage)
        for node in ast.walk(parse(file))
        if isinstance(node, ast.Constant)
        and str(node.value).endswith((".yaml", ".csv"))
        and (file.parent / str(node.value)).is_file()
    }
    listed = {dep for dep in STAGES[stage]["deps"] if dep.endswith((".yaml", ".csv"))}
    assert read == listed
    assert all((ROOT / dep).is_file() for dep in listed)


@pytest.mark.parametrize("path", [path for path in MODULES if path.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_a_package_does_nothing_when_it_is_imported(path: Path) -> None:
    # The closure leaves out the packages' own files, so nothing may happen in them. A package may hand out
    # names lazily, to users: `imported` refuses our own code that takes one.
    assert ast.get_docstring(parse(path))
    for node in parse(path).body[1:]:
        if isinstance(node, ast.ImportFrom):
            assert node.module in {"__future__", "typing"}
        elif isinstance(node, ast.Assign):
            assert ast.unparse(node.targets[0]) == "__all__"
            assert isinstance(ast.literal_eval(node.value), list)
        elif isinstance(node, ast.FunctionDef):
            assert node.name in {"__getattr__", "__dir__"}
            assert not node.decorator_list
        else:
            assert isinstance(node, ast.If) and not [*skip_type_checking(node), *node.orelse], ast.unparse(node)


LAZY = """
import sys, pipeline.manifold as package
loaded = lambda: {name for name in sys.modules if name.startswith("pipeline.")} - {"pipeline.manifold"}
assert not loaded()
assert set(package.__all__) <= set(dir(package))
for name in package.__all__:
    found = getattr(package, name)
    assert (found.__name__, found.__module__ in loaded()) == (name, True)
assert not hasattr(package, "no_such_name")
"""


def test_a_package_loads_an_estimator_when_it_is_asked_for_and_no_sooner() -> None:
    subprocess.run([sys.executable, "-c", LAZY], cwd=ROOT, check=True)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_module_takes_a_name_from_a_package(path: Path) -> None:
    if path.name != "__init__.py":
        imported(parse(path))


@pytest.mark.parametrize(
    "line", ["from pipeline.manifold import LocalityPreservingEmbedding", "import pipeline.manifold"]
)
def test_an_import_that_the_closure_cannot_follow_is_noticed(line: str) -> None:
    with pytest.raises(AssertionError, match=r"closure|package"):
        imported(ast.parse(line))


def test_every_method_of_word_encoders_is_known_to_the_closure() -> None:
    defined = {
        path
        for path in FINDER.parent.glob("*.py")
        if {"Settings", "build"} <= {getattr(node, "name", "") for node in parse(path).body}
    }
    assert defined == METHOD_FILES


def test_no_module_is_imported_by_a_computed_name() -> None:
    # The closure could not follow it.
    for path in MODULES:
        for node in ast.walk(parse(path)):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            computed = called.rpartition(".")[2] in {"import_module", "__import__"}
            assert not computed or path == FINDER, f"{path.name}: {called}"
            assert called not in {"exec", "eval"}, f"{path.name}: {called}"


def libraries(tree: ast.AST) -> set[str]:
    """Top-level names of everything that `tree` imports when it runs."""
    names: set[str] = set()
    for node in skip_type_checking(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    return names


@pytest.mark.parametrize("path", [path for path in MODULES if path.name != "__main__.py"], ids=lambda p: p.stem)
def test_the_mathematics_knows_neither_prefect_nor_dvc(path: Path) -> None:
    assert not libraries(parse(path)) & {"prefect", "dvc", "flows", "dask", "distributed"}


def test_the_command_line_imports_flows_only_when_a_command_needs_them() -> None:
    main = parse(ROOT / "pipeline/__main__.py")
    top = {name for node in main.body if isinstance(node, ast.Import | ast.ImportFrom) for name in libraries(node)}
    assert not top & {"flows", "prefect", "dvc"}
    assert not libraries(main) & {"prefect", "dvc"}
    for stage in STAGES:
        assert "flows" not in libraries(command_of(stage))


def test_only_the_embed_stage_imports_sentence_transformers_and_only_in_a_function() -> None:
    heavy = {"sentence_transformers", "transformers", "torch"}
    users = {str(path.relative_to(ROOT)) for path in MODULES if libraries(parse(path)) & heavy}
    assert users == {"pipeline/encoders/embed.py"}
    top = parse(ROOT / "pipeline/encoders/embed.py").body
    assert (
        not {name for node in top if isinstance(node, ast.Import | ast.ImportFrom) for name in libraries(node)} & heavy
    )
