"""The parts that pages are made of: see docs/design-language.md and /-/styleguide/."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, cast

from django import template
from django.http import HttpRequest
from django.template.context import Context
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane.supervisors.trends import Trend
from frontend.sparkline import spark_html
from frontend.tables import Table
from frontend.task_names import short_name

register = template.Library()


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """An icon of Bootstrap Icons: decorative, unless it has a label."""
    return icon_html(name, label)


@register.simple_tag
def sparkline(values: Sequence[float | None], label: str, state: str = "") -> SafeString:
    """A series as a small drawing; the label says what it shows."""
    return spark_html(values, label, state)


@register.filter
def task_name(task_id: str) -> str:
    """A task's short name: its start and suffix."""
    return short_name(str(task_id))


@register.simple_block_tag(takes_context=True, end_name="end_page_head")
def page_head(
    context: Context,
    content: str,
    title: str,
    subtitle: str = "",
    under: str = "",
    state: str = "",
    rest: str = "",
    copy: str = "",
) -> str:
    """A page's head: its title with a state (of the ``state`` filter), what stands under it, and in the block its
    actions.

    ``under``: a template for what stands under the title, where a text does not do.
    ``rest``: the REST address of what the page shows, offered with a line for curl. ``copy``: an id to be copied whole.
    """
    request: HttpRequest = context["request"]
    address = request.build_absolute_uri(rest) if rest else ""
    shown = {
        "title": title,
        "subtitle": render_to_string(under, cast(dict[str, Any], context.flatten())) if under else subtitle,
        "state": state,
        "copy": copy,
        "actions": content,
        "address": address,
        "curl": curl_line(address),
    }
    return render_to_string("partials/head.html", shown)


def curl_line(address: str) -> str:
    """Fit for a shell, whatever the address holds; the token comes from the environment."""
    return f'curl -H "Authorization: Bearer $HEADGATE_TOKEN" {shlex.quote(address)}' if address else ""


@register.simple_block_tag(end_name="end_empty_state")
def empty_state(content: str, title: str, icon: str = "inbox") -> str:
    """Nothing is here: why, and in the block what to do about it."""
    return render_to_string("partials/empty.html", {"title": title, "icon": icon, "content": content})


@register.simple_tag
def cell(table: Table, name: str, classes: str = "") -> SafeString:
    """A cell's attributes: which column it is of, for what hides it, and what it is called where there is no head."""
    column = next(column for column in table.shape.columns if column.name == name)
    classes = " ".join(filter(None, ["number" if column.number else "", classes]))
    return format_html(
        'data-col="{}"{}{}{}',
        name,
        "" if column.has_hidden_head else format_html(' data-label="{}"', column.label),
        format_html(' class="{}"', classes) if classes else "",
        "" if column.is_shown else format_html(" {}", "hidden"),
    )


@register.simple_tag(takes_context=True)
def sorted_by(context: Context, table: Table, sort: str) -> str:
    """The page's address with this table sorted so, from its first page on."""
    query = context["request"].GET.copy()
    for key in ("page", "cursor"):
        query.pop(key, None)
    query[table.shape.key] = sort
    return f"?{query.urlencode()}"


@register.filter
def words_of(text: str) -> list[str]:
    """The words of a text, to go through in a template."""
    return text.split()


@register.filter
def lag_told(trend: Trend) -> str:
    """What the drawing of a lag shows."""
    values = [value for value in trend.lag if value is not None]
    if not values:
        return "Lag of the last hour: unknown"
    return f"Lag of the last hour: {int(values[-1]):,} at the end, at most {int(max(values)):,}"


@register.filter
def lag_tone(trend: Trend) -> str:
    """Its state: whether it grows."""
    return "need" if trend.grows else ""


@register.filter
def rate_told(trend: Trend) -> str:
    """What the drawing of a rate shows."""
    values = [value for value in trend.rows_per_s if value is not None]
    if not values:
        return "Rows/s of the last hour: unknown"
    return f"Rows/s of the last hour: {values[-1]:,.0f} at the end, at most {max(values):,.0f}"


def icon_html(name: str, label: str = "") -> SafeString:
    """Decorative, unless it has a label to be read out."""
    use = format_html('<use href="{}#{}"/>', static("headgate/icons.svg"), name)
    if label:
        return format_html('<svg class="icon" role="img" aria-label="{}">{}</svg>', label, use)
    return format_html('<svg class="icon" aria-hidden="true" focusable="false">{}</svg>', use)
