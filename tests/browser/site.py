"""A site with each thing in each state that has forms of its own, and a browser that is logged in to it."""

from __future__ import annotations

import copy
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from controlplane.compaction.models import Job
from controlplane.connections.models import Connection
from controlplane.datasources.models import Datasource
from controlplane.lag.models import LagSample
from controlplane.loading import samples
from controlplane.loading.documents import to_nested
from controlplane.loading.models import Draft
from controlplane.login.email_address import secret_for
from controlplane.login.models import Session
from controlplane.login.reauthentication import CONFIRMED_AT_KEY
from controlplane.publishing.models import ProgressKey
from controlplane.quarantine.models import FaultyRecord, QuarantinedRecord
from controlplane.retention.models import RuleSet
from controlplane.segments.marking import SegmentSelection, mark_unused
from controlplane.segments.models import Segment, SegmentSchema
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.tasks.models import Status, Task
from controlplane.teams.invitation_links import LINK_LIFE, digest_of
from controlplane.teams.models import ApiToken, Invitation, LinkInvitation, PasswordLink, Team, User
from controlplane.teams.roles import Role, Scope
from ingestion.specs.messages.sampling import Arrived, KeptRecord, SampleAnswer
from ingestion.specs.source_traits import STORED_OFFSETS
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.support.alerting import alerting
from tests.support.django_cast import DAY, PAYLOAD, STARTED, Cast, make_cast, spec_for, sum_intervals
from tests.support.second_factors import enrolled

STORED, ENDED = "stored", "index_kafka_share_group_flights_2025-05-31T12-00-00_ended"
YEAR = 365  # days
OWNERS_ADDRESS, OWNERS_SECRET = "owner@example.org", "the-owners-secret"
CLUSTER = "orders-kafka"  # a connection of team alpha
DRAFTED_MS = 1_769_860_800_000
# With a time of its own and a nested value; broken; without a value.
DRAFTED = [
    *(b'{"__time": "2026-01-31T12:00:0%dZ", "amount": %d, "from": {"city": "Bonn"}}' % (n, n) for n in range(5)),
    b"{half",
    None,
]
MORE_QUARANTINED = 30  # more than a page of them


@dataclass(frozen=True)
class Site:
    """The cast's supervisor reads with a share group and runs; ``STORED`` keeps offsets and is suspended.

    ``ENDED`` is a task that failed. ``flights`` has two spec versions, a lag over time, and more in quarantine.
    """

    cast: Cast
    url: str

    def supervisor(self, name: str = "flights") -> Supervisor:
        return Supervisor.objects.get(pk=name)

    @property
    def task(self) -> Task:
        return Task.objects.get(pk=self.cast.task.pk)

    def draft(self, supervisor: str | None = None) -> Draft:
        """The owner's, of a new spec or a change, with records that need no Kafka."""
        changed = None if supervisor is None else self.supervisor(supervisor)
        wanted: dict[str, Any] = {"owner": self.cast.users["owner"], "team": self.cast.alpha, "supervisor": changed}
        document = to_nested(kafka_spec("drafted") if changed is None else changed.current.spec)
        version = None if changed is None else changed.version
        draft, _ = Draft.objects.update_or_create(**wanted, defaults={"document": document, "base_version": version})
        records = [
            KeptRecord.model_construct(partition=0, offset=n, timestamp_ms=DRAFTED_MS + n * 1000, payload=payload)
            for n, payload in enumerate(DRAFTED)
        ]
        samples.store_sample(draft, SampleAnswer.model_construct(kept=records, arrived=Arrived(records=3, window_s=60)))
        return draft

    def quarantined(self, **wanted: Any) -> list[QuarantinedRecord]:
        return list(QuarantinedRecord.objects.filter(**wanted).order_by("-id"))


def make_site(url: str) -> Site:
    """All rows, in the caller's transaction."""
    cast = make_cast()
    _second_version(cast)
    _long_column(cast)
    _stored_offsets(cast)
    _ended(cast)
    _more_quarantined(cast)
    _lag(cast.source)
    _write_log(cast.task)
    make_year(cast.alpha)
    invite(cast)
    _invite_to_alpha(cast)
    _tokens(cast)
    _people(cast)
    _cluster(cast)
    _merges(cast)
    Team.objects.create(name="vacant")  # owns nothing
    alerting(cast)
    Client().force_login(cast.users["owner"])  # a session elsewhere
    return Site(cast, url)


def _merges(cast: Cast) -> None:
    """One that was done, and one that failed."""
    start = datetime(2013, 1, 1, tzinfo=UTC)
    for n, (state, error) in enumerate((("done", ""), ("failed", "no memory"))):
        Job.objects.create(
            id=f"merge-{n}", datasource=cast.datasource, interval_start=start, interval_end=start + timedelta(days=1),
            tier=n, state=state, inputs=[], data_schema={}, rollup=False, max_rows_per_segment=5_000_000,
            rows_before=900, bytes_before=9_000, error=error, created_at=timezone.now(),
        )  # fmt: skip


def _cluster(cast: Cast) -> None:
    """A connection to a Kafka where nobody listens."""
    away = {"bootstrap.servers": "127.0.0.1:1"}
    Connection.objects.create(team=cast.alpha, name=CLUSTER, kind=Connection.Kinds.KAFKA, properties=away)


def invite(cast: Cast) -> None:
    """Team beta invites the owner, who is in alpha."""
    offer = {"role": Role.OPERATOR, "invited_by": cast.users["outsider"], "created_at": timezone.now()}
    Invitation.objects.update_or_create(team=cast.beta, username="owner", defaults=offer)


def invite_by_link(team: Team, email: str, secret: str) -> None:
    """An open link of this secret, as viewer."""
    now = timezone.now()
    times = {"created_at": now, "expires_at": now + LINK_LIFE}
    admin = team.memberships.filter(role=Role.ADMIN).get().user
    offer = {"role": Role.VIEWER, "invited_by": admin, "digest": digest_of(secret), **times}
    LinkInvitation.objects.update_or_create(team=team, email=email, defaults=offer)


def _people(cast: Cast) -> None:
    """Somebody who is deactivated, and a link with which the viewer chooses a password."""
    enrolled(User.objects.create_user("guest", is_active=False))
    password_link(cast.users["viewer"], cast.users["superuser"], OWNERS_SECRET)


def address_link(user: User, email: str) -> str:
    """What a mail to this address leads to: it becomes the user's."""
    return f"/account/email/{secret_for(User.objects.get(pk=user.pk), email)}/"


def password_link(user: User, made_by: User, secret: str) -> None:
    """An open one of this secret."""
    values = {"digest": digest_of(secret), "made_by": made_by, "expires_at": timezone.now() + LINK_LIFE}
    PasswordLink.objects.update_or_create(user=user, defaults=values)


def _tokens(cast: Cast) -> None:
    """A member's and the service account's."""
    ApiToken.objects.create(user=cast.users["viewer"], name="laptop")
    ApiToken.objects.create(user=cast.users["service"], name="nightly", scope=Scope.OPERATE, datasources=["flights"])


def _invite_to_alpha(cast: Cast) -> None:
    """Somebody by name and somebody by a link; team beta sends the owner a link."""
    User.objects.filter(pk=cast.users["owner"].pk).update(email=OWNERS_ADDRESS)
    offer = {"role": Role.VIEWER, "invited_by": cast.users["owner"], "created_at": timezone.now()}
    Invitation.objects.create(team=cast.alpha, username="guest", **offer)
    invite_by_link(cast.alpha, "guest@example.org", "the-guests-secret")
    invite_by_link(cast.beta, OWNERS_ADDRESS, OWNERS_SECRET)


def _second_version(cast: Cast) -> None:
    spec = parse_supervisor_spec(spec_for("flights", taskCount=2)).canonical()
    SpecVersion.objects.create(supervisor=cast.supervisor, version=2, spec=spec, created_by=cast.users["owner"])
    Supervisor.objects.filter(pk="flights").update(version=2, partitions=2)
    Task.objects.filter(pk=cast.task.pk).update(spec_version=2)


def _long_column(cast: Cast) -> None:
    """One whose name is wider than a narrow screen, and has nowhere to break."""
    for schema in SegmentSchema.objects.filter(datasource=cast.datasource):
        schema.columns = [*schema.columns, {"name": "a_column_of_sixty_characters".ljust(60, "_"), "type": "string"}]
        schema.save(update_fields=["columns"])


def _stored_offsets(cast: Cast) -> None:
    datasource = Datasource.objects.create(name=STORED, team=cast.alpha)
    supervisor = Supervisor.objects.create(id=STORED, datasource=datasource, suspended=True, detailed_state="SUSPENDED")
    document = kafka_spec(STORED)
    spec = parse_supervisor_spec(document).canonical()
    SpecVersion.objects.create(supervisor=supervisor, version=1, spec=spec, created_by=cast.users["owner"])
    read = {"cluster_id": "cluster-1", "topic": f"{STORED}-topic", "topic_id": "topic-id-2"}
    source = Source.objects.create(datasource=datasource, kind=STORED_OFFSETS.kind, group=STORED, **read)
    kept = [{"type": "loadByPeriod", "period": "P10Y"}, {"type": "loadForever"}]
    RuleSet.objects.create(datasource=datasource, rules=kept, updated_at=timezone.now())
    removed_segment(cast)
    offsets = {"begin_offset": 0, "next_offset": 5, "end_offset": 9, "log_start_offset": 0}
    ProgressKey.objects.create(source=source, partition=0, **offsets)


def removed_segment(cast: Cast) -> Segment:
    """The only one of ``STORED``, of 10 rows: it was taken out of use, and has its file; made anew."""
    datasource = Datasource.objects.get(name=STORED)
    Segment.objects.filter(datasource=datasource).delete()
    made = segment(datasource, DAY, timedelta(days=1), 0, 10)
    made.save(force_insert=True)
    sum_intervals(datasource)
    file = Path(settings.DEEP_STORAGE) / made.path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * made.size_bytes)
    mark_unused(datasource, SegmentSelection(), by="owner", what="2013-01-01 to 2013-01-02")
    return made


def kafka_spec(name: str) -> dict[str, Any]:
    """A supervisor's spec with stored offsets."""
    spec = {**spec_for(name), "type": "kafka", "tuningConfig": {"type": "kafka"}}
    spec["ioConfig"] = {k: spec["ioConfig"][k] for k in ("topic", "consumerProperties", "inputFormat")}
    return spec


def _ended(cast: Cast) -> None:
    task = copy.copy(cast.task)
    task.pk, task.status, task.error = ENDED, Status.FAILED, "The broker said no.\n" * 3
    task.created_at, task.ended_at = STARTED - timedelta(days=1), STARTED
    task.save(force_insert=True)


def _more_quarantined(cast: Cast) -> None:
    common: dict[str, Any] = {
        "source": cast.source,
        "datasource": cast.datasource,
        "task_id": cast.task.pk,
        "partition": 0,
        "delivery_count": 1,
        "error": "Malformed JSON at byte 12",
        "created_at": STARTED,
    }
    QuarantinedRecord.objects.bulk_create(
        QuarantinedRecord(
            **common,
            cause=cast.quarantined.cause,
            offset=n,
            reason="unparseable",
            payload=PAYLOAD * 40,
            publish_id=uuid.uuid4(),
        )
        for n in range(500, 500 + MORE_QUARANTINED)
    )
    FaultyRecord.objects.create(**common, offset=600, payload=PAYLOAD, payload_size=len(PAYLOAD))


def _lag(source: Source) -> None:
    now = timezone.now().replace(microsecond=0)
    common: dict[str, Any] = {"source": source, "resolution_s": 5, "in_flight": 1, "redelivered": 0}
    for n in range(20):
        at = now - timedelta(seconds=5 * n)
        LagSample.objects.create(**common, at=at, observed_at=at, lag=n, partitions=[n, 0], processed=1000 - n)


def _write_log(task: Task) -> None:
    log = Path(settings.TASK_DIR) / task.pk / "spark.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("a line of the log\n" * 400)


def make_year(team: Team) -> None:
    """A datasource ``year`` of 365 days: day n has n segments of 10 rows, 5 at most."""
    year = Datasource.objects.create(name="year", team=team)
    schema = SegmentSchema.of(year, [])
    Segment.objects.bulk_create(
        segment(year, DAY + timedelta(days=day), timedelta(days=1), number, 10, schema)
        for day in range(YEAR)
        for number in range(min(5, day + 1))
    )
    sum_intervals(year)


def segment(
    datasource: Datasource,
    start: datetime,
    length: timedelta,
    number: int,
    rows: int,
    schema: SegmentSchema | None = None,
) -> Segment:
    """Not yet stored. ``schema``: without columns, for many, since each that is looked up is a query."""
    return Segment(
        datasource=datasource,
        interval_start=start,
        interval_end=start + length,
        version="v1",
        partition_num=number,
        rows=rows,
        size_bytes=rows * 100,
        sha256="0" * 64,
        path=f"{datasource.name}/{uuid.uuid4()}",
        min_time=start,
        max_time=start,
        schema=schema or SegmentSchema.of(datasource, []),
        task_id="t",
        created_at=STARTED,
    )


@dataclass(frozen=True)
class Visit:
    """A browser that looks at a site."""

    page: Page
    site: Site

    def become(self, role: str) -> None:
        """One of the cast, whose session is as it was at the login; nobody for an empty role."""
        user = self.site.cast.users.get(role)
        if user is None or not _has_just_logged_in(self.page, user):
            log_in_as(self.page, self.site.url, user)

    def open(self, address: str) -> None:
        self.page.goto(self.site.url + address)

    def button(self, name: str, within: Locator | None = None) -> Locator:
        return (within or self.page.locator("main")).get_by_role("button", name=name, exact=True)

    def press(self, name: str) -> None:
        self.button(name).click()

    def answer(self, opener: str, label: str) -> None:
        """Press a button that asks first, and say yes."""
        self.press(f"{opener}…")
        question = self.page.get_by_role("dialog")
        expect(question).to_be_visible()
        self.button(label, question).click()

    def told(self, text: str) -> None:
        """A message above the page says so."""
        expect(self.page.locator(".messages")).to_contain_text(text)


def leave(page: Page, url: str) -> None:
    """Nobody is logged in any more, and no page is open that would ask for its stream as nobody.

    What answers instead has the site's policy for openers. A blank page has none: there and back the browser would
    start a process each, and compile all scripts again.
    """
    page.goto(f"{url}/healthz")
    page.context.clear_cookies()


def _has_just_logged_in(page: Page, user: User) -> bool:
    """Whether the browser keeps nothing but the session of this user, and that nothing but the login."""
    kept = {cookie.get("name"): cookie.get("value") for cookie in page.context.cookies()}
    session = Session.objects.filter(pk=kept.get("sessionid", "")).first()
    if session is None or not kept.keys() <= {"sessionid", "csrftoken"}:
        return False
    values = session.get_decoded()
    own = {SESSION_KEY: str(user.pk), HASH_SESSION_KEY: User.objects.get(pk=user.pk).get_session_auth_hash()}
    return own.items() <= values.items() and values.keys() - own <= {BACKEND_SESSION_KEY, CONFIRMED_AT_KEY}


def log_in_as(page: Page, url: str, user: User | None) -> None:
    """By a session of the user, without the login page; as nobody without a user."""
    leave(page, url)
    if user is not None:
        client = Client()
        client.force_login(user)
        session = client.session
        session[CONFIRMED_AT_KEY] = time.time()  # the account's pages do not ask for the password
        session.save()
        page.context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}])
