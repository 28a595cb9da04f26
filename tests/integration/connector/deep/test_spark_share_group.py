"""The data source ``kafka-sharegroup`` on a real broker: each record once, whatever dies between two steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import headgate
from headgate.publishes.batch import open_files
from headgate.publishes.columns import struct_of
from tests.support.guarded_kafka import Guarded, guarded
from tests.support.house import House
from tests.support.records import numbered, published
from tests.support.spark_session import Desk, metrics_of, stopped
from tests.support.waiting import wait_for
from tests.support.workers import Workers

__all__ = ["guarded"]  # a fixture
IN_READERS = ("polled", "proposed", "written", "settled")
IN_SOURCE = ("claimed", "planned", "committing", "kept")
Session = tuple[SparkSession, Path]  # with its folder


def test_killed_between_any_two_steps(desk: Desk) -> None:
    """A reader dies at each place in turn, under a query that goes on; then so does the source process, and the query,
    started again, has each record once.
    """
    topic = desk.broker.topic(partitions=2)
    desk.broker.configure_group(f"group-{topic}", share_record_lock_duration_ms=2000)
    many = 0

    def dies(place: str, query: StreamingQuery, mark: Path) -> None:
        nonlocal many
        for _ in range(2):  # what comes before a commit, and the next micro-batch, which brings it
            desk.broker.produce(topic, numbered(many, many + 300))
            many += 300
            desk.await_rows_or_end(query, "killed", many)
        wait_for(f"{place} was reached", mark.exists, 30)

    with stopped(desk.start(topic, "killed", readerProcesses=2)) as query:
        for place in IN_READERS:
            with desk.failing(**{place: "kill"}) as (mark,):
                dies(place, query, mark)
        assert query.exception() is None
    for place in IN_SOURCE:
        with (
            desk.failing(**{place: "kill"}) as (mark,),
            stopped(desk.start(topic, "killed", readerProcesses=2)) as query,
        ):
            dies(place, query, mark)
    with stopped(desk.start(topic, "killed", readerProcesses=0)) as query:
        desk.await_numbers(query, "killed", range(many))


def test_a_lock_that_ends_before_the_write(desk: Desk) -> None:
    """Another reader is given the records meanwhile: it waits for the first, and drops them."""
    topic = desk.broker.topic(partitions=1)
    desk.broker.configure_group(f"group-{topic}", share_record_lock_duration_ms=1000)
    desk.broker.produce(topic, numbered(0, 500))
    with desk.failing(proposed="sleep:4"), stopped(desk.start(topic, "slow", readerProcesses=2)) as query:
        desk.await_numbers(query, "slow", range(500))
        desk.broker.produce(topic, numbered(500, 600))
        desk.await_numbers(query, "slow", range(600))
        wait_for("what came again was dropped", lambda: metrics_of(query)["duplicatesDropped"], 30)
        assert metrics_of(query)["redelivered"] >= metrics_of(query)["duplicatesDropped"] > 0


def test_two_groups_see_everything_and_one_is_shared(desk: Desk) -> None:
    """Each query has a checkpoint of its own; a checkpoint that is in use is refused."""
    topic = desk.broker.topic(partitions=2)
    desk.broker.produce(topic, numbered(0, 3_000))
    with (
        stopped(desk.start(topic, "one", shareGroupId=f"a-{topic}")) as one,
        stopped(desk.start(topic, "two", shareGroupId=f"a-{topic}")) as two,
        stopped(desk.start(topic, "other", shareGroupId=f"b-{topic}")) as other,
    ):
        desk.await_numbers(other, "other", range(3_000))
        wait_for("all, by two", lambda: desk.count("one") + desk.count("two") >= 3_000, 60)
        desk.broker.produce(topic, numbered(3_000, 6_000))
        desk.await_numbers(other, "other", range(6_000))
        wait_for("all, by two", lambda: desk.count("one") + desk.count("two") >= 6_000, 60)
        assert sorted(desk.numbers("one") + desk.numbers("two")) == list(range(6_000))
        assert one.exception() is None and two.exception() is None
        third = desk.stream(topic, "one", shareGroupId=f"c-{topic}").writeStream.format("noop")
        with pytest.raises(StreamingQueryException, match="in use by another query"):
            third.option("checkpointLocation", desk.checkpoint("third")).start().awaitTermination()


def test_stopped_with_new_partitions_a_broker_that_restarts_and_a_topic_made_again(desk: Desk) -> None:
    from confluent_kafka.admin import NewPartitions  # not at the top: only here

    broker = desk.broker
    topic = broker.topic(partitions=1)
    broker.produce(topic, numbered(0, 400))
    with stopped(desk.start(topic, "life", maxRecordsPerTrigger=150)) as query:
        desk.await_numbers(query, "life", range(400))
    broker.admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    broker.produce(topic, numbered(400, 600), partition=0)
    with stopped(desk.start(topic, "life")) as query:
        wait_for(
            "the producer knows it", lambda: len(broker.producer.list_topics(topic, 10).topics[topic].partitions) == 3
        )
        broker.produce(topic, numbered(600, 800), partition=2)
        desk.await_numbers(query, "life", range(800), 90)
        broker.kafka.kill()
        broker.kafka.restart()
        broker.produce(topic, numbered(800, 1_000))
        desk.await_numbers(query, "life", range(1_000), 90)
        broker.admin.delete_topics([topic])[topic].result(30)
        away = "can't be read: Broker: Unknown topic"
        wait_for("it says that the topic is away", lambda: away in metrics_of(query)["complaint"], 60)
        broker.make_topic(topic, 1)
        broker.produce(topic, numbered(1_000, 1_100))
        wait_for("it says that the topic is another one", query.exception, 90)
        assert "was deleted and made again" in str(query.exception())
    with stopped(desk.start(topic, "life", failOnDataLoss="false")) as query:
        desk.await_numbers(query, "life", range(1_100), 90)


def test_poison_is_put_aside_or_ends_the_query(desk: Desk) -> None:
    """Delivered as often as the group lets it, twice here: the reader that had it first was killed."""
    topic = desk.broker.topic(partitions=1)
    desk.broker.configure_group(f"group-{topic}", share_delivery_count_limit=2)
    desk.broker.produce(topic, numbered(0, 5))
    with desk.failing(polled="kill"), stopped(desk.start(topic, "poison", numReaders=1, readerProcesses=1)) as query:
        wait_for("they were rejected", lambda: metrics_of(query)["rejected"] == 5, 60, lambda: query.lastProgress)
        desk.broker.produce(topic, numbered(5, 9))
        desk.await_numbers(query, "poison", range(5, 9))
    folder = Path(desk.checkpoint("poison")) / "kafka-sharegroup" / "rejected"
    aside = [row for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    assert [(r["offset"], r["delivery_count"]) for r in aside] == [(n, 2) for n in range(5)]
    desk.await_release()
    desk.broker.produce(topic, numbered(9, 10))
    strict: Any = {"numReaders": 1, "readerProcesses": 1, "onPoison": "fail"}
    with desk.failing(polled="kill"), stopped(desk.start(topic, "poison", **strict)) as query:
        wait_for("the query has ended", query.exception, 60)
    assert "was delivered 2 times" in str(query.exception())


def test_what_waits_is_bounded(desk: Desk) -> None:
    topic = desk.broker.topic(partitions=2)
    desk.broker.produce(topic, numbered(0, 8_000))
    seen: list[int] = []

    def slow(rows: DataFrame, number: int) -> None:
        seen.append(rows.count())

    bounds: dict[str, Any] = {
        "maxUncommittedBytes": "200k",
        "maxRecordsPerTrigger": 1_000,
        "kafka.max.poll.records": 500,
    }
    stream = desk.stream(topic, "bounded", numTasks=3, **bounds)
    writer = stream.writeStream.foreachBatch(slow).option("checkpointLocation", desk.checkpoint("bounded"))
    with stopped(writer.trigger(availableNow=True).start()) as query:
        assert query.awaitTermination(120)
        waiting = [m["bytesWaiting"] for p in query.recentProgress for m in headgate.metrics_in(p)]
    # A micro-batch takes whole polls, of 4,000 at most, and one at least: more than one only within its bound.
    assert (sum(seen), len(seen) > 1, max(seen) <= 4_000) == (8_000, True, True), seen
    poll = 4_000 * 150  # what each of two readers may have held when the bound was reached
    assert max(waiting) < 200 * 1024 + 2 * poll


def test_a_batch_read_has_what_was_there_at_its_first_action(desk: Desk) -> None:
    """And so has its view; ``load()`` again has what came since, too."""
    topic = desk.broker.topic(partitions=2)
    options = desk.options(topic, "batch", shareGroupId=f"batch-{topic}", idleTimeoutMs="15000")
    desk.broker.produce(topic, numbered(0, 2_000))
    rows = desk.spark.read.format("kafka-sharegroup").options(**options).load()
    rows.createOrReplaceTempView("b")
    desk.broker.produce(topic, numbered(2_000, 3_000))
    counted = "SELECT count(*) c, count(DISTINCT partition, offset) d FROM b"
    assert desk.spark.sql(counted).collect()[0] == (3_000, 3_000)
    desk.broker.produce(topic, numbered(3_000, 3_500))
    assert (rows.count(), desk.spark.sql(counted).collect()[0]) == (3_000, (3_000, 3_000))
    assert desk.spark.read.format("kafka-sharegroup").options(**options).load().count() == 3_500


def test_a_micro_batch_waits_for_records_that_are_worth_it(desk: Desk) -> None:
    """For so many of them, or until it has waited long enough."""
    topic = desk.broker.topic(partitions=1)
    buffer = Path(desk.checkpoint("worth")) / "kafka-sharegroup" / "files"
    with stopped(desk.start(topic, "worth", minRecordsPerTrigger=300, maxTriggerDelay="1h")) as query:
        desk.broker.produce(topic, numbered(0, 200))
        wait_for("they are in the buffer", lambda: list(buffer.glob("*.arrow")), 60)
        desk.broker.produce(topic, numbered(200, 350))
        desk.await_rows_or_end(query, "worth", 300)  # what comes in after the 300th waits for the next batch
        assert query.exception() is None
        rows = wait_for(
            "its progress is told", lambda: [p.numInputRows for p in query.recentProgress if p.numInputRows]
        )
        assert rows[0] >= 300
    with stopped(desk.start(topic, "worth", minRecordsPerTrigger=300, maxTriggerDelay="500ms")) as query:
        desk.broker.produce(topic, numbered(350, 400))
        desk.await_numbers(query, "worth", range(400))


def test_publishes_of_a_datasource_come_once_and_in_order(
    house: House, session: Session, make_workers: Callable[..., Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Headgate stored, as a stream from publish to publish, and as a batch of one moment.

    An indexer writes them: a stored publish of a test's own would be no proof that Spark reads those.
    """
    desk = Desk(house, *session)
    topic = house.topic()
    house.produce(topic, numbered(0, 400))
    workers = make_workers(house.spec(topic))
    workers.start(0)
    published(house, topic, 400)
    token = house.token
    where = {"url": house.url, "token": token, "datasource": topic}

    def take() -> list[int]:
        stream = desk.spark.readStream.format("headgate").options(**where, maxPublishesPerTrigger=1).load()
        writer = stream.select("__time", "n", "category").writeStream.format("parquet")
        writer = writer.option("path", str(desk.folder / topic / "rows")).trigger(availableNow=True)
        writer.option("checkpointLocation", desk.checkpoint(topic)).start().awaitTermination()
        return sorted(row["n"] for row in desk.rows(topic))

    wait_for("all that was published has a number", lambda: take() == list(range(400)), 60, take)
    house.produce(topic, numbered(400, 500))
    published(house, topic, 500)
    workers.finish(0)
    wait_for("what came later, too", lambda: take() == list(range(500)), 60, take)
    last = house.api("GET", f"/api/v1/datasources/{topic}/publishes/?after=0&limit=500")
    newest = sum(f["rows"] for f in last["results"][-1]["files"])
    late = desk.spark.readStream.format("headgate").options(**where, startingPublish=last["latest"], columns="n").load()
    seen: list[int] = []
    query = late.writeStream.foreachBatch(lambda rows, _: seen.append(rows.count())).trigger(availableNow=True)
    query.option("checkpointLocation", desk.checkpoint(f"late-{topic}")).start().awaitTermination()
    assert sum(seen) == newest

    monkeypatch.setenv("HEADGATE_URL", house.url)
    monkeypatch.setenv("HEADGATE_TOKEN", token)
    rows = headgate.read(desk.spark, topic)
    assert sorted(r.n for r in rows.select("n").collect()) == list(range(500))
    first_minute = headgate.read(desk.spark, topic, "2025-06-01/2025-06-01T00:01:00")
    assert sorted(r.n for r in first_minute.collect()) == list(range(60))
    batch = desk.spark.read.format("headgate").options(**where).load()
    assert batch.selectExpr("sum(value) s").collect()[0].s == 3 * sum(range(500))
    plans = [frame._jdf.queryExecution().toString() for frame in (batch, late, rows)]
    assert not any(token in plan for plan in plans)
    with pytest.raises(Exception, match="answers 401"):
        desk.spark.read.format("headgate").options(**{**where, "token": "wrong"}).load()


def test_files_in_s3_without_s3a_are_refused_with_what_to_do(desk: Desk) -> None:
    columns = struct_of([{"name": "n", "type": "long"}])
    with pytest.raises(headgate.HeadgateError, match="this Spark has no s3a: start it with --packages"):
        open_files(desk.spark, columns, ["s3://bucket/datasource/n.parquet"])


def test_topics_with_keys_and_headers_until_all_is_there(desk: Desk) -> None:
    one, two = desk.broker.topic(partitions=1), desk.broker.topic(partitions=2)
    for n in range(60):
        desk.broker.producer.produce(one, f"{n}", key=b"k", headers=[("h", b"v"), ("h", None)])
    desk.broker.producer.flush(30)
    desk.broker.produce(two, numbered(0, 40))
    query = desk.start(f"{one},{two}", "topics", available_now=True, includeHeaders="true")
    assert query.awaitTermination(120) and query.exception() is None
    found = [(r["topic"], r["key"], r["headers"]) for r in desk.rows("topics")]
    headers = [{"key": "h", "value": b"v"}, {"key": "h", "value": None}]
    assert sorted(found, key=lambda row: row[0] != one) == [(one, b"k", headers)] * 60 + [(two, None, None)] * 40


def test_a_group_of_another_kind_is_named(desk: Desk) -> None:
    """Kafka says of a consumer group that there is no share group of the name."""
    topic = desk.broker.topic(partitions=1)
    consumer = Consumer({"bootstrap.servers": desk.broker.bootstrap, "group.id": f"group-{topic}"})
    try:
        consumer.subscribe([topic])
        wait_for("it is a member", lambda: consumer.poll(0.5) or consumer.assignment(), 60)
        with stopped(desk.start(topic, "kind")) as query:
            wait_for("the query has ended", query.exception, 60)
            assert "shareGroupId names a group of another kind" in str(query.exception())
    finally:
        consumer.close()


def test_a_group_that_the_login_may_not_read_ends_the_query(guarded: Guarded, session: Session, tmp_path: Path) -> None:
    topic = guarded.topic(partitions=1)
    guarded.give("TOPIC", topic, "READ")
    login = {name.replace("mechanisms", "mechanism"): value for name, value in guarded.client.items()}
    options = {
        **{f"kafka.{name}": value for name, value in login.items()},
        "subscribe": topic,
        "shareGroupId": "readers",
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }
    spark, _ = session
    rows = spark.readStream.format("kafka-sharegroup").options(**options).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", options["checkpointLocation"])
    with stopped(writer.start()) as query:
        wait_for("the query has ended", query.exception, 60, lambda: query.lastProgress)
        assert "this login may not read the share group" in str(query.exception())


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("startingOffsets", "earliest", "one position for all its members"),
        ("subscribe", "no-such-topic-here", "can't be read"),
        ("bufferLocation", "/dev/null/buffer", "records are to wait in can't be used: .*Not a directory"),
        ("kafka.bootstrap.servers", "127.0.0.1:1", "can't be asked .*Connection refused"),
    ],
)
def test_refused_with_the_reason(desk: Desk, option: str, value: str, why: str) -> None:
    """One that makes no sense, for all of ``test_share_group_ledger``; those that only a broker or a disk refuses."""
    options: Any = {option: value}
    with pytest.raises(Exception, match=why):
        desk.start("refused", f"refused-{option}", **options).awaitTermination()
