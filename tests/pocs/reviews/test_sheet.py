"""The one-page sheet: its order, one page whatever is written, fonts embedded, text never markup."""

import io
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation
from pypdf import PdfReader

from pocs.people.models import User
from pocs.projects.models import Project
from pocs.reviews import database_guards, services
from pocs.reviews.models import Conclusion, Decision, Package
from pocs.reviews.sheet.chart import bars, shares_spec
from pocs.reviews.sheet.content import sheet_of
from pocs.reviews.sheet.pdf import sheet_pdf
from pocs.reviews.sheet.text import Clipper, width
from tests.factories import Cast, complete_plan, make_run
from tests.pocs.reviews import walk

LANGUAGES = ["en", "zh-hans"]
HOSTILE = '#import "x" *bold* $x^2$ `raw` <label> @ref \\ // [a] {b} =heading “引号” 中文。'


def read(pdf: bytes) -> PdfReader:
    return PdfReader(io.BytesIO(pdf))


def embedded_fonts(reader: PdfReader) -> dict[str, bool]:
    """Font name -> whether its file is inside the PDF."""
    found = {}
    for reference in reader.pages[0]["/Resources"]["/Font"].values():
        font = reference.get_object()
        inner = font["/DescendantFonts"][0].get_object() if "/DescendantFonts" in font else font
        descriptor = inner["/FontDescriptor"].get_object()
        found[str(inner["/BaseFont"])] = any(key.startswith("/FontFile") for key in descriptor)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_a4_page_with_its_fonts(cast: Cast, decision: Decision, language: str) -> None:
    walk.set_follow_through(cast)
    reader = read(sheet_pdf(cast.project, language))
    assert len(reader.pages) == 1
    assert [round(float(side)) for side in reader.pages[0].mediabox[2:]] == [595, 842]
    fonts = embedded_fonts(reader)
    assert all(fonts.values())
    assert any("NotoSansSC" in name for name in fonts)
    text = reader.pages[0].extract_text()
    assert decision.package.digest in text.replace("\n", "")
    assert str(cast.decision_maker) in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_long_and_hostile_texts_stay_one_page(cast: Cast, evidence: object, language: str) -> None:
    long = (HOSTILE + " 很长的说明文字，") * 60
    Project.objects.filter(pk=cast.project.pk).update(
        where_applies=long, where_not=long, goal=long, name=HOSTILE
    )
    cast.project.readiness.update(basis=long)
    cast.project.refresh_from_db()
    package = walk.freeze(cast)
    walk.sign(cast, package, verdict="approve_with_conditions", comment=long)
    conditions = [
        services.ConditionInput(text=long, owner=cast.lead, due_on=walk.in_days(3)) for _ in range(3)
    ]
    walk.propose(cast, package, outcome="accepted_with_conditions", rationale=long, conditions=conditions)
    more = [
        {"id": make_run(cast.project, records=False).pk, "number": number, "scenario": "s@1"}
        for number in range(9)
    ]
    database_guards.remove()
    Package.objects.filter(pk=package.pk).update(
        manifest=package.manifest | {"runs": package.manifest["runs"] + more}
    )
    cast.project.refresh_from_db()
    reader = read(sheet_pdf(cast.project, language))
    assert len(reader.pages) == 1
    assert '#import "x" *bold*' in reader.pages[0].extract_text()


def test_before_the_first_package(cast: Cast) -> None:
    assert len(read(sheet_pdf(cast.project, "en")).pages) == 1
    sheet = sheet_of(cast.project)
    assert sheet.signatures == []
    assert sheet.digest == ""
    assert sheet.applies == "not stated"


def test_the_order_on_the_page(cast: Cast, decision: Decision, page_as: Callable[[User], Client]) -> None:
    page = page_as(cast.viewer).get(reverse("reviews:sheet", args=[cast.project.pk])).content.decode()
    parts = ["applies", "applies-not", "verification", "figures", "signatures", "decision", "follow-through",
             "observers"]  # fmt: skip
    places = [page.index(f'data-part="{part}"') for part in parts]
    assert places == sorted(places)
    assert decision.package.digest in page
    assert "Legal advice." in page


def test_languages_are_those_of_the_site(cast: Cast, page_as: Callable[[User], Client]) -> None:
    client = page_as(cast.viewer)
    for name in ("sheet", "sheet_pdf"):
        url = reverse(f"reviews:{name}", args=[cast.project.pk])
        assert client.get(url + "?lang=fr").status_code == 400
        assert client.get(url + "?lang=zh-hans").status_code == 200
    assert (
        'lang="zh-Hans"'
        in client.get(reverse("reviews:sheet", args=[cast.project.pk]) + "?lang=zh-hans").content.decode()
    )


def test_a_stale_package_and_a_demo_environment_are_said(cast: Cast, decision: Decision) -> None:
    assert sheet_of(cast.project).warnings == []
    services.conclusion_save(actor=cast.lead.as_actor(), project=cast.project, performance="Changed.")
    assert str(cast.lead) in sheet_of(cast.project).warnings[0]


def test_the_sheet_shows_the_frozen_words(cast: Cast, decision: Decision) -> None:
    Project.objects.filter(pk=cast.project.pk).update(where_applies="Everywhere.")
    assert sheet_of(cast.project).applies == "Internal help desk."
    assert Conclusion.objects.count() == 1


def test_figures_have_n_and_no_mean(cast: Cast, decision: Decision) -> None:
    sheet = sheet_of(cast.project)
    assert [(figure.run, figure.n) for figure in sheet.figures] == [("R1", 4), ("R2", 3)]
    assert sheet.figures[0].ttft_ms == (42.0, 67.2)
    assert not {"mean", "score"} & (set(sheet.as_json()) | set(sheet.as_json()["figures"][0]))
    assert "R1 68 %" in sheet.verdict


def test_the_chart_adds_up(cast: Cast, decision: Decision) -> None:
    figures = sheet_of(cast.project).figures
    spec = shares_spec(figures)
    assert spec is not None
    for figure in figures:
        name = f"{figure.run} {figure.scenario}"
        shares = [row["share"] for row in spec["data"]["values"] if row["run"] == name]
        assert sum(shares) == pytest.approx(1.0)
    assert [sum(part.width for part in bar.parts) for bar in bars(figures)] == [1000, 1000]
    assert shares_spec([]) is None


def test_clipping_counts_wide_characters() -> None:
    clip = Clipper()
    assert clip("short", 40) == "short"
    assert not clip.clipped
    cut = clip("中文" * 40, 40)
    assert width(cut) <= 41
    assert cut.endswith("…")
    assert clip.clipped


def test_sheet_language_is_the_one_asked_for(cast: Cast) -> None:
    complete_plan(cast.project)
    with translation.override("zh-hans"):
        assert sheet_of(cast.project).language == "zh-hans"
