"""The Docker files: right by the Compose schema, by each other, and by the settings they set. No engine is needed."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.embedded.kafka_jars import VERSION as KAFKA
from controlplane.spark import spark_conf
from tests.support.django_cast import spec_for
from tests.support.dockerfile import dockerfile

PROJECT = Path(__file__).resolve().parents[2]
COMPOSE = PROJECT / "docker-compose.yml"
OURS = {"spark-master", "spark-worker", "migrate", "web", "worker", "beat"}
PYTHON = "python:3.11.15-slim-bookworm"
PINNED = {"postgres": "postgres:18.6", "valkey": "valkey/valkey:9.1.2"}  # by digest
BY_TAG = {
    "kafka": f"apache/kafka:{KAFKA}",
    "prometheus": "prom/prometheus:v3.16.0",
    "grafana": "grafana/grafana:13.2.3",
}
SCALED = ("web", "worker", "beat")
OTHERS = {*PINNED, *BY_TAG}
REQUIRED = {
    "POSTGRES_PASSWORD",
    "VALKEY_PASSWORD",
    "HEADGATE_SECRET_KEY",
    "HEADGATE_LOGIN_PASSWORD",
    "HEADGATE_SPARK_SECRET",
}
# Where the control plane's settings are read.
SETTINGS = tuple(f"controlplane/config/{name}.py" for name in ("settings", "env", "mail_settings", "oidc_settings"))
LOGIN = "controlplane/teams/management/commands/ensure_login.py"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return loaded


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found


def variables(text: str) -> dict[str, str]:
    """What Compose interpolates: name → what follows it (``:-default``, ``:?message`` or nothing)."""
    return dict(re.findall(r"(?<!\$)\$\{(\w+)([^}]*)\}", text))


def mounts(service: dict[str, Any]) -> dict[str, str]:
    """Named volumes only: name → path."""
    parts = [mount.split(":") for mount in service.get("volumes", []) if not mount.startswith(("/", "./"))]
    return {part[0]: part[1] for part in parts}


# The Compose file


def test_the_file_follows_the_compose_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_services_and_their_images(services: dict[str, Any]) -> None:
    assert set(services) == OURS | OTHERS
    for name, image in BY_TAG.items():
        assert services[name]["image"] == f"${{{name.upper()}_IMAGE:-{image}}}"
    for name, image in PINNED.items():
        assert by_digest(services[name]["image"], f"{name.upper()}_IMAGE") == image
    assert {services[name]["image"] for name in OURS} == {"headgate:${IMAGE_TAG:-latest}"}
    [given] = {services[name]["build"]["args"]["PYTHON_IMAGE"] for name in OURS}
    assert by_digest(given, "PYTHON_IMAGE") == PYTHON
    assert all(services[name]["build"] == {"context": ".", "args": {"PYTHON_IMAGE": given}} for name in OURS)
    assert dockerfile()[0] == ["ARG", f"PYTHON_IMAGE={variables(given)['PYTHON_IMAGE'].removeprefix(':-')}"]


def by_digest(interpolated: str, variable: str) -> str:
    """The tag of an image that is given by tag and digest unless ``variable`` names another."""
    assert list(variables(interpolated)) == [variable]
    found = re.fullmatch(r":-(.+)@sha256:[0-9a-f]{64}", variables(interpolated)[variable])
    assert found, interpolated
    return found[1]


def test_only_loopback_ports_are_opened(services: dict[str, Any]) -> None:
    opened = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert opened == {
        "kafka": ["127.0.0.1:${KAFKA_PORT:-9092}:9092"],
        "web": ["127.0.0.1:${WEB_PORT:-8000}:8000"],
        "prometheus": ["127.0.0.1:${PROMETHEUS_PORT:-9090}:9090"],
        "grafana": ["127.0.0.1:${GRAFANA_PORT:-3000}:3000"],
    }


def test_every_dependency_exists_and_is_waited_for_rightly(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in services, f"{name} depends on {other}"
            if other == "migrate":
                assert how["condition"] == "service_completed_successfully"
            else:
                assert how["condition"] == "service_healthy"
                assert "healthcheck" in services[other], f"{name} waits for the health of {other}"


def test_nothing_of_ours_starts_before_what_it_needs(services: dict[str, Any]) -> None:
    for name in ("web", "worker", "beat"):
        assert {"migrate", "postgres", "valkey"} <= set(services[name]["depends_on"])
    assert {"kafka", "spark-master", "web"} <= set(services["worker"]["depends_on"])
    assert set(services["migrate"]["depends_on"]) == {"postgres"}
    assert set(services["spark-worker"]["depends_on"]) == {"spark-master"}


def test_what_stays_running_is_watched_and_restarted(services: dict[str, Any]) -> None:
    for name, service in services.items():
        if name == "migrate":
            assert service["restart"].startswith("on-failure")
            continue
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name


def test_every_volume_is_declared_and_used(compose: dict[str, Any], services: dict[str, Any]) -> None:
    used = {volume for service in services.values() for volume in mounts(service)}
    assert used == set(compose["volumes"])


def test_files_that_are_mounted_exist(services: dict[str, Any]) -> None:
    mounted = [mount for service in services.values() for mount in service.get("volumes", []) if mount.startswith("./")]
    assert len(mounted) == 4
    for mount in mounted:
        path, _, how = mount.split(":")
        assert (PROJECT / path).exists() and how == "ro", mount


def test_data_is_where_the_images_keep_it(services: dict[str, Any]) -> None:
    assert mounts(services["postgres"]) == {"postgres-data": "/var/lib/postgresql"}
    assert mounts(services["valkey"]) == {"valkey-data": "/data"}
    assert services["kafka"]["environment"]["KAFKA_LOG_DIRS"] == mounts(services["kafka"])["kafka-data"]


def test_segments_are_at_the_same_path_everywhere(services: dict[str, Any]) -> None:
    path = services["worker"]["environment"]["HEADGATE_DEEP_STORAGE"]
    assert {mounts(services[name])["segments"] for name in ("web", "worker", "spark-worker")} == {path}
    assert "segments:" + path + ":ro" in services["web"]["volumes"]


def test_web_reads_the_logs_that_the_worker_writes(services: dict[str, Any]) -> None:
    path = services["web"]["environment"]["HEADGATE_TASK_DIR"]
    assert mounts(services["web"])["tasks"] == mounts(services["worker"])["tasks"] == path


def test_volumes_of_ours_belong_to_our_user(services: dict[str, Any]) -> None:
    """A new volume takes over the owner of the image's folder, so that folder must be there."""
    made = next(" ".join(words) for instruction, *words in dockerfile() if "useradd" in words)
    folders = re.search(r"for folder in ([\w. -]+) ?;", made)
    assert folders is not None
    ready = {f"/var/lib/headgate/{name}" for name in folders[1].split() if name != "."}
    mounted = {
        mount.split(":")[0 if mount.startswith("/") else 1]
        for name in OURS
        for mount in services[name].get("volumes", [])
    }
    assert mounted <= ready


def test_our_containers_may_do_little(services: dict[str, Any]) -> None:
    for name in OURS:
        service = services[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["init"] is True  # the worker's detached processes would stay as zombies
        assert "user" not in service  # the image's own, which is not root
        # Java loads native libraries from there.
        assert [t for t in service["tmpfs"] if t.startswith("/tmp:") and "exec" in t.split(":")[1].split(",")]


def test_the_others_run_as_ordinary_users(services: dict[str, Any]) -> None:
    assert services["postgres"]["user"] == "postgres"
    assert services["valkey"]["user"] == "valkey"
    assert "user" not in services["kafka"]  # the image's own is appuser


# Variables and secrets


def test_secrets_are_required_and_have_no_default() -> None:
    text = COMPOSE.read_text()
    assert {name for name, rest in variables(text).items() if rest.startswith(":?")} == REQUIRED
    for name in REQUIRED:
        uses = re.findall(r"\$\{" + name + r"([^}]*)\}", text)
        assert uses
        assert all(use.startswith(":?") and len(use) > 2 for use in uses), f"{name} must be required with a message"


def test_everything_else_has_a_default() -> None:
    optional = {name: rest for name, rest in variables(COMPOSE.read_text()).items() if name not in REQUIRED}
    assert all(rest.startswith(":-") for rest in optional.values()), optional


def test_the_example_file_names_every_variable() -> None:
    example = (PROJECT / ".env.example").read_text()
    named = set(re.findall(r"^#?([A-Z][A-Z_]+)=", example, re.MULTILINE))
    assert named == set(variables(COMPOSE.read_text()))
    images = dict(re.findall(r"^#([A-Z]+_IMAGE)=(.+)$", example, re.MULTILINE))
    used = {name: rest.removeprefix(":-") for name, rest in variables(COMPOSE.read_text()).items()}
    assert images == {name: default for name, default in used.items() if name.endswith("_IMAGE")}
    filled_in = re.findall(r"^([A-Z_]+)=(.+)$", example, re.MULTILINE)
    assert not filled_in, "the example has no secrets of its own: everybody would keep them"


def test_every_setting_exists_in_the_code(services: dict[str, Any]) -> None:
    code = "".join((PROJECT / name).read_text() for name in SETTINGS)
    for name, service in services.items():
        ours = {v for v in service.get("environment", {}) if v.startswith("HEADGATE_") or v == "DATABASE_URL"}
        known = code + (PROJECT / LOGIN).read_text() if name == "migrate" else code
        assert not [v for v in ours if f'"{v}"' not in known], name
    interpolated = {v for v in variables(COMPOSE.read_text()) if v.startswith("HEADGATE_")}
    assert interpolated <= {v for service in services.values() for v in service.get("environment", {})}


def test_web_worker_and_beat_have_the_same_settings(services: dict[str, Any]) -> None:
    def settings(name: str) -> dict[str, Any]:
        return {k: v for k, v in services[name]["environment"].items() if not k.startswith("SPARK_")}

    assert settings("web") == settings("worker") == settings("beat")


def test_spark_is_given_no_secret_but_its_own(services: dict[str, Any]) -> None:
    for name in ("spark-master", "spark-worker"):
        given = services[name]["environment"]
        assert not [v for v in given if not v.startswith(("SPARK_", "_SPARK_AUTH_SECRET"))]
        assert given["_SPARK_AUTH_SECRET"] == services["worker"]["environment"]["HEADGATE_SPARK_SECRET"]
        assert not [word for word in services[name]["command"] if "SECRET" in word]


def test_addresses_name_services_and_their_ports(services: dict[str, Any]) -> None:
    environment = services["worker"]["environment"]
    assert "@postgres:5432/" in environment["DATABASE_URL"]
    assert environment["HEADGATE_REDIS_URL"].endswith("@valkey:6379/0")
    assert environment["HEADGATE_INTERNAL_URL"] == "http://web:8000"
    assert "web" in environment["HEADGATE_ALLOWED_HOSTS"].split(",")
    assert "127.0.0.1" in environment["HEADGATE_ALLOWED_HOSTS"].split(",")  # the health check's
    assert environment["HEADGATE_SPARK_MASTER"] == services["spark-worker"]["command"][1]
    assert environment["HEADGATE_SPARK_MASTER"] == f"spark://{services['spark-master']['command'][2]}:7077"


def test_kafka_is_one_node_with_share_groups(services: dict[str, Any]) -> None:
    kafka = services["kafka"]["environment"]
    assert kafka["KAFKA_PROCESS_ROLES"] == "broker,controller"
    for name in ("OFFSETS_TOPIC", "TRANSACTION_STATE_LOG", "SHARE_COORDINATOR_STATE_TOPIC"):
        assert kafka[f"KAFKA_{name}_REPLICATION_FACTOR"] == 1
    advertised = dict(listener.split("://") for listener in kafka["KAFKA_ADVERTISED_LISTENERS"].split(",", 1))
    assert advertised["INSIDE"] == services["worker"]["environment"]["HEADGATE_DEFAULT_BOOTSTRAP"] == "kafka:19092"
    assert advertised["OUTSIDE"] == "localhost:${KAFKA_PORT:-9092}"
    listening = {listener.split("://")[0] for listener in kafka["KAFKA_LISTENERS"].split(",")}
    assert listening == {part.split(":")[0] for part in kafka["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")}


def test_there_is_room_for_ten_supervisors(services: dict[str, Any]) -> None:
    """With everything at its default, and for two that hand over to the next task meanwhile."""
    lines = (PROJECT / "docker" / "spark-defaults.conf").read_text()
    conf = spark_conf.read_properties(lines)
    assert not {"spark.cores.max", "spark.executor.memory", "spark.executor.cores"} & set(conf)
    assert conf["spark.authenticate"] == conf["spark.network.crypto.enabled"] == "true"
    given = services["spark-worker"]["environment"]
    cores, memory = (variables(given[v])[v].removeprefix(":-") for v in ("SPARK_WORKER_CORES", "SPARK_WORKER_MEMORY"))
    assert int(cores) >= 12
    assert int(memory.removesuffix("g")) * 1024 >= 12 * spark_conf.memory_mb(spec_for("default"), 1)


# The entrypoint, with stand-ins for the programs it starts: they print how they were called.


@pytest.fixture
def run(tmp_path: Path) -> Any:
    for name in ("uvicorn", "celery", "python", "spark-class"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$@"\n')
        program.chmod(0o755)

    def call(*arguments: str, **variables: str) -> list[str]:
        command = ["sh", str(PROJECT / "docker" / "entrypoint.sh"), *arguments]
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()

    return call


def test_every_service_has_a_command_that_the_entrypoint_knows(services: dict[str, Any], run: Any) -> None:
    starts = {
        "web": "uvicorn controlplane.config.asgi:application --host 0.0.0.0 --port 8000",
        "worker": "celery -A controlplane.config worker",
        "beat": "celery -A controlplane.config beat",
        "migrate": "python manage.py ensure_login --username admin --team demo --superuser",
        "spark-master": "spark-class org.apache.spark.deploy.master.Master --port 7077",
        "spark-worker": "spark-class org.apache.spark.deploy.worker.Worker",
    }
    assert set(starts) == OURS
    for name, start in starts.items():
        assert run(*services[name]["command"])[-1].startswith(start)


def test_what_follows_the_first_word_is_handed_on(run: Any) -> None:
    assert run("spark-worker", "spark://m:7077")[-1].endswith(" spark://m:7077")
    assert run("manage", "check", "--deploy") == ["python manage.py check --deploy"]
    assert run("migrate") == ["python manage.py migrate --no-input"]
    assert run("migrate", "--username", "a")[0] == "python manage.py migrate --no-input"
    assert run()[0].startswith("uvicorn ")
    assert run("echo", "two words", "x") == ["two words x"]


def test_beat_keeps_its_schedule_where_its_volume_is(services: dict[str, Any], run: Any) -> None:
    """One without a name, so that two beats do not write one file."""
    [folder] = services["beat"]["volumes"]
    assert f"-s {folder}/schedule" in run("beat")[0]
    assert folder in services["beat"]["healthcheck"]["test"][1]


def test_the_worker_asked_for_its_health_is_the_one_that_runs(services: dict[str, Any], run: Any) -> None:
    assert "-n worker@%h " in run("worker")[0]  # celery puts the machine's name for %h
    asks = services["worker"]["healthcheck"]["test"][1].replace("$$", "$")
    assert f" -d worker@{socket.gethostname()} " in run("sh", "-c", asks)[0]
    assert "-n worker@ingest-2 " in run("worker", HEADGATE_HOST_NAME="ingest-2")[0]
    assert " -d worker@ingest-2 " in run("sh", "-c", asks, HEADGATE_HOST_NAME="ingest-2")[0]


# Several containers of a service: docker compose up --scale worker=2 --scale beat=2 --scale web=2


@pytest.mark.parametrize("name", SCALED)
def test_nothing_of_a_container_is_the_same_in_the_next(services: dict[str, Any], name: str) -> None:
    """A host's name is held by one host, and of a fixed port of the machine there is one."""
    service = services[name]
    assert not {"hostname", "container_name"} & set(service)
    assert not {"HEADGATE_HOST_NAME", "SPARK_LOCAL_HOSTNAME"} & set(service["environment"])
    published = [port.rsplit(":", 1)[0] for port in service.get("ports", [])]
    assert published == (["127.0.0.1:${WEB_PORT:-8000}"] if name == "web" else []), "a variable may have a range"
    assert set(mounts(service)) <= {"segments", "tasks"}, "all else is one container's"


def test_prometheus_finds_each_container(services: dict[str, Any]) -> None:
    """By the addresses of the service's name. The metrics of the store are asked for once, else sums are too large."""
    jobs = yaml.safe_load((PROJECT / "docs" / "operations" / "prometheus.yml").read_text())["scrape_configs"]
    found = {job["job_name"]: [(s["names"], s["port"]) for s in job.get("dns_sd_configs", [])] for job in jobs}
    assert found == {"headgate": [], "headgate-web": [(["web"], 8000)], "headgate-jobs": [(["worker", "beat"], 9100)]}
    assert {name for searches in found.values() for names, _ in searches for name in names} == set(SCALED)
    assert all(s["type"] == "A" for job in jobs for s in job.get("dns_sd_configs", []))
    assert jobs[0]["static_configs"] == [{"targets": ["web:8000"]}]


@pytest.mark.parametrize("name", SCALED)
def test_a_container_answers_to_its_own_addresses(run: Any, tmp_path: Path, name: str) -> None:
    """Prometheus asks by them."""
    (tmp_path / "hostname").write_text('#!/bin/sh\n[ "$*" = -i ] && echo 172.18.0.5 172.19.0.2\n')
    (tmp_path / "hostname").chmod(0o755)
    for program in ("uvicorn", "celery"):
        (tmp_path / program).write_text('#!/bin/sh\necho "$HEADGATE_ALLOWED_HOSTS"\n')
    assert run(name, HEADGATE_ALLOWED_HOSTS="a.example,web") == ["a.example,web,172.18.0.5,172.19.0.2"]
    assert run(name, HEADGATE_ALLOWED_HOSTS="") == ["127.0.0.1,localhost,172.18.0.5,172.19.0.2"]


def test_mail_and_logging_in_by_a_provider_can_be_set(services: dict[str, Any]) -> None:
    known = re.findall(
        r"^\| `(HEADGATE_(?:EMAIL|OIDC|PUBLIC)_\w+)`", (PROJECT / "docs/reference/settings.md").read_text(), re.M
    )
    assert len(known) > 10
    assert set(known) <= set(services["web"]["environment"])
