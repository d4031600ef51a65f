"""The factories make what the rest of the tests stand on."""

from tests.factories import Cast, complete_plan, make_run


def test_a_run_of_the_factory_counts_as_evidence(cast: Cast) -> None:
    run = make_run(complete_plan(cast.project, cast.team))
    assert run.counts_as_evidence
    assert run.summary is not None
    assert run.requests.count() == run.summary["attempted"]
