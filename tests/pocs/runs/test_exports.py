"""Exports, the report and the check of records, from pages and API: what is in them, and who gets them."""

import csv
import io
import json
from html.parser import HTMLParser
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.test import Client

from inference.rescoring.reasons import REASONS as ENGLISH
from pocs.projects.models import ScenarioVersion
from pocs.runs import services
from pocs.runs.execution import run_execute
from pocs.runs.models import RequestRecord, Run, Target
from pocs.runs.raw_reads import records_root
from pocs.runs.rescoring import REASONS, rescored_of
from tests.factories import Cast, make_request_record
from tests.pocs.runs.fakes import FakeTarget

FORMS = ("csv", "json", "jsonl", "parquet")


@pytest.fixture(autouse=True)
def media_of_this_test(tmp_path: Any, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def ended(cast: Cast, version: ScenarioVersion, target: Target, fake_target: FakeTarget) -> Run:
    run = services.run_start(
        actor=cast.contributor.as_actor(), project=cast.project, scenario_version=version, target=target
    )
    run_execute(run.pk, worker="w1")
    return Run.objects.get(pk=run.pk)


def body_of(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def signed_in(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


def test_owner_and_member_export_and_an_outsider_finds_nothing(cast: Cast, ended: Run) -> None:
    for path in (*(f"export/{form}/" for form in FORMS), "report/", "records/"):
        for prefix in ("/runs", "/api/v1/runs"):
            url = f"{prefix}/{ended.pk}/{path}"
            assert signed_in(cast.lead).get(url).status_code == 200, url
            assert signed_in(cast.viewer).get(url).status_code == 200, url
            assert signed_in(cast.outsider).get(url).status_code == 404, url
            assert Client().get(url).status_code in (302, 401, 403), url
    assert signed_in(cast.lead).get(f"/runs/{ended.pk}/export/xlsx/").status_code == 404


def test_csv_has_a_bom_for_excel_and_no_cell_is_a_formula(cast: Cast, ended: Run) -> None:
    ended.requests.filter(index=0).update(text='=HYPERLINK("http://x")', tenant="@acme")
    client = signed_in(cast.lead)
    content = body_of(client.get(f"/runs/{ended.pk}/export/csv/"))
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
    assert [row["index"] for row in rows] == ["0", "1", "2", "3"]
    assert (rows[0]["text"], rows[0]["tenant"]) == ('\'=HYPERLINK("http://x")', "'@acme")
    assert float(rows[1]["queue_wait_ms"]) == pytest.approx(0.1)
    assert rows[1]["throttled_ms"] == ""
    assert not body_of(client.get(f"/runs/{ended.pk}/export/csv/?bom=0")).startswith(b"\xef\xbb\xbf")
    assert len(body_of(client.get(f"/runs/{ended.pk}/export/csv/?warmup=1")).splitlines()) == 6


def test_json_and_parquet_hold_every_read(cast: Cast, ended: Run) -> None:
    client = signed_in(cast.viewer)
    rows = json.loads(body_of(client.get(f"/runs/{ended.pk}/export/json/?warmup=1")))
    assert [row["warmup"] for row in rows] == [True, False, False, False, False]
    assert all(len(row["reads"]) == row["output_tokens"] for row in rows)
    lines = body_of(client.get(f"/api/v1/runs/{ended.pk}/export/jsonl/")).splitlines()
    assert [json.loads(line) for line in lines] == rows[1:]
    table = pq.read_table(io.BytesIO(body_of(client.get(f"/runs/{ended.pk}/export/parquet/"))))
    assert table.column("read_ns").to_pylist() == [[ns for ns, _n in row["reads"]] for row in rows[1:]]
    assert table.column("ttft_ms").to_pylist() == [row["ttft_ms"] for row in rows[1:]]
    assert table.column("throttled_ms").null_count == 4


def test_an_empty_run_exports_empty_tables(cast: Cast, ended: Run) -> None:
    ended.requests.all().delete()
    client = signed_in(cast.lead)
    assert json.loads(body_of(client.get(f"/runs/{ended.pk}/export/json/"))) == []
    assert pq.read_table(io.BytesIO(body_of(client.get(f"/runs/{ended.pk}/export/parquet/")))).num_rows == 0


def test_a_damaged_segment_is_reported_by_page_request_and_exports(cast: Cast, ended: Run) -> None:
    path = records_root() / ended.segments.get().name
    path.write_bytes(path.read_bytes()[:-30])
    client = signed_in(cast.lead)

    page = client.get(f"/runs/{ended.pk}/records/?verify=1").content.decode()
    assert "damaged" in page
    assert "Every stored request is what the manifest states." in page
    checked = client.get(f"/api/v1/runs/{ended.pk}/records/").json()
    assert (checked["segments"][0]["state"], checked["rows_sound"]) == ("changed", True)
    last = ended.requests.order_by("-segment_item").first()
    assert last is not None
    assert "cannot be read" in client.get(f"/runs/{ended.pk}/requests/{last.index}/").content.decode()
    lines = [json.loads(line) for line in body_of(client.get(f"/runs/{ended.pk}/export/jsonl/")).splitlines()]
    broken = [line for line in lines if line["reads"] is None]
    assert broken
    assert "segment 1" in broken[0]["reads_error"]
    ended.requests.filter(index=0).update(ttft_ms=1)
    assert (
        "not what the manifest states" in client.get(f"/runs/{ended.pk}/records/?verify=1").content.decode()
    )


class Refs(HTMLParser):
    """Everything that a document would fetch, its ids, and its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data") and not str(value).startswith("#"):
                self.fetched.append(str(value))
            if name == "id":
                self.ids.append(str(value))


def test_the_report_is_one_file_in_both_languages_that_fetches_nothing(cast: Cast, ended: Run) -> None:
    Run.objects.filter(pk=ended.pk).update(error="<script>alert(1)</script>")
    response = signed_in(cast.viewer).get(f"/runs/{ended.pk}/report/")
    content = body_of(response).decode()

    refs = Refs()
    refs.feed(content)
    assert refs.fetched == []
    assert "script" not in refs.tags
    assert "url(http" not in content
    assert "@import" not in content
    assert (
        len(refs.ids) - len(set(refs.ids)) == 2 * 0 + len([i for i in refs.ids if i.endswith("-title")]) // 2
    )
    assert refs.tags.count("article") == 2
    assert refs.tags.count("svg") >= 8
    assert 'lang="zh-Hans"' in content
    for part in (ended.configuration_digest, ended.manifest["segments"][0]["sha256"], "guidellm", "TPOT"):
        assert content.count(part) >= 2, part
    assert "attachment" in response["Content-Disposition"]


def test_the_run_page_shows_the_run_by_other_definitions(cast: Cast, ended: Run) -> None:
    table = rescored_of(ended)
    assert table is not None
    assert [name for name, _version, _source in table.tools] == [
        "phasegate",
        "vllm-bench",
        "guidellm",
        "aiperf",
        "evalscope",
    ]
    assert not any(line.cells[0].other for line in table.lines)
    page = signed_in(cast.lead).get(f"/runs/{ended.pk}/").content.decode()
    assert "The same run by the definitions of other tools" in page
    assert {each.tool for each in table.reasons} == {"vllm-bench", "guidellm", "aiperf", "evalscope"}


def test_the_sites_sentences_are_those_of_the_command_line() -> None:
    assert {code: str(text) for code, text in REASONS.items()} == ENGLISH


def test_a_run_of_an_earlier_version_is_scored_when_it_is_read(cast: Cast, ended: Run) -> None:
    expected = ended.rescored["tools"]["guidellm"]["tpot_ms"]
    ended.rescored = None
    Run.objects.filter(pk=ended.pk).update(rescored=None)
    table = rescored_of(ended)
    assert table is not None
    assert table.lines[1].cells[2].p50 == pytest.approx(expected["p50"])


def test_a_submitted_run_without_reads_has_no_such_table(cast: Cast, ended: Run) -> None:
    ended.requests.all().delete()
    Run.objects.filter(pk=ended.pk).update(rescored=None)
    make_request_record(ended, 0)
    RequestRecord.objects.filter(run=ended).update(stamps={}, reads=[])
    assert rescored_of(Run.objects.get(pk=ended.pk)) is None
