"""Addresses under /druid/v2/. Druid's clients write that of SQL with a slash at the end and without one."""

from django.urls import path

from controlplane.api.druid import sql

app_name = "druid-sql"
urlpatterns = [
    path("sql", sql.DruidSqlView.as_view(), name="sql"),
    path("sql/", sql.DruidSqlSlashView.as_view(), name="sql-with-slash"),
    path("sql/<str:query_id>", sql.DruidSqlQueryView.as_view(), name="sql-query"),
]
