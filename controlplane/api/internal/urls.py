"""Addresses under /internal/."""

from django.urls import path

from controlplane.api.internal import batch, compaction, views

urlpatterns = [
    path("tasks/<str:task_id>/assignment", views.assignment),
    path("tasks/<str:task_id>/heartbeat", views.heartbeat),
    path("tasks/<str:task_id>/end", views.end),
    path("tasks/<str:task_id>/quarantined", views.quarantined),
    path("tasks/<str:task_id>/produced", views.produced),
    path("tasks/<str:task_id>/columns", views.column_ids),
    path("tasks/<str:task_id>/batch/start", batch.start),
    path("tasks/<str:task_id>/batch/publish", batch.publish),
    path("tasks/<str:task_id>/kept/publish", batch.publish_kept),
    path("tasks/<str:task_id>/indexers/<int:number>/start", views.start),
    path("tasks/<str:task_id>/indexers/<int:number>/claim", views.claim),
    path("tasks/<str:task_id>/indexers/<int:number>/settled", views.settled),
    path("tasks/<str:task_id>/indexers/<int:number>/publish", views.publish),
    path("tasks/<str:task_id>/indexers/<int:number>/abandon", views.abandon),
    path("compaction/<str:application>/work", compaction.work),
    path("compaction/<str:application>/jobs/<str:job_id>/columns", compaction.column_ids),
    path("compaction/<str:application>/jobs/<str:job_id>/replace", compaction.replace),
    path("compaction/<str:application>/jobs/<str:job_id>/failed", compaction.failed),
    path("compaction/<str:application>/end", compaction.end),
]
