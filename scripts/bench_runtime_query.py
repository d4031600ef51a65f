"""How long the query of runtime evidence takes over a million request records, and pages of a large project.

    python -P scripts/bench_runtime_query.py [--records 1000000] [--runs 500] [--revisions 2000]

Makes a SQLite database in a temporary folder (or uses DATABASE_URL), fills it, and times the server
side of each answer with Django's test client: median and worst of ten, after one to warm up. On a busy
machine the processor time is what compares.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TENANTS, APPLICATIONS = 20, 5
REPEATS = 10


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--revisions", type=int, default=2_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="phasegate-bench-") as folder:
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/bench.sqlite3")
        os.environ["DJANGO_SETTINGS_MODULE"] = "phasegate.settings.test"
        sys.path.insert(0, str(ROOT))
        import django

        django.setup()
        measure(arguments)
    return 0


def measure(arguments: argparse.Namespace) -> None:
    from django.core.management import call_command
    from django.test import Client
    from django.urls import reverse

    from tests.factories import make_cast

    call_command("migrate", verbosity=0)
    cast = make_cast()
    begun = time.perf_counter()
    revision = fill_records(cast, arguments.records)
    print(f"{arguments.records:,} request records written in {time.perf_counter() - begun:.1f} s")

    from pocs.evidence.runtime import run_index

    begun = time.perf_counter()
    run_index(revision.runs.get())
    print(f"read once into groups in {time.perf_counter() - begun:.1f} s")

    client = Client()
    client.force_login(cast.viewer)
    page, api = (reverse(name, args=[revision.pk]) for name in ("evidence:requests", "api-revision-requests"))
    show("page, all", client, page)
    show("page, one tenant", client, page, {"tenant": "tenant-3"})
    show("page, one application", client, page, {"application": "app-2"})
    show("page, failed of a tenant", client, page, {"tenant": "tenant-3", "outcome": "failed"})
    show("page, application, deep page", client, page, {"application": "app-2", "page": "3500"})
    show("API, one application, offset 150,000", client, api, {"application": "app-2", "offset": "150000"})
    show("evidence with its review rows", client, reverse("evidence:detail", args=[revision.evidence_id]))

    large = fill_project(arguments.runs, arguments.revisions)
    client.force_login(large.viewer)
    show("large project: evidence list", client, reverse("evidence:list", args=[large.project.pk]))
    show("large project: configurations", client, reverse("evidence:configurations", args=[large.project.pk]))
    show("large project: project page", client, reverse("projects:detail", args=[large.project.pk]))


def fill_records(cast: object, count: int) -> object:
    """One run with `count` requests of 20 tenants and 5 applications, 2 % failed, and evidence of it."""
    from django.db import connection

    from pocs.evidence import services
    from pocs.runs.models import RequestRecord
    from tests.factories import make_run

    run = make_run(cast.project, records=False, manifest={"requests": {"lines": count}})  # type: ignore[attr-defined]
    table = RequestRecord._meta.db_table
    texts = {
        "request_id": "'r' || i",
        "outcome": "case when i % 50 = 7 then 'failed' else 'success' end",
        "tenant": f"'tenant-' || (i % {TENANTS})",
        "application": f"'app-' || ((i / {TENANTS}) % {APPLICATIONS})",
        "output_tokens_source": "'engine'",
        "text": "''",
        "reasoning_text": "''",
    }
    spread = "(((i % 10007) * 7919) % 10007) / 10007.0"  # in four bytes
    figures = {
        "ttft_ms": f"case when i % 50 = 7 then null else 20 + 900 * {spread} end",
        "tpot_ms": f"case when i % 50 = 7 then null else 8 + 30 * {spread} end",
        "queue_wait_ms": f"60 * {spread}",
        "e2e_ms": f"100 + 4000 * {spread}",
    }
    empty = {"stamps": "'{}'", "intervals_ms": "'{}'", "reads": "'[]'", "flags": "'[]'", "detail": "'{}'"}
    warm = "false" if connection.vendor == "postgresql" else "0"
    columns = {"run_id": str(run.pk), '"index"': "i", "warmup": warm} | texts | figures | empty
    numbers = f"with recursive n(i) as (select 0 union all select i + 1 from n where i < {count - 1})"
    with connection.cursor() as cursor:
        names, values = ", ".join(columns), ", ".join(columns.values())
        cursor.execute(f"insert into {table} ({names}) {numbers} select {values} from n")
    evidence = services.evidence_create(
        actor=cast.contributor.as_actor(),  # type: ignore[attr-defined]
        project=cast.project,  # type: ignore[attr-defined]
        type="runtime",
        title="A million requests",
        body={},
        runs=[run],
    )
    return evidence.revisions.get()


def fill_project(runs: int, revisions: int) -> object:
    """A project with many runs and, over 40 pieces of evidence, many revisions with real bodies."""
    from pocs.evidence.choices import EvidenceType, RevisionState
    from pocs.evidence.models import Evidence, EvidenceRevision
    from tests.factories import complete_plan, make_cast, make_run, make_scenario_version

    cast = make_cast()
    complete_plan(cast.project, cast.team)
    version = make_scenario_version(cast.project, requests=1, concurrency=1)
    for number in range(runs):
        make_run(cast.project, scenario_version=version, number=number + 1)
    text = "Long contexts queue at the peak. " * 20
    pieces = 40
    for piece in range(pieces):
        kind = EvidenceType.values[piece % 4]
        evidence = Evidence.objects.create(project=cast.project, type=kind, title=f"Evidence {piece}")
        last = revisions // pieces
        EvidenceRevision.objects.bulk_create(
            EvidenceRevision(
                evidence=evidence,
                number=number,
                state=RevisionState.DRAFT if number == last else RevisionState.SUPERSEDED,
                title=evidence.title,
                body={"conclusion": text, "degradation": text},
                content_sha256="0" * 64,
                created_by=cast.contributor,
            )
            for number in range(1, last + 1)
        )
    return cast


def show(what: str, client: object, url: str, query: dict[str, str] | None = None) -> None:
    def once() -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        answer = client.get(url, query or {})  # type: ignore[attr-defined]
        took = (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000
        assert answer.status_code == 200, (what, answer.status_code)
        return took

    once()
    walls, cpus = zip(*[once() for _repeat in range(REPEATS)], strict=True)
    median, cpu = statistics.median(walls), statistics.median(cpus)
    print(f"{what:42} median {median:7.1f} ms   worst {max(walls):7.1f} ms   processor {cpu:7.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
