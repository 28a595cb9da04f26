"""A round of compaction, every few seconds.

1. One process at a time has a round; who comes meanwhile leaves it at that.
2. An application that is dead or silent has ended; what it had not done waits again, for another attempt.
3. Tasks of people go on (``compact_tasks``): their jobs come first.
4. Jobs are made of what is due (``planning``), and of intervals that are to be partitioned; tasks of large ones
   (``rewrites``).
5. If some wait and no application runs, one is launched when there is room (``tasks.residents``).
"""

from __future__ import annotations

from controlplane.common.database import try_advisory_lock
from controlplane.compaction import compact_tasks, jobs, planning
from controlplane.compaction.models import Job, State
from controlplane.tasks import residents
from controlplane.tasks.models import Resident

_LOCK = 0x434F4D50


def run() -> None:
    """One round."""
    with try_advisory_lock(_LOCK) as won:
        if not won:
            return
        residents.end_lost()
        for application in _ended_with_jobs():
            jobs.requeue_jobs(application)
        compact_tasks.run()
        planning.plan()
        planning.plan_rewrites()
        if residents.running() is None and Job.objects.filter(state=State.WAITING).exists():
            residents.launch(jobs.NAME)


def _ended_with_jobs() -> list[str]:
    ended = Resident.objects.filter(ended_at__isnull=False, jobs__state=State.RUNNING)
    return list(ended.values_list("pk", flat=True).distinct().order_by())
