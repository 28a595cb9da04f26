"""Which topics are small enough to share an application: ``ioConfig.smallTopicRate``, and how much is read lately.

What counts are records that were stored or are held, over five minutes: publishes gather records, and would else show
rates that never were. A topic that many unread records wait in is not small, either.
"""

from __future__ import annotations

from controlplane.lag.trend import LagTrend, lag_trends
from controlplane.spark import spark_conf
from controlplane.supervisors.health_queries import sources_read_by
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Task

BACKLOG_S = 60  # as many records as come in this time at the largest rate may wait unread
RETURN_SHARE = 0.5  # of the largest rate: below it a topic that grew shares again


def may_share(supervisor: Supervisor, version: SpecVersion) -> bool:
    """Whether the next task of this version shares an application. One that grew does when it is much smaller."""
    most = version.io_config.smallTopicRate
    if most is None or version.io_config.boundedStreamConfig is not None or not spark_conf.is_local():
        return False
    last = Task.objects.reading().filter(supervisor_id=supervisor.pk, spec_version=version.version).first()
    grew = last is not None and not last.shares_application
    return is_small(_trend(supervisor), most * RETURN_SHARE if grew else most)


def outgrown(supervisor: Supervisor, tasks: list[Task]) -> set[str]:
    """Those of its tasks that share an application, and whose topic is not small any more."""
    sharing = {t.pk for t in tasks if not t.ended and t.shares_application}
    most = supervisor.io_config.smallTopicRate
    if not sharing or most is None or is_small(_trend(supervisor), most):
        return set()
    return sharing


def is_small(trend: LagTrend | None, most: float) -> bool:
    """Whether a topic has no more than ``most`` records/s; true of one that nothing is known of yet."""
    if trend is None:
        return True
    return (trend.taken_per_s or 0) <= most and trend.unread <= most * BACKLOG_S


def _trend(supervisor: Supervisor) -> LagTrend | None:
    source = sources_read_by([supervisor]).get(supervisor.pk)
    return None if source is None else lag_trends([source.pk]).get(source.pk)
