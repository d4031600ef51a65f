"""Runtime evidence by tenant or application: exact figures, the requests themselves, page and API."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from inference.stats import figures
from pocs.evidence.models import RequestGroup, RunIndex
from pocs.evidence.runtime import Filter, Presence, names_in, populations, presences, requests_matching
from pocs.people.models import User
from pocs.runs.choices import Outcome, RunState
from pocs.runs.models import RequestRecord, Run
from tests.factories import Cast, make_request_record, make_run

Make = Callable[..., Any]


def mixed_run(cast: Cast, seed: int = 1) -> Run:
    """40 requests of two tenants and two applications, some of them failed or without a first token."""
    run = make_run(cast.project, records=False, tenant="", application="")
    numbers = random.Random(seed)
    rows = []
    for index in range(40):
        outcome = numbers.choice([Outcome.SUCCESS] * 6 + [Outcome.FAILED, Outcome.TIMEOUT, Outcome.CANCELLED])
        rows.append(
            RequestRecord(
                run=run,
                index=index,
                request_id=f"r{index}",
                outcome=outcome,
                tenant=numbers.choice(["acme", "租户乙"]),
                application=numbers.choice(["chat", ""]),
                ttft_ms=numbers.choice([None, numbers.uniform(5, 900)]),
                tpot_ms=numbers.uniform(5, 40),
                queue_wait_ms=numbers.uniform(0, 30),
            )
        )
    RequestRecord.objects.bulk_create(rows)
    return run


def test_figures_over_several_runs_are_exact(cast: Cast) -> None:
    runs = [mixed_run(cast, 1), mixed_run(cast, 2)]
    found = populations(runs)
    assert sum(group.attempted for group in found) == 80
    for group in found:
        rows = RequestRecord.objects.filter(run__in=runs, tenant=group.tenant, application=group.application)
        successes = list(rows.filter(outcome=Outcome.SUCCESS))
        expected = figures(row.ttft_ms for row in successes)
        for name in ("n", "p50", "p90", "p95", "p99", "max"):
            assert group.ttft_ms[name] == pytest.approx(expected[name])
        assert group.errors == rows.exclude(outcome__in=[Outcome.SUCCESS, Outcome.CANCELLED]).count()


def test_presences_count_what_the_populations_hold(cast: Cast, django_assert_max_num_queries: Any) -> None:
    runs = [mixed_run(cast, 1), mixed_run(cast, 2)]
    expected = [
        Presence(
            group.tenant,
            group.application,
            attempted=group.attempted,
            succeeded=group.succeeded,
            first_tokens=group.ttft_ms["n"],
            output_times=group.tpot_ms["n"],
        )
        for group in populations(runs)
    ]
    with django_assert_max_num_queries(2):  # neither query reads packed values
        assert presences(runs) == expected


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(),
        Filter(tenant="acme"),
        Filter(application="chat"),
        Filter(tenant="租户乙", application="chat"),
        Filter(outcome="failed"),
        Filter(tenant="acme", outcome="success"),
        Filter(tenant="nobody"),
    ],
)
def test_the_requests_are_those_a_query_of_the_records_gives(cast: Cast, wanted: Filter) -> None:
    runs = [mixed_run(cast, 1), mixed_run(cast, 2)]
    rows = RequestRecord.objects.filter(run__in=runs)
    rows = rows.order_by("run__number", "tenant", "application", "outcome", "pk")
    for name in ("tenant", "application", "outcome"):
        if getattr(wanted, name):
            rows = rows.filter(**{name: getattr(wanted, name)})
    expected = [row.pk for row in rows]
    seen: list[int] = []
    while True:
        page = requests_matching(runs, wanted, offset=len(seen), limit=7)
        assert page.count == len(expected)
        if not page.records:
            break
        seen += [record.pk for record in page.records]
    assert seen == expected


def test_an_ended_run_is_read_once(cast: Cast, django_assert_max_num_queries: Any) -> None:
    run = mixed_run(cast)
    populations([run])
    assert RunIndex.objects.filter(run=run).count() == 1
    with django_assert_max_num_queries(3):
        populations([run])


def test_other_records_are_read_again(cast: Cast) -> None:
    run = mixed_run(cast)
    populations([run])
    RequestRecord.objects.filter(run=run).delete()
    make_request_record(run, 0, tenant="late")
    run.manifest = {"requests": {"sha256": "c" * 64}}
    run.save()
    assert [group.tenant for group in populations([run])] == ["late"]
    assert RequestGroup.objects.count() == 1


def test_a_running_run_is_not_kept(cast: Cast) -> None:
    run = mixed_run(cast)
    Run.objects.filter(pk=run.pk).update(state=RunState.MEASURING)
    assert populations([Run.objects.get(pk=run.pk)])
    assert not RunIndex.objects.exists()


def test_names_to_choose_from(cast: Cast) -> None:
    assert names_in([mixed_run(cast)]) == (["acme", "租户乙"], ["chat"])


def test_the_page(cast: Cast, page_as: Callable[[User], Client], make_evidence: Make) -> None:
    revision = make_evidence("runtime", runs=[mixed_run(cast)], body={}).revisions.get()
    url = reverse("evidence:requests", args=[revision.pk])
    page = page_as(cast.viewer).get(url, {"tenant": "租户乙", "outcome": "success"})
    assert page.status_code == 200
    assert "租户乙" in page.content.decode()
    assert page_as(cast.viewer).get(url, {"tenant": "nobody"}).status_code == 400
    assert page_as(cast.viewer).get(url, {"page": "99999999999999999999"}).status_code == 200
    assert page_as(cast.outsider).get(url).status_code == 404
    other = make_evidence("retrospective").revisions.get()
    assert page_as(cast.viewer).get(reverse("evidence:requests", args=[other.pk])).status_code == 404


def test_the_api(cast: Cast, api_as: Callable[..., APIClient], make_evidence: Make) -> None:
    revision = make_evidence("runtime", runs=[mixed_run(cast)], body={}).revisions.get()
    url = reverse("api-revision-requests", args=[revision.pk])
    client = api_as(cast.viewer)
    answer = client.get(url, {"tenant": "acme", "limit": 3}).json()
    assert {row["tenant"] for row in answer["results"]} == {"acme"}
    assert len(answer["results"]) == 3
    assert answer["count"] == sum(group["attempted"] for group in answer["populations"])
    assert "mean" not in answer["populations"][0]["ttft_ms"]
    for bad in ({"limit": 0}, {"limit": 10_000}, {"offset": -1}, {"outcome": "odd"}, {"tennant": "acme"}):
        assert client.get(url, bad).status_code == 400, bad
    assert api_as(cast.outsider).get(url).status_code == 404
