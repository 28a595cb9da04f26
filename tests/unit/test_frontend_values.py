"""How the pages write values: numbers, sizes, times, payloads, progress, specs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.template import Context, Template

from controlplane.common.spec_text import spec_diff, spec_text
from frontend.payload import payload_as, payload_of
from frontend.task_progress import progress_of
from frontend.templatetags import headgate as tags


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (336776, "336,776"), (None, "–"), ("", "–"), (1234.5, "1,234.5"), (3.0, "3"), (-4, "-4")],
)
def test_numbers_have_separators(value: float | str | None, text: str) -> None:
    assert tags.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (2**30, "1.0 GiB"), (2**60, "1,024.0 PiB")],
)
def test_sizes_have_binary_units(value: int, text: str) -> None:
    assert tags.size(value) == text


def test_a_time_is_utc_whatever_its_zone() -> None:
    time = datetime(2013, 1, 1, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))
    assert tags.when(time) == (
        '<time datetime="2013-01-01T01:04:05Z" title="2013-01-01T01:04:05Z">2013-01-01 01:04:05 UTC</time>'
    )


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (datetime(2013, 1, 1, tzinfo=UTC), "2013-01-01"),
        (datetime(2013, 1, 1, 5, tzinfo=UTC), "2013-01-01 05:00"),
        (datetime(2013, 1, 1, 5, 0, 7, tzinfo=UTC), "2013-01-01 05:00:07"),
        (datetime(2013, 1, 1, 0, 0, 0, 5000, tzinfo=UTC), "2013-01-01 00:00:00.005"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01"),
    ],
)
def test_an_edge_has_no_more_digits_than_it_needs(time: datetime, text: str) -> None:
    assert tags.short_time(time) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (90_000, "1 d 1 h"), (-3, "0 s")],
)
def test_durations_have_two_units(seconds: int, text: str) -> None:
    assert tags.duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize("value", [10**18, -(10**18), None])
def test_a_timestamp_that_is_no_time_shows_nothing(value: int | None) -> None:
    assert tags.from_ms(value) is None


def test_a_state_can_not_bring_markup() -> None:
    assert tags.state("<b>") == '<span class="state state-quiet">&lt;b&gt;</span>'


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (b'{"a": 1}', "text", '{"a": 1}'),
        ("größe\n".encode(), "text", "größe\n"),
        (b"\x00\x01ab", "hexadecimal", "00000000  00 01 61 62                                      ..ab"),
        (b"\xff", "hexadecimal", "00000000  ff                                               ."),
        (b"\x1b[31mred", "hexadecimal", "00000000  1b 5b 33 31 6d 72 65 64                          .[31mred"),
        ("a\N{RIGHT-TO-LEFT OVERRIDE}b".encode(), "text", "a\\u202eb"),
        ("12\N{NO-BREAK SPACE}km".encode(), "text", "12\N{NO-BREAK SPACE}km"),
        (b"", "empty", ""),
        (None, "missing", ""),
    ],
)
def test_payloads_are_text_or_a_dump(value: bytes | None, kind: str, text: str) -> None:
    payload = payload_of(value)
    assert (payload.kind, payload.text) == (kind, text)


def test_a_dump_counts_on_from_line_to_line() -> None:
    lines = payload_of(bytes(range(40))).text.splitlines()
    assert [line[:8] for line in lines] == ["00000000", "00000010", "00000020"]
    assert lines[1].endswith("................")


def test_a_payload_is_cut_between_characters() -> None:
    payload = payload_of(("ä" * 10).encode(), limit=5)
    assert payload == payload_of("ää".encode(), limit=4, size_bytes=20)
    assert (payload.text, payload.size_bytes, payload.cut) == ("ää", 20, True)


def test_the_beginning_of_a_long_payload_says_that_it_is_cut() -> None:
    payload = payload_of(b"abc", size_bytes=1000)
    assert (payload.text, payload.size_bytes, payload.cut) == ("abc", 1000, True)


@pytest.mark.parametrize(
    ("observation", "percent"),
    [
        ({"settled": 0, "lag": 10}, 0),
        ({"settled": 5, "lag": 5}, 50),
        ({"settled": 999_999, "lag": 1}, 99),
        ({"settled": 10, "lag": 0}, 100),
        ({"settled": 0, "lag": 0}, 100),
    ],
)
def test_progress_is_whole_only_when_nothing_is_left(observation: dict[str, int], percent: int) -> None:
    progress = progress_of(observation)
    assert progress is not None
    assert progress.percent == percent


@pytest.mark.parametrize("observation", [{}, {"error": "no broker"}, {"settled": 3}, {"settled": None, "lag": None}])
def test_there_is_no_progress_before_the_topic_was_seen(observation: dict[str, object]) -> None:
    assert progress_of(observation) is None


def test_a_spec_is_written_in_the_order_of_its_models() -> None:
    stored = {
        "spec": {"ioConfig": {"topic": "t"}, "dataSchema": {"dataSource": "d"}},
        "type": "x",
        "zebra": 1,
        "ant": 2,
    }
    keys = [line.split('"')[1] for line in spec_text(stored).splitlines() if '"' in line]
    assert keys == ["type", "spec", "dataSchema", "dataSource", "ioConfig", "topic", "ant", "zebra"]


def test_a_diff_names_what_was_added_and_removed() -> None:
    lines = spec_diff({"spec": {"taskCount": 1, "topic": "t"}}, {"spec": {"taskCount": 2, "topic": "t"}})
    assert [(line.kind, line.text.strip("+- ,")) for line in lines if line.kind in ("added", "removed")] == [
        ("removed", '"taskCount": 1'),
        ("added", '"taskCount": 2'),
    ]


def test_equal_specs_have_no_diff() -> None:
    assert spec_diff({"a": 1, "b": [2]}, {"b": [2], "a": 1}) == []


def test_a_template_escapes_a_spec() -> None:
    text = Template("{% load headgate %}{{ spec|pretty }}").render(Context({"spec": {"topic": "</pre><script>"}}))
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "all"), (3, "3"), (["a", "b"], "a, b"), ({"0": 5, "1": None}, "0: 5, 1: all"), ("<b>", "<b>"), ([], "–")],
)
def test_details_of_an_entry_are_listed(value: object, text: str) -> None:
    assert tags.listed(value) == text
    assert tags.listed({"rows_a_day": None}, "quota") == "rows a day: no limit"


@pytest.mark.parametrize(
    ("form", "data", "kind"),
    [
        ("text", b"abc", "text"),
        ("json", b'{"a":1}', "json"),
        ("json", b"{broken", "text"),
        ("json", b"\xff", "hexadecimal"),
        ("json", b"[" * 100_000, "text"),
        ("hexadecimal", b"abc", "hexadecimal"),
        ("hexadecimal", b"", "empty"),
        ("json", None, "missing"),
    ],
)
def test_a_payload_in_the_form_asked_for(form: str, data: bytes | None, kind: str) -> None:
    assert payload_as(form, data, limit=200_000).kind == kind


def test_json_that_hides_its_direction_is_made_visible() -> None:
    assert "\\u202e" in payload_as("json", '{"a": "\u202e"}'.encode()).text
