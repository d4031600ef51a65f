"""The sheet as a PDF of one A4 page: typst sets it, the chart comes from its Vega-Lite spec."""

import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import pylopdf_fonts_zh_cn
import typst
import vl_convert
from django.utils import translation

from pocs.projects.models import Project
from pocs.reviews.sheet.chart import shares_spec
from pocs.reviews.sheet.content import Sheet, sheet_of
from pocs.reviews.sheet.labels import sheet_labels

TEMPLATE = Path(__file__).with_name("sheet.typ")
FONT_DIRECTORY = pylopdf_fonts_zh_cn.sans_path().parent
#: room of the texts, tried from the first on until the sheet fits on its page
FACTORS = (1.0, 0.8, 0.6, 0.45, 0.3)


class SheetTooLong(RuntimeError):
    """The sheet did not fit on one page even with its texts at their shortest."""


def sheet_pdf(project: Project, language: str) -> bytes:
    """The PDF in `language` (a code of settings.LANGUAGES): one page, fonts embedded."""
    with translation.override(language):
        for factor in FACTORS:
            sheet = sheet_of(project, factor=factor)
            pages = _compile(_inputs(sheet), "svg")
            if not isinstance(pages, list):
                pdf = _compile(_inputs(sheet), "pdf")
                assert isinstance(pdf, bytes)
                return pdf
    raise SheetTooLong(f"project {project.pk}")


def chart_svg(sheet: Sheet) -> str:
    """The chart as SVG; empty when no run says where its time went."""
    spec = shares_spec(sheet.figures)
    if spec is None:
        return ""
    _register_fonts()
    return vl_convert.vegalite_to_svg(spec)


def _inputs(sheet: Sheet) -> dict[str, str]:
    """Texts reach typst as data, never as markup."""
    data: dict[str, Any] = {"sheet": asdict(sheet), "labels": sheet_labels(), "chart": chart_svg(sheet)}
    return {"data": json.dumps(data, ensure_ascii=False)}


def _compile(inputs: dict[str, str], format: str) -> bytes | list[bytes]:
    result = typst.compile(
        TEMPLATE.read_bytes(),
        format=format,  # type: ignore[arg-type]
        font_paths=[FONT_DIRECTORY],
        ignore_system_fonts=True,
        sys_inputs=inputs,
    )
    assert result is not None
    return result


@lru_cache(maxsize=1)
def _register_fonts() -> None:
    vl_convert.register_font_directory(str(FONT_DIRECTORY))
