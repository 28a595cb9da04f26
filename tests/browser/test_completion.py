"""The editor of a spec offers names with what the reference says of them, and values."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from controlplane.loading.models import Draft
from tests.browser.site import Visit


def test_names_and_values_of_a_spec_are_offered(visit: Visit) -> None:
    visit.become("owner")
    visit.open("/supervisors/-/new/")
    page: Page = visit.page
    editor = page.locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.type('{"dataSchema": {"gran')
    option = page.locator(".cm-tooltip-autocomplete li")
    expect(option.first).to_contain_text("granularitySpec")
    option.first.click()
    page.keyboard.type('{"roll')
    expect(option.first).to_contain_text("rollup")
    expect(page.locator(".cm-completionInfo")).to_contain_text("Rows with equal truncated time")
    option.first.click()
    page.keyboard.press("Control+Space")
    expect(option).to_have_text(["false", "true"])


def test_fields_and_functions_are_offered_while_an_expression_is_written(visit: Visit) -> None:
    draft = visit.site.draft()
    visit.open(f"/load/{draft.pk}/transform/")
    page = visit.page
    made = page.get_by_label("Transforms, one per line: name = expression", exact=True)
    made.click()
    page.keyboard.type("half = am")
    option = page.locator(".cm-tooltip-autocomplete li")
    expect(option.first).to_contain_text("amount")
    option.first.click()
    page.keyboard.type(" * 2 + fl")
    expect(option.first).to_contain_text("floor")
    option.first.click()
    page.keyboard.type("amount")
    expect(made).to_have_text("half = amount * 2 + floor(amount)")
    condition = page.get_by_label("Keep records where", exact=True)
    condition.click()
    page.keyboard.type("amount > 1")
    page.keyboard.press("Enter")  # a field of one line stays one
    visit.press("Columns")
    page.wait_for_url("**/schema/")
    spec = Draft.objects.get(pk=draft.pk).document["spec"]["dataSchema"]["transformSpec"]
    assert spec["filter"]["expression"] == "amount > 1"
    assert [t["expression"] for t in spec["transforms"]] == ["amount * 2 + floor(amount)"]
