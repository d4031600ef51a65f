"""The stored effects of the switches: one change each, against a baseline, with range and n."""

from pocs.runs import effects
from pocs.runs.engine_settings import DEFAULTS, checked_settings
from pocs.runs.techniques import COMPUTING, TECHNIQUES, technique_of


def test_every_stored_effect_is_one_change_of_one_switch_with_its_range() -> None:
    found = effects.measured()

    assert found is not None
    for row in found.rows:
        assert row.change.setting in DEFAULTS
        assert row.cpu_ratio.least <= row.cpu_ratio.median <= row.cpu_ratio.most
        assert row.pairs >= 3
        assert row.samples == row.pairs * row.requests
        assert row.same is None or 0 <= row.same <= row.requests
    assert found.baseline["dtype"] == "bfloat16"
    assert f"--repetitions {found.rows[0].pairs}" in found.command


def test_techniques_with_a_switch_of_their_own_were_measured() -> None:
    found = effects.measured()

    assert found is not None
    for technique in TECHNIQUES:
        if technique.code != "T6":  # its switch is another target
            assert found.of(technique.settings), technique.code


def test_every_switch_of_the_engine_belongs_to_a_technique_or_to_the_computing() -> None:
    for setting in DEFAULTS:
        assert (technique_of(setting) is None) == (setting in COMPUTING)


def test_what_a_candidate_is_offered_with_is_what_the_engine_takes() -> None:
    for technique in TECHNIQUES:
        for change in technique.changes:
            assert checked_settings({change.setting: change.value}, str) == {change.setting: change.value}
