"""JSON as nested lists on a page: escaped, and bounded."""

from __future__ import annotations

from typing import Any

from frontend.json_tree import DEEPEST, MAX_NODES, tree_html


def test_values_stand_below_their_names() -> None:
    assert tree_html({"a": [1, None], "b": {}}) == (
        '<ul class="tree"><li><span>a</span>: <ul class="tree"><li><span>0</span>: <code>1</code></li>'
        "<li><span>1</span>: <code>null</code></li></ul></li><li><span>b</span>: <code>{}</code></li></ul>"
    )
    assert tree_html("x") == "<code>&quot;x&quot;</code>"


def test_nothing_in_it_is_markup_or_hides_itself() -> None:
    drawn = tree_html({"<b>": "<script>\u202e"})
    assert "<b>" not in drawn
    assert "<script>" not in drawn
    assert "\u202e" not in drawn


def test_a_large_value_is_cut() -> None:
    assert tree_html(list(range(MAX_NODES + 100))).count("<li") == MAX_NODES
    assert "101 more, not shown" in tree_html(list(range(MAX_NODES + 100)))


def test_a_deep_value_is_cut() -> None:
    value: Any = 1
    for _ in range(DEEPEST + 10):
        value = [value]
    drawn = tree_html(value)
    assert drawn.count("<ul") == DEEPEST
    assert "nested further" in drawn
