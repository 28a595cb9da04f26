"""The pages' parts: short names of tasks, sparklines, sorting by the address."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from controlplane.common.errors import InvalidInput
from frontend.sparkline import spark_html
from frontend.tables import Column, Shape
from frontend.task_names import short_name
from frontend.templatetags.design import curl_line

SHAPE = Shape(
    "things",
    (
        Column("name", "Name", sorts="id"),
        Column("made", "Made", sorts="created_at", descending_first=True),
        Column("n", "N"),
    ),
    default="-made",
    tie_breakers=("-id",),
)


@pytest.mark.parametrize(
    ("task_id", "name"),
    [
        ("index_kafka_share_group_a_b_2026-06-01T12-34-56_abcdefgh", "06-01 12:34 · abcdefgh"),
        ("index_kafka_2026-01-01T00-00-00_x_2026-06-01T12-34-56_abcdefgh", "06-01 12:34 · abcdefgh"),
        ("made-by-hand", "made-by-hand"),
        ("x" * 20 + "y" * 20, "x" * 13 + "…" + "y" * 13),
    ],
)
def test_a_task_has_a_short_name(task_id: str, name: str) -> None:
    assert short_name(task_id) == name


def test_a_sparkline_has_gaps_and_a_label_that_is_text() -> None:
    drawn = spark_html([0, 10, None, 5], 'a "label" <b>', "need")
    assert drawn.count('class="spark-line"') == 2
    assert "a &quot;label&quot; &lt;b&gt;" in drawn
    assert '"M0.0,23.0L33.33,1.0"' in drawn
    assert "spark-need" in drawn
    for nothing in ([], [None, None]):
        assert spark_html(nothing, "nothing") == '<span class="soft" role="img" aria-label="nothing">–</span>'


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        ("", ["-created_at", "-id"]),
        ("name", ["id"]),
        ("-name", ["-id"]),
        ("made", ["created_at", "-id"]),
    ],
)
def test_a_table_sorts_by_its_columns(asked: str, order: list[str]) -> None:
    assert SHAPE.table_for({"sort": asked}).order == order


@pytest.mark.parametrize("asked", ["n", "--name", "password", "created_at"])
def test_a_table_sorts_by_its_own_columns_alone(asked: str) -> None:
    with pytest.raises(InvalidInput, match="can't be sorted by"):
        SHAPE.table_for({"sort": asked})


def test_a_head_leads_to_the_other_direction() -> None:
    assert [(h.sort, h.direction) for h in SHAPE.table_for({}).header_cells] == [
        ("name", ""),
        ("made", "descending"),
        ("", ""),
    ]
    assert [(h.sort, h.direction) for h in SHAPE.table_for({"sort": "name"}).header_cells] == [
        ("-name", "ascending"),
        ("-made", ""),
        ("", ""),
    ]


def test_heads_of_a_table_that_cannot_be_sorted_lead_nowhere() -> None:
    assert [(h.sort, h.direction) for h in SHAPE.static.header_cells] == [("", ""), ("", "descending"), ("", "")]
    assert SHAPE.static.order == SHAPE.table_for({}).order


@dataclass(frozen=True)
class Thing:
    id: int
    created_at: int | None


def test_rows_of_no_query_are_arranged_as_a_query_would() -> None:
    rows = [Thing(1, 5), Thing(2, None), Thing(3, 7), Thing(4, 5)]
    assert [thing.id for thing in SHAPE.table_for({}).arranged(rows)] == [3, 4, 1, 2]
    assert [thing.id for thing in SHAPE.table_for({"sort": "made"}).arranged(rows)] == [4, 1, 3, 2]


def test_a_column_can_be_left_out_and_no_longer_sorted_by() -> None:
    shape = SHAPE.without_columns("name")
    assert [head.column.name for head in shape.table_for({}).header_cells] == ["made", "n"]
    with pytest.raises(InvalidInput):
        shape.table_for({"sort": "name"})


def test_a_line_for_curl_is_one_word_however_odd_the_address() -> None:
    line = curl_line("http://here/api/v1/tasks/?search=a'b;rm&x=$(y)")
    assert line.endswith("""'http://here/api/v1/tasks/?search=a'"'"'b;rm&x=$(y)'""")
