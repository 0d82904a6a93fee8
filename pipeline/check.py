"""Check params.yaml, a suite and the catalogue against each other before anything runs."""

from __future__ import annotations

from typing import Any

from pipeline.corpora.catalogue import find_corpus
from pipeline.encoders.embed import EmbedParameters, EncoderParameters
from pipeline.errors import ParameterError
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.manifold.eigensolve import SolverParameters
from pipeline.manifold.knn_graph import GraphParameters
from pipeline.manifold.manifolds import ManifoldParameters
from pipeline.manifold.transform import TransformParameters
from pipeline.params import GROUPS, PARAMS_FILE, Parameters, check_slug, load_parameters, read_yaml, refuse_unknown
from pipeline.report.parameters import ReportParameters
from pipeline.suite import Suite, load_suite

SINGLE: dict[str, type[Parameters]] = {
    "embed": EmbedParameters,
    "knn_graph": GraphParameters,
    "eigensolve": SolverParameters,
    "evaluate": EvaluateParameters,
    "report": ReportParameters,
}
NAMED: dict[str, type[Parameters]] = {
    "encoders": EncoderParameters,
    "manifolds": ManifoldParameters,
    "transforms": TransformParameters,
}


def check_everything(suite: str) -> Suite:
    """Raise the first ParameterError, SuiteError or SourceError that a run would meet; return the suite."""
    content = read_yaml(PARAMS_FILE)
    refuse_unknown(content, GROUPS, where=str(PARAMS_FILE))
    for group, model in SINGLE.items():
        load_parameters(model, group)
    for group, model in NAMED.items():
        for name in content.get(group) or {}:
            _check_name(group, name)
            load_parameters(model, f"{group}.{name}")
    chosen = load_suite(suite)
    for group, names in (
        ("encoders", chosen.encoders),
        ("manifolds", chosen.manifolds),
        ("transforms", chosen.transforms),
    ):
        _check_members(chosen, group, names, content.get(group) or {})
    for corpus in chosen.corpora:
        find_corpus(corpus)
    _check_neighbors(chosen)
    return chosen


def _check_name(group: str, name: Any) -> None:
    try:
        check_slug(str(name))
    except ValueError as error:
        raise ParameterError("a name cannot be used", where=f"{PARAMS_FILE}: {group}", got=str(error)) from None


def _check_members(suite: Suite, group: str, names: tuple[str, ...], known: dict[str, Any]) -> None:
    for name in names:
        if name not in known:
            raise ParameterError(
                f"suite '{suite.suite}' names an unknown {group.removesuffix('s')} '{name}'",
                where=suite.file,
                expected=f"one of: {', '.join(known)}",
                got=name,
                remedy=f"correct {suite.file}, or add a block {group}.{name} to {PARAMS_FILE}",
            )


def _check_neighbors(suite: Suite) -> None:
    held = load_parameters(GraphParameters, "knn_graph").neighbors
    for manifold in suite.manifolds:
        wanted = load_parameters(ManifoldParameters, f"manifolds.{manifold}").neighbors
        if wanted > held:
            raise ParameterError(
                f"manifold '{manifold}' wants more neighbours than the graph holds",
                where=f"{PARAMS_FILE}: manifolds.{manifold}.neighbors",
                expected=f"<= knn_graph.neighbors = {held}",
                got=str(wanted),
                remedy="raise knn_graph.neighbors, or lower this one",
            )
