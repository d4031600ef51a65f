"""A run with requests, samples and a verdict, as the pages of an ended run need it."""

from typing import Any

import pytest
from django.utils import timezone

from inference.diagnosis import diagnose
from pocs.common.models import LiveEvent
from pocs.projects.models import Project
from pocs.runs.models import Run
from tests.factories import make_run, make_scenario_version, make_summary


@pytest.fixture
def run(project: Project) -> Run:
    """R1, complete and valid, with four requests and two live samples."""
    version = make_scenario_version(project, "short-request")
    summary = make_summary(memory={"rss_peak_bytes": 900 * 2**20, "weights_bytes": 270 * 2**20})
    found = make_run(project, scenario_version=version, summary=summary, diagnosis=diagnose([], summary))
    for number, at_ms in enumerate((500.0, 1000.0), start=1):
        add_sample(found, number, at_ms=at_ms, ttft_ms_p50=41.0, memory={"rss_bytes": 800 * 2**20})
    return found


def add_sample(run: Run, number: int, **data: Any) -> LiveEvent:
    return LiveEvent.objects.create(
        stream=f"run:{run.pk}", number=number, kind="sample", data=data, at=timezone.now()
    )
