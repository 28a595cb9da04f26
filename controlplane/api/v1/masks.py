"""Which columns of a datasource are masked, and up to which role."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.base import BodySerializer, HeadgateView, body_of
from controlplane.common.errors import FieldError, InvalidInput
from controlplane.datasources.mask_models import MaskedColumn
from controlplane.datasources.masking import MOST_COLUMNS, masked_columns, set_masks
from controlplane.datasources.selectors import find_datasource
from controlplane.teams.models import Role


class MaskSerializer(serializers.Serializer[Any]):
    column = serializers.CharField(max_length=300)
    role = serializers.ChoiceField(
        [Role.OPERATOR.value, Role.ADMIN.value],
        default=Role.ADMIN.value,
        help_text="The least role in the team that sees its values.",
    )


class MasksSerializer(serializers.Serializer[Any]):
    columns = MaskSerializer(many=True)


class MasksBody(BodySerializer):
    columns = serializers.ListField(child=MaskSerializer(), max_length=MOST_COLUMNS)


class MasksView(HeadgateView):
    @extend_schema(operation_id="get_masked_columns", tags=["datasources"], responses=MasksSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The columns whose values not every member sees, each with the least role that does."""
        return _answer(masked_columns(find_datasource(self.actor, name)))

    @extend_schema(
        operation_id="set_masked_columns", tags=["datasources"], request=MasksBody, responses=MasksSerializer
    )
    def put(self, request: Request, name: str) -> Response:
        """Mask these columns and no others. Needs the role admin."""
        listed = body_of(request, MasksBody)["columns"]
        masks = {one["column"]: one["role"] for one in listed}
        if len(masks) < len(listed):
            fault = FieldError("/columns", "names a column twice")
            raise InvalidInput("The masked columns have faults.", [fault])
        datasource = find_datasource(self.actor, name)
        return _answer(set_masks(user=self.actor, datasource=datasource, masks=masks))


def _answer(masks: list[MaskedColumn]) -> Response:
    return Response(MasksSerializer({"columns": masks}).data)
