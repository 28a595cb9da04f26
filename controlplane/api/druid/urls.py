"""Addresses under /druid/indexer/v1/, without a slash at the end, as Druid has them."""

from django.urls import path

from controlplane.api.druid import cluster, overlord, sampler, supervisors, tasks

app_name = "druid"
urlpatterns = [
    path("task", tasks.SubmitTaskView.as_view(), name="submit-task"),
    path("tasks", tasks.TasksView.as_view(), name="tasks"),
    path("task/<str:task_id>", tasks.TaskView.as_view(), name="task"),
    path("task/<str:task_id>/status", tasks.StatusView.as_view(), name="task-status"),
    path("task/<str:task_id>/reports", tasks.ReportsView.as_view(), name="task-reports"),
    path("task/<str:task_id>/log", tasks.LogView.as_view(), name="task-log"),
    path("task/<str:task_id>/shutdown", tasks.ShutdownView.as_view(), name="task-shutdown"),
    path("totalWorkerCapacity", tasks.CapacityView.as_view(), name="total-worker-capacity"),
    path("datasources/<str:name>", overlord.DatasourceView.as_view(), name="datasource"),
    path("datasources/<str:name>/markUnused", overlord.MarkUnusedView.as_view(), name="mark-unused"),
    path("datasources/<str:name>/markUsed", overlord.MarkUsedView.as_view(), name="mark-used"),
    path("datasources/<str:name>/segments/<str:segment_id>", overlord.SegmentView.as_view(), name="segment"),
    path("leader", cluster.LeaderView.as_view(), name="leader"),
    path("isLeader", cluster.IsLeaderView.as_view(), name="is-leader"),
    path("workers", cluster.WorkersView.as_view(), name="workers"),
    path("runningTasks", cluster.RunningTasksView.as_view(), name="running-tasks"),
    path("pendingTasks", cluster.PendingTasksView.as_view(), name="pending-tasks"),
    path("waitingTasks", cluster.WaitingTasksView.as_view(), name="waiting-tasks"),
    path("completeTasks", cluster.CompleteTasksView.as_view(), name="complete-tasks"),
    path("taskStatus", cluster.TaskStatusesView.as_view(), name="task-statuses"),
    path("lockedIntervals", cluster.LockedIntervalsView.as_view(), name="locked-intervals"),
    path("lockedIntervals/v2", cluster.LockedIntervalsV2View.as_view(), name="locked-intervals-v2"),
    path("sampler", sampler.SamplerView.as_view(), name="sampler"),
    path("supervisor", supervisors.SupervisorsView.as_view(), name="supervisors"),
    path("supervisor/history", supervisors.AllHistoryView.as_view(), name="supervisors-history"),
    path("supervisor/suspendAll", supervisors.SuspendAllView.as_view(), name="suspend-all"),
    path("supervisor/resumeAll", supervisors.ResumeAllView.as_view(), name="resume-all"),
    path("supervisor/terminateAll", supervisors.TerminateAllView.as_view(), name="terminate-all"),
    path("supervisor/<str:supervisor_id>", supervisors.SupervisorView.as_view(), name="supervisor"),
    path("supervisor/<str:supervisor_id>/status", supervisors.StatusView.as_view(), name="supervisor-status"),
    path("supervisor/<str:supervisor_id>/health", supervisors.HealthView.as_view(), name="supervisor-health"),
    path("supervisor/<str:supervisor_id>/stats", supervisors.StatsView.as_view(), name="supervisor-stats"),
    path("supervisor/<str:supervisor_id>/history", supervisors.HistoryView.as_view(), name="supervisor-history"),
    path("supervisor/<str:supervisor_id>/reset", supervisors.ResetView.as_view(), name="supervisor-reset"),
    path("supervisor/<str:supervisor_id>/resetOffsets", supervisors.ResetOffsetsView.as_view(), name="reset-offsets"),
    path("supervisor/<str:supervisor_id>/taskGroups/handoff", supervisors.HandOffView.as_view(), name="hand-off"),
    path("supervisor/<str:supervisor_id>/suspend", supervisors.SuspendView.as_view(), name="supervisor-suspend"),
    path("supervisor/<str:supervisor_id>/resume", supervisors.ResumeView.as_view(), name="supervisor-resume"),
    path("supervisor/<str:supervisor_id>/terminate", supervisors.TerminateView.as_view(), name="supervisor-terminate"),
]
