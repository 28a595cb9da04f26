"""Druid's addresses of load and drop rules."""

from __future__ import annotations

import json
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.druid.base import DruidView
from controlplane.api.druid.datasources import FULL, MAX_DATASOURCES
from controlplane.api.druid.marking import TAG, json_responses
from controlplane.api.druid.openapi import ANYTHING, TEXT, TIME, array, named, nullable, shape
from controlplane.api.druid.shapes import instant
from controlplane.common.errors import InvalidInput
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import find_datasource
from controlplane.retention import rule_runner
from controlplane.retention.models import RuleChange
from controlplane.retention.rules import read_rules, rules_json

_RULES = array(ANYTHING)
_HISTORY = array(
    shape(
        key=TEXT,
        type={"const": "rules"},
        auditInfo=shape(author=TEXT, identity=TEXT, comment=TEXT, ip=TEXT),
        request=nullable(ANYTHING),
        payload=TEXT,
        auditTime=TIME,
    )
)
_COUNT = OpenApiParameter("count", int)


def _datasource_named(view: DruidView, name: str) -> Datasource | None:
    return None if name == rule_runner.SITE else find_datasource(view.actor, name)


class RulesView(DruidView):
    @extend_schema(operation_id="druid_list_rules", tags=TAG, responses=json_responses(named(_RULES)))
    def get(self, request: Request) -> Response:
        """All rules by datasource. `_default` has the site's rules."""
        rules: dict[str, Any] = {rule_runner.SITE: rules_json(rule_runner.rules_of(None))}
        datasources = Datasource.objects.visible_to(self.actor).filter(rule_set__isnull=False).order_by("name")
        for datasource in datasources[:MAX_DATASOURCES]:
            rules[datasource.name] = rules_json(rule_runner.rules_of(datasource))
        return Response(rules)


class RulesOfView(DruidView):
    @extend_schema(operation_id="druid_get_rules", tags=TAG, parameters=[FULL], responses=json_responses(_RULES))
    def get(self, request: Request, name: str) -> Response:
        """A datasource's rules. With `full`, followed by the site's rules."""
        datasource = _datasource_named(self, name)
        is_full = datasource is not None and self.flag("full")
        return Response(
            rules_json(
                rule_runner.rules_in_force(datasource) if is_full and datasource else rule_runner.rules_of(datasource)
            )
        )

    @extend_schema(
        operation_id="druid_set_rules",
        tags=TAG,
        request={"application/json": _RULES},
        responses={200: None},
    )
    def post(self, request: Request, name: str) -> Response:
        """Replace a datasource's rules. `_default` replaces the site's rules."""
        datasource = _datasource_named(self, name)
        comment = request.headers.get("X-Druid-Comment", "")
        rule_runner.set_rules(user=self.actor, datasource=datasource, rules=read_rules(request.data), comment=comment)
        return Response()


class RuleHistoryView(DruidView):
    @extend_schema(
        operation_id="druid_get_rule_history", tags=TAG, parameters=[_COUNT], responses=json_responses(_HISTORY)
    )
    def get(self, request: Request, name: str) -> Response:
        """The changes of a datasource's rules, newest first."""
        changes = rule_runner.list_changes(_datasource_named(self, name))[: _count(request)]
        return Response([_change(name, change) for change in changes])


def _change(key: str, change: RuleChange) -> dict[str, Any]:
    author = {"author": change.author, "identity": change.author, "comment": change.comment, "ip": change.address}
    return {
        "key": key,
        "type": "rules",
        "auditInfo": author,
        "request": None,
        "payload": json.dumps(change.rules),
        "auditTime": instant(change.created_at),
    }


def _count(request: Request) -> int:
    text = request.query_params.get("count", "100")
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MAX_DATASOURCES:
        raise InvalidInput(f"count must be 1 to {MAX_DATASOURCES}.")
    return int(text)
