"""The rules and dashboards of docs/operations by the real promtool, and a real Prometheus that scrapes the stack."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from controlplane.embedded.processes import Child
from tests.support.dashboards import DASHBOARDS, expressions
from tests.support.go_programs import LONGEST_BUILD_S, prometheus_programs
from tests.support.house import METRICS_TOKEN, House
from tests.support.waiting import wait_for

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations"
pytestmark = pytest.mark.timeout(LONGEST_BUILD_S + 300)


@pytest.fixture(scope="module")
def programs() -> Path:
    return prometheus_programs()


def promtool(programs: Path, *arguments: str, folder: Path = OPERATIONS) -> str:
    done = subprocess.run([programs / "promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_rules_pass_their_tests(programs: Path) -> None:
    """Each rule fires in one case and is quiet in another."""
    assert "SUCCESS" in promtool(programs, "check", "rules", "--lint=all", "--lint-fatal", "rules.yml")
    assert "SUCCESS" in promtool(programs, "test", "rules", "rules.test.yml")


def test_the_configuration_of_compose_is_valid(programs: Path) -> None:
    assert "SUCCESS" in promtool(programs, "check", "config", "--syntax-only", "prometheus.yml")


class Prometheus:
    """A Prometheus that scrapes web every second, by the configuration of Compose with other addresses."""

    def __init__(self, programs: Path, house: House, folder: Path) -> None:
        token = folder / "token"
        token.write_text(METRICS_TOKEN)
        config = yaml.safe_load((OPERATIONS / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(OPERATIONS / "rules.yml")]
        config["scrape_configs"] = [job for job in config["scrape_configs"] if job["job_name"] != "headgate-jobs"]
        for job in config["scrape_configs"]:
            job["authorization"] = {"credentials_file": str(token)}
            job.pop("dns_sd_configs", None)
            job["static_configs"] = [{"targets": [house.web.url.removeprefix("http://")]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        port = house.home.ports.assign("prometheus")
        command = [str(programs / "prometheus"), f"--config.file={folder / 'prometheus.yml'}"]
        command += [f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
        self.log = folder / "prometheus.log"
        self.child = Child(command, self.log, folder=folder)
        self._http = httpx2.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=30.0, trust_env=False)

    def ask(self, address: str, **values: str) -> Any:
        """Empty until it listens and has read its store."""
        try:
            answer = self._http.get(address, params=values)
        except httpx2.TransportError:
            return {}
        if answer.status_code == 503:
            return {}
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def query(self, expression: str) -> list[Any]:
        found: list[Any] = self.ask("query", query=expression).get("result", [])
        return found


@pytest.fixture(scope="module")
def prometheus(programs: Path, house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    started = Prometheus(programs, house, tmp_path_factory.mktemp("prometheus"))
    yield started
    started.child.stop()


def test_it_scrapes_the_stack_and_an_alert_goes_off(house: House, prometheus: Prometheus) -> None:
    """A supervisor of a topic that does not exist: the state arrives as a metric, and the rule of its health waits."""
    name = "without-topic"
    house.api("POST", "/druid/indexer/v1/supervisor", house.kafka_spec("no-such-topic", name, period="PT2S"))
    wait_for("both jobs are up", lambda: len(prometheus.query('up{job=~"headgate.*"} == 1')) == 2, 60)
    wait_for("its state is scraped", lambda: prometheus.query(f'headgate_supervisor_state{{supervisor="{name}"}}'), 60)
    wait_for(
        "the alert is pending",
        lambda: [
            alert
            for alert in prometheus.ask("alerts").get("alerts", [])
            if alert["labels"]["alertname"] == "HeadgateSupervisorUnhealthy" and alert["labels"]["supervisor"] == name
        ],
        90,
        lambda: prometheus.query(f'headgate_supervisor_health{{supervisor="{name}"}}'),
    )
    groups = prometheus.ask("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_prometheus_answers_every_panel(prometheus: Prometheus, path: Path) -> None:
    wait_for("a scrape", lambda: prometheus.query("headgate_store_read_timestamp_seconds"), 60)
    for expression in expressions(path):
        prometheus.query(expression)
