"""Health as one value: the usual kind and label of a code, and its two sentences as one text."""

from __future__ import annotations

import pytest

from controlplane.common.health import WORST_FIRST, Code, Health, Kind, codes_of


def test_a_code_has_its_usual_kind_and_label_unless_others_are_given() -> None:
    usual = Health.of(Code.WAITING_FOR_SLOT, "It needs 4 slots; 1 of 8 is free.")
    assert (usual.kind, usual.code, usual.label) == (Kind.WAITING, "waiting_for_slot", "waiting for a slot")
    never = Health.of(Code.WAITING_FOR_SLOT, "", kind=Kind.NEEDS_ATTENTION, label="never enough slots")
    assert (never.kind, never.code, never.label) == (Kind.NEEDS_ATTENTION, usual.code, "never enough slots")


@pytest.mark.parametrize(
    ("cause", "action", "text"),
    [
        ("It keeps up.", "", "It keeps up."),
        ("It is suspended.", "Resume it.", "It is suspended. Resume it."),
        ("java.io.IOException: disk full", "View the log.", "java.io.IOException: disk full. View the log."),
        ("java.io.IOException: disk full", "", "java.io.IOException: disk full"),
        ("What?", "View the log.", "What? View the log."),
    ],
)
def test_cause_and_action_make_one_text(cause: str, action: str, text: str) -> None:
    assert Health.of(Code.FAILED, cause, action).text == text


def test_the_order_has_every_kind() -> None:
    assert sorted(WORST_FIRST) == sorted(Kind)


def test_what_all_records_can_end_as_some_can_too() -> None:
    codes = codes_of("task")
    assert {code for code in codes if code.startswith("all_")} <= {f"all_{code}" for code in codes}
