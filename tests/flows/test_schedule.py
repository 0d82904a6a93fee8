from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flows.graph import StageGraph
from flows.profile import Kind, RunProfile
from flows.schedule import Schedule

GROUPS = ("embed", "solve", "score")


@st.composite
def graphs(draw: st.DrawFn) -> StageGraph:
    """Any order of up to 12 stages of three groups, each reading some of those before it."""
    size = draw(st.integers(1, 12))
    names = tuple(f"{draw(st.sampled_from(GROUPS))}@{number}" for number in range(size))
    parents = {
        name: tuple(draw(st.lists(st.sampled_from(names[:place]), unique=True))) if place else ()
        for place, name in enumerate(names)
    }
    return StageGraph(names, parents)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault of ours
@given(graphs(), st.integers(1, 4), st.integers(1, 3), st.data())
def test_every_stage_ends_once_after_its_parents_and_within_every_limit(
    graph: StageGraph, jobs: int, at_once: int, data: st.DataObject
) -> None:
    profile = RunProfile(kinds={"heavy": Kind(stages=("embed", "solve"), at_once=at_once)})
    schedule = Schedule(graph, graph.names, jobs, profile)
    failing = set(data.draw(st.lists(st.sampled_from(graph.names), unique=True)))
    running: list[str] = []
    done: list[str] = []
    skipped: set[str] = set()
    while not schedule.finished:
        while (stage := schedule.next_stage()) is not None:
            running.append(stage)
        assert running, "a schedule that is not finished has something to wait for"
        assert len(running) <= jobs
        assert sum(stage.startswith(("embed", "solve")) for stage in running) <= at_once
        stage = running.pop(data.draw(st.integers(0, len(running) - 1)))
        assert set(graph.parents[stage]) <= set(done) - failing
        done.append(stage)
        skipped.update(schedule.end(stage, failed=stage in failing))
    assert not running
    assert len(done) == len(set(done))
    assert skipped == graph.descendants(failing & set(done))
    assert set(done) | skipped == set(graph.names)


def test_a_stage_that_a_limit_holds_back_is_passed_by_the_next() -> None:
    names = ("embed@a", "embed@b", "score")
    graph = StageGraph(names, dict.fromkeys(names, ()))
    schedule = Schedule(graph, names, 3, RunProfile(kinds={"memory": Kind(stages=("embed",), at_once=1)}))
    assert [schedule.next_stage(), schedule.next_stage(), schedule.next_stage()] == ["embed@a", "score", None]
    schedule.end("embed@a", failed=False)
    assert schedule.next_stage() == "embed@b"


def test_a_parent_that_is_not_stale_is_not_waited_for() -> None:
    graph = StageGraph(("a", "b"), {"a": (), "b": ("a",)})
    assert Schedule(graph, ("b",), 1, RunProfile()).next_stage() == "b"
