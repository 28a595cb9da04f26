"""From the version before the newest migration to this one, process after process, while two sources are read.

Spark: applications of the version before go on below this version's schema, web, worker and beat.
"""

from __future__ import annotations

import argparse
import warnings

from benchmarks import upgrade

DWELL_S = 1.0
RATE = 40  # records a second to each topic


def test_every_process_changes_while_sources_are_read_and_nothing_is_lost_or_twice() -> None:
    before = upgrade.version_before()
    if before is None:
        warnings.warn("there is no history here: this version changes to a copy of itself", stacklevel=1)
    result = upgrade.run(argparse.Namespace(revision=before, dwell=DWELL_S, rate=RATE))
    assert (result["lost"], result["duplicated"], result["wrong"]) == (0, 0, [])
    assert result["client_requests"] > 0
    assert result["client_errors"] == []
    assert all(result[f"{kind}_stored"] > 0 for kind in upgrade.KINDS)
