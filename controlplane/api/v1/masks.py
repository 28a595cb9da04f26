"""The masked columns of a datasource, each with the lowest role that sees its values."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import BodySerializer, HeadgateView, body_of
from controlplane.common.errors import FieldError, InvalidInput
from controlplane.datasources.masking import MAX_COLUMNS, masked_columns, set_masks
from controlplane.datasources.models import Datasource, MaskedColumn
from controlplane.datasources.selectors import find_datasource
from controlplane.segments.selectors.columns import datasource_schema, mask_warnings
from controlplane.teams.roles import Role


class MaskSerializer(serializers.Serializer[Any]):
    column = serializers.CharField(max_length=300)
    role = serializers.ChoiceField(
        [Role.OPERATOR.value, Role.ADMIN.value],
        default=Role.ADMIN.value,
        help_text="The lowest role in the team that sees the column's values.",
    )


class MasksSerializer(serializers.Serializer[Any]):
    columns = MaskSerializer(many=True)
    warnings = serializers.ListField(
        child=serializers.CharField(),
        help_text="Warnings about masks that hide no column, or another column than they name.",
    )


class MasksBody(BodySerializer):
    columns = serializers.ListField(child=MaskSerializer(), max_length=MAX_COLUMNS)


class MasksView(HeadgateView):
    @extend_schema(operation_id="get_masked_columns", tags=["datasources"], responses=MasksSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The masked columns, each with the lowest role that sees its values."""
        datasource = find_datasource(self.actor, name)
        return _answer(datasource, masked_columns(datasource))

    @extend_schema(
        operation_id="set_masked_columns", tags=["datasources"], request=MasksBody, responses=MasksSerializer
    )
    def put(self, request: Request, name: str) -> Response:
        """Replace the list of masked columns. Needs the role admin."""
        listed = body_of(request, MasksBody)["columns"]
        masks = {mask["column"]: mask["role"] for mask in listed}
        if len(masks) < len(listed):
            fault = FieldError("/columns", "names a column twice")
            raise InvalidInput("The masked columns have errors.", [fault])
        datasource = find_datasource(self.actor, name)
        return _answer(datasource, set_masks(user=self.actor, datasource=datasource, masks=masks))


def _answer(datasource: Datasource, masks: list[MaskedColumn]) -> Response:
    columns = [column["name"] for column in datasource_schema(datasource)] if masks else []
    warnings = mask_warnings([mask.column for mask in masks], columns)
    return Response(MasksSerializer({"columns": masks, "warnings": warnings}).data)
