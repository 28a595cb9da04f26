"""Tests make drafts of the wizard over REST, and keep records for them without a Kafka."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from controlplane.loading import samples
from controlplane.loading.models import Draft
from ingestion.specs.messages.sampling import Arrived, KeptRecord, SampleAnswer

DRAFTS = "/api/v1/load/drafts/"
NOON_MS = 1_769_860_800_000  # 2026-01-31T12:00:00Z
SERVERS = {"bootstrap.servers": "kafka-broker:9092"}
ORDERS = [
    {"placed_at": "2026-01-31T12:00:00Z", "id": f"o-{i}", "amount": i, "from": {"city": "Bonn"}} for i in range(8)
]
# A mistake, a record without a value.
PAYLOADS = [*(json.dumps(order).encode() for order in ORDERS), b'{"id": "no time"}', b"{half", None]


def document(**io_config: Any) -> dict[str, Any]:
    return {
        "type": "kafka",
        "spec": {
            "dataSchema": {"dataSource": "orders"},
            "ioConfig": {"topic": "orders", "consumerProperties": SERVERS, **io_config},
        },
    }


def begin(client: Client, body: Any = None) -> Draft:
    answer = client.post(DRAFTS, {"document": document()} if body is None else body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    return Draft.objects.get(pk=answer.json()["id"])


def with_records(draft: Draft, payloads: list[bytes | None] = PAYLOADS) -> Draft:
    """Kept for it without a Kafka, a second apart."""
    records = [
        KeptRecord.model_construct(partition=0, offset=i, timestamp_ms=NOON_MS + 1000 * i, payload=p)
        for i, p in enumerate(payloads)
    ]
    samples.store_sample(draft, SampleAnswer.model_construct(kept=records, arrived=Arrived(records=60, window_s=60)))
    return draft


def address(draft: Draft, part: str = "") -> str:
    return f"{DRAFTS}{draft.pk}/{part}"


def change(client: Client, draft: Draft, written: Any) -> Any:
    return client.put(address(draft), {"document": written}, content_type="application/json")


def flights(client: Client) -> Draft:
    record = b'{"__time": "2026-01-31T12:00:00Z", "n": 1}'
    return with_records(
        begin(client, {"supervisor": "flights"}), [record, b'{"__time": "2026-01-31T12:00:00Z", "n": 9}']
    )
