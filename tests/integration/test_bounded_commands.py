"""``headgate read`` and ``headgate backfill`` on a real site and a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest
import yaml
from django.utils import timezone

from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from headgate.cli import context, waiting
from headgate.cli.bounded import bounded_spec
from headgate.cli.errors import CommandFailed
from tests.integration.test_backfills import stored, supervisor, the_backfill, topic
from tests.integration.test_command_line import Run, run
from tests.support.broker import Broker
from tests.support.django_cast import Cast
from tests.support.site_through import Through

__all__ = ["run", "supervisor", "topic"]
pytestmark = pytest.mark.usefixtures("checked_here")


def table(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_a_skip_is_shown_and_begun(run: Run, supervisor: Supervisor) -> None:
    code, out, err = run("backfill", supervisor.pk, "--skip")
    assert (code, stored(supervisor)) == (1, {0: 10, 1: 0}) and "--yes" in err
    assert table(out)[:2] == [["PARTITION", "START", "END", "UNSETTLED"], ["0", "10", "40", "30"]]
    code, out, err = run("backfill", supervisor.pk, "--skip", "--dry-run", "-o", "json")
    assert (code, err, json.loads(out)["backfill"], stored(supervisor)) == (0, "", None, {0: 10, 1: 0})
    assert run("backfill", supervisor.pk, "--skip", "--yes", role="operator")[0] == 1
    code, out, err = run("backfill", supervisor.pk, "--skip", "--task-count", "2", "--yes")
    assert (code, err) == (0, "") and out.endswith(f"{supervisor.pk}:fill:1 reads 30 offsets.\n")
    assert (stored(supervisor), the_backfill(supervisor).io_config.taskCount) == ({0: 40, 1: 0}, 2)
    code, _, err = run("backfill", supervisor.pk, "--skip", "--yes")
    assert code == 1 and "nothing to skip" in err
    assert table(run("backfills", supervisor.pk)[1])[1][:4] == [f"{supervisor.pk}:fill:1", "PENDING", "2", "30"]
    assert yaml.safe_load(run("backfills", supervisor.pk, "-o", "yaml")[1])[0]["left"] == 30


def test_offsets_and_positions_are_filled(run: Run, supervisor: Supervisor) -> None:
    for bounds in (["--range", "0=12:20"], ["--range=0=20:25", "--range=1=0:0"], ["--from=earliest", "--to=latest"]):
        code, out, err = run("backfill", supervisor.pk, *bounds, "--yes", "-o", "json")
        assert (code, err) != (0, "") or json.loads(out)["backfill"]
        assert code == 0, err
    bounded = [the_backfill(supervisor, n).io_config.boundedStreamConfig for n in (1, 2, 3)]
    assert [b and b.ranges for b in bounded] == [{0: (12, 20)}, {0: (20, 25)}, {0: (0, 40)}]
    code, _, err = run("backfill", supervisor.pk, "--range", "0=0:10", "--yes")
    assert code == 1 and "settled already" in err


def test_files_of_a_site_neither_have_nor_prune_backfills(run: Run, supervisor: Supervisor, tmp_path: Path) -> None:
    run("backfill", supervisor.pk, "--skip", "--yes")
    folder = tmp_path / "exported"
    assert run("--team", "alpha", "export", "--to", str(folder))[0] == 0
    assert not [path for path in folder.iterdir() if "fill" in path.name]
    code, out, err = run("--team", "alpha", "apply", "-f", str(folder), "--prune", "--dry-run")
    assert (code, err) == (0, "") and "0 to delete" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "Give --from and --to, or --range."),
        (["--skip", "--to", "latest"], "Give --skip"),
        (["--from", "earliest"], "Give --from and --to"),
        (["--range", "0=1:2", "--to", "latest"], "Give --from and --to"),
        (["--range", "0=1-2"], "0=1500:2000"),
        (["--range", "0=²:3"], "0=1500:2000"),
        (["--range", "0=1:2", "--range", "0=3:4"], "twice"),
        (["--range", "0=3:2"], "lies behind the end"),
        (["--range", f"0=1:{2**60}"], "17592186044415"),
        (["--from", "yesterday", "--to", "latest"], "start_position"),
        (["--from", "earliest", "--to", "P30M"], "PT30M"),
        (["--skip", "--task-count", "0"], "task-count"),
    ],
)
def test_odd_options_change_nothing(run: Run, supervisor: Supervisor, options: list[str], said: str) -> None:
    code, _, err = run("backfill", supervisor.pk, *options, "--yes")
    assert code == 1 and said in err, err
    assert (stored(supervisor), supervisor.backfills.exists()) == ({0: 10, 1: 0}, False)


def test_a_part_of_a_topic_is_read_into_another_datasource(
    run: Run, cast: Cast, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """By a supervisor's own file, with what only supervisors have in it."""
    file = tmp_path / "orders.yaml"
    of_supervisor = {"id": topic, "suspended": False, **broker.kafka_spec(topic, topic, replicas=2)}
    file.write_text(yaml.safe_dump(of_supervisor))
    bounds = ["--from", "earliest", "--to", "latest"]
    code, out, err = run("read", "-f", str(file), *bounds, "--into", f"{topic}-again", "--no-wait")
    assert (code, err) == (0, "")
    task = Task.objects.get(datasource__name=f"{topic}-again")
    assert [(r["partition"], r["start"], r["end"]) for r in task.ranges] == [(0, 0, 40)]
    assert table(out)[1:3] == [["0", "0", "40"], ["1", "0", "0"]] and task.pk in out
    code, out, _ = run("read", "-f", str(file), "--range", "0=5:9", "--task-count=3", "--no-wait", "-o", "json")
    assert json.loads(out)["progress"]["total"] == 4


class Ending(Through):
    """A task has ended when it is asked for the second time."""

    status, error, asked = "SUCCESS", "", 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            Ending.asked += 1
            if Ending.asked == 2:
                Task.objects.active().update(status=self.status, error=self.error, ended_at=timezone.now())
        return super().handle_request(request)


@pytest.mark.parametrize(("status", "error", "code"), [("SUCCESS", "", 0), ("FAILED", "Its topic is gone.", 1)])
def test_a_read_is_followed_to_its_end(
    run: Run,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: str,
    error: str,
    code: int,
) -> None:
    monkeypatch.setattr(context, "transport", Ending)
    monkeypatch.setattr(waiting, "POLL_S", 0.0)
    for name, value in (("status", status), ("error", error), ("asked", 0)):
        monkeypatch.setattr(Ending, name, value)
    file = tmp_path / "orders.json"
    file.write_text(json.dumps(broker.kafka_spec(topic, topic)))
    ended, out, err = run("read", "-f", str(file), "--range", "0=5:25")
    assert (ended, error in err) == (code, True), err
    assert out.splitlines()[-2:] == ["PENDING: 0% of 20 offsets", f"{status}: 0% of 20 offsets"]
    nothing = run("read", "-f", str(file), "--range", "0=5:5")
    assert (nothing[0], nothing[1].splitlines()[-1]) == (0, "SUCCESS: 100% of 0 offsets")


def test_a_read_that_would_store_twice_is_refused() -> None:
    """A supervisor's stored offsets go by its id, a task's by the datasource."""
    schema = {"dataSource": "orders"}
    spec = {"id": "orders-eu", "type": "kafka", "spec": {"dataSchema": schema, "ioConfig": {"topic": "t"}}}
    with pytest.raises(CommandFailed, match="headgate backfill orders-eu"):
        bounded_spec(spec, "earliest", "latest", "", None)
    for same in ({**spec, "id": "orders"}, {**spec, "type": "kafka_share_group"}):
        read = bounded_spec(same, "earliest", {0: 7}, "", None)
        bounds = {"startPosition": "earliest", "endSequenceNumbers": {"0": 7}}
        assert read["type"] == f"index_{same['type']}"
        assert read["spec"]["ioConfig"] == {"topic": "t", "boundedStreamConfig": bounds}
    assert bounded_spec(spec, {0: 1}, "latest", "again", 2)["spec"]["dataSchema"] == {"dataSource": "again"}
    with pytest.raises(CommandFailed, match="no spec with an ioConfig"):
        bounded_spec({"spec": None, "ioConfig": []}, "earliest", "latest", "", None)
