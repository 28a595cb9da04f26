"""The tables of what is in a cluster: topics' partitions, groups, and how far each has read."""

from __future__ import annotations

from frontend.tables import Column, Shape

GROUPS = Shape(
    "groups",
    (
        Column("name", "Group", sorts="name", fixed=True),
        Column("state", "State", sorts="state"),
        Column("type", "Protocol", sorts="type"),
    ),
    default="name",
    last=("name",),
)
PARTITIONS = Shape(
    "topic-partitions",
    (
        Column("partition", "Partition", sorts="number", number=True, fixed=True),
        Column("first", "Start offset", sorts="start", number=True, falls=True),
        Column("end", "End offset", sorts="end", number=True, falls=True),
        Column("records", "Records", sorts="records", number=True, falls=True),
        Column("leader", "Leader", sorts="leader"),
        Column("replicas", "Replicas", sorts="lacking", falls=True),
    ),
    default="partition",
    last=("number",),
)
OFFSETS = Shape(
    "group-offsets",
    (
        Column("topic", "Topic", sorts="topic", fixed=True),
        Column("partition", "Partition", sorts="partition", number=True, fixed=True),
        Column("offset", "Offset", sorts="offset", number=True, falls=True),
        Column("end", "End offset", sorts="end", number=True, falls=True),
        Column("lag", "Lag", sorts="lag", number=True, falls=True),
    ),
    default="topic",
    last=("topic", "partition"),
)
MEMBERS = Shape(
    "group-members",
    (
        Column("client", "Client", sorts="client_id", fixed=True),
        Column("host", "Host", sorts="host"),
        Column("partitions", "Partitions", sorts="partitions", number=True, falls=True),
    ),
    default="client",
    last=("client_id", "host"),
    key="members_sort",
)
PARTITIONS_PER_PAGE = 100
