"""Supervisors of a Druid cluster taken over on the page."""

from __future__ import annotations

from playwright.sync_api import FilePayload, expect

from controlplane.supervisors.models import Supervisor
from tests.browser.imported import NEW, ODD, druids_list
from tests.browser.site import Visit

PAGE = "supervisors/-/import/"
LOOK, IMPORT, UNFOLD = "Preview import", "Import selected", "Options without effect"
CONTROLS = ((f"POST {PAGE}", LOOK), (f"POST {PAGE}", IMPORT), ("", UNFOLD))


def import_supervisors(visit: Visit) -> None:
    """From a file, one of which alone is ticked."""
    visit.open(f"/{PAGE}")
    content: FilePayload = {
        "name": "supervisors.json",
        "mimeType": "application/json",
        "buffer": druids_list().encode(),
    }
    visit.page.get_by_label("Druid's answer as a file").set_input_files(content)
    visit.press(LOOK)
    verdicts = visit.page.locator("#verdicts")
    expect(verdicts).to_contain_text("Nothing was changed. 2 of 3 would be created or changed.")
    expect(verdicts.locator(f'[data-supervisor="{ODD}"]')).to_contain_text("taskCount")
    assert not Supervisor.objects.filter(pk=NEW).exists()
    new = verdicts.locator(f'[data-supervisor="{NEW}"]')
    new.get_by_text(UNFOLD).click()
    expect(new).to_contain_text("chatRetries")
    verdicts.get_by_role("checkbox", name="flights").uncheck()
    visit.press(IMPORT)
    expect(verdicts).to_contain_text("1 of 1 was created or changed.")
    assert visit.site.supervisor(NEW).suspended
    assert visit.site.supervisor().version == 2
