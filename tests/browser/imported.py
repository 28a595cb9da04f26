"""What a Druid cluster answers of supervisors of which each has another verdict here."""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.support.django_cast import spec_for
from tests.support.druid_specs import LISTED

NEW, ODD = "recorded_10", "odd"


def druids_list() -> str:
    """One that is new, one that is refused, and a change of ``flights``."""
    new: dict[str, Any] = json.loads(LISTED.read_text(encoding="utf-8"))["supervisors"][0]
    odd = copy.deepcopy(new["spec"])
    odd["spec"]["ioConfig"]["taskCount"] = 0
    changed = {**spec_for("flights", taskCount=3), "suspended": False}
    return json.dumps([new, {"id": ODD, "spec": odd}, {"id": "flights", "spec": changed}])
