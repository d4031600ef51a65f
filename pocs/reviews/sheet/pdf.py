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

from pocs.common.templatetags.phasegate import ms_decimals
from pocs.projects.models import Project
from pocs.reviews.sheet.chart import shares_spec
from pocs.reviews.sheet.content import Figure, Sheet, sheet_of
from pocs.reviews.sheet.labels import sheet_labels

TEMPLATE = Path(__file__).with_name("sheet.typ")
FONT_DIRECTORY = pylopdf_fonts_zh_cn.sans_path().parent
#: type size in pt and room of the texts, tried from the first on until the sheet fits on its page
FITS = ((9.2, 1.0), (8.6, 1.0), (8.0, 1.0), (7.6, 0.8), (7.4, 0.6), (7.2, 0.4), (7.0, 0.25))
COLUMNS_MS = ("queue_wait_ms", "prefill_ms", "ttft_ms", "tpot_ms", "e2e_ms")


class SheetTooLong(RuntimeError):
    """The sheet did not fit on one page even with its texts at their shortest."""


def sheet_pdf(project: Project, language: str) -> bytes:
    """The PDF in `language` (a code of settings.LANGUAGES): one page, fonts embedded."""
    compiler = typst.Compiler(TEMPLATE, font_paths=[FONT_DIRECTORY], ignore_system_fonts=True)
    with translation.override(language):
        for size, factor in FITS:
            inputs = _inputs(sheet_of(project, factor=factor), size)
            # several pages come as a list; the layout is kept for the second call
            if not isinstance(compiler.compile(format="svg", sys_inputs=inputs), list):
                pdf = compiler.compile(format="pdf", sys_inputs=inputs)
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


def _inputs(sheet: Sheet, size: float) -> dict[str, str]:
    """Texts reach typst as data, never as markup."""
    data: dict[str, Any] = {
        "sheet": asdict(sheet),
        "cells": [_cells(figure) for figure in sheet.figures],
        "labels": sheet_labels(),
        "chart": chart_svg(sheet),
        "size": size,
    }
    return {"data": json.dumps(data, ensure_ascii=False)}


def _cells(figure: Figure) -> list[str]:
    """The figure's line of the table as text: `p50 / p95`, a dash where nothing was observed."""
    pairs = [" / ".join(_milliseconds(value) for value in getattr(figure, name)) for name in COLUMNS_MS]
    rate = "—" if figure.error_rate is None else f"{figure.error_rate * 100:.1f} %"
    return [figure.run, figure.scenario, "—" if figure.n is None else str(figure.n), *pairs, rate]


def _milliseconds(value: float | None) -> str:
    return "—" if value is None else f"{value:,.{ms_decimals(value)}f}"


@lru_cache(maxsize=1)
def _register_fonts() -> None:
    vl_convert.register_font_directory(str(FONT_DIRECTORY))
