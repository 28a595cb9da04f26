"""What Celery is asked for, by name: a message names it, and so does the schedule."""

from __future__ import annotations

from django.conf import settings

from controlplane.config import celery_app

# Whoever renames one loses the messages that are in the queue, and those of a beat or worker of another version.
NAMES = {
    "controlplane.alerts.tasks": {"drop_old", "evaluate", "send"},
    "controlplane.catalog.tasks": {"build", "expire"},
    "controlplane.compaction.tasks": {"drop_old", "round"},
    "controlplane.lag.tasks": {"drop_old_lag"},
    "controlplane.loading.tasks": {"drop_old_drafts"},
    "controlplane.login.tasks": {"drop_over"},
    "controlplane.metrics.tasks": {"fold_usage", "sum_up_records"},
    "controlplane.publishing.tasks": {"fold", "fold_everywhere", "make_receipt_partitions"},
    "controlplane.quarantine.tasks": {"fold_causes", "purge_quarantine"},
    "controlplane.retention.tasks": {"apply_rules", "clear", "kill"},
    "controlplane.segments.tasks": {"clean_up_orphans", "sum_up_days"},
    "controlplane.sources.tasks": {"drop_old_events"},
    "controlplane.supervisors.tasks": {
        *(
            "import_dead_letters",
            "iterate",
            "look_at_waiting",
            "observe_unread",
            "repair",
            "rewind",
            "run_all",
            "run_one",
        ),
    },
    "controlplane.tasks.tasks": {"launch", "watch"},
}


def registered() -> set[str]:
    celery_app.loader.import_default_modules()
    return {name for name in celery_app.tasks if name.startswith("controlplane.")}


def test_names_stay() -> None:
    assert registered() == {f"{module}.{name}" for module, names in NAMES.items() for name in names}


def test_whatever_is_scheduled_is_there() -> None:
    assert {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} <= registered()
