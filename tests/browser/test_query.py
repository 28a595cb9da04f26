"""The query page over real segments: words are offered, keys run a statement, an error is shown, a mask is named.

Cheaper tests see neither the editor nor what the page makes of rows that come in pieces.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from controlplane.datasources.masking import set_masks
from tests.browser.conftest import Quiet
from tests.browser.crawl import Contrasts, fits, violations
from tests.browser.site import Visit
from tests.browser.test_every_page import AXE
from tests.browser.walks_of_queries import result_is, write
from tests.support.sql import june as make_june


def take(visit: Visit, word: str) -> None:
    """The first word that is offered. The editor takes none in the moment that it shows them."""
    expect(visit.page.locator(".cm-tooltip-autocomplete li").first).to_contain_text(word)
    visit.page.wait_for_timeout(200)
    visit.page.keyboard.press("Enter")


def test_a_statement_is_written_with_the_keyboard_and_run(
    visit: Visit, quiet: Quiet, tmp_path: Path, settings: Any
) -> None:
    quiet.expected.append("400 (Bad Request)")  # a statement with a fault
    june = make_june(visit.site.cast.alpha, tmp_path, settings)
    set_masks(user=visit.site.cast.users["owner"], datasource=june, masks={"name": "admin"})
    visit.page.add_init_script(AXE)
    visit.become("operator")
    visit.open("/query/")
    page = visit.page
    page.locator(".cm-content").click()
    page.keyboard.type("SELECT * FROM alpha.ju")
    take(visit, "june")
    page.keyboard.type(" WHERE __ti")
    take(visit, "__time")
    page.keyboard.type(" >= '2025-06-02' AND isfin")
    take(visit, "isfinite")
    page.keyboard.type("n")
    page.keyboard.press("Control+Enter")
    result_is(visit, "4 rows in ")
    table = page.locator("[data-query-table]")
    expect(table.locator("tbody tr").first).to_contain_text("2025-06-02T00:00:00Z")
    expect(page.locator("[data-query-note]")).to_have_text(
        "Masked columns, which are NULL for you: june.name (role admin)."
    )
    visit.press("Explain")
    expect(table.locator("tbody tr")).to_contain_text(["alpha.june2025-06-02T00:00:00Zno bound24"])
    page.locator(".cm-content").click()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(visit.button("Run")).to_be_focused()
    write(visit, "SELECT 9007199254740993::BIGINT AS large, no FROM june")
    visit.press("Run")
    expect(page.get_by_role("alert")).to_contain_text('Referenced column "no" not found')
    write(visit, "SELECT 9007199254740993::BIGINT AS large, '<b>' AS text FROM range(20000)")
    visit.press("Run")
    result_is(visit, "10,000 rows in ")
    expect(table.locator("tbody tr").first).to_have_text("9007199254740993<b>")
    expect(page.locator("[data-query-note]")).to_contain_text("There are more rows.")
    contrasts = Contrasts()
    faults = violations(page, rules={"color-contrast": {"enabled": False}})
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        faults += contrasts.faults(page)
    fits(page)
    assert faults == []
