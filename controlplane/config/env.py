"""The forms that settings have in the environment."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from controlplane.common.durations import duration_of
from controlplane.common.environment import EnvironmentProblem, text, variables_read
from ingestion.specs.inputs.input_source import spec_location
from ingestion.specs.kafka.addresses import AddressPolicy

YARN = "yarn"
KUBERNETES = "k8s://"


def flag(name: str, default: bool = False) -> bool:
    """True for 1, true, yes, on; False for 0, false, no, off and nothing."""
    value = text(name, "1" if default else "0").strip().lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("", "0", "false", "no", "off"):
        return False
    raise EnvironmentProblem(f"{name} must be 1 or 0, not {value!r}")


def number(name: str, default: int, least: int | None = None) -> int:
    """A whole number, not below ``least``."""
    value = text(name, str(default))
    try:
        parsed = int(value)
    except ValueError:
        raise EnvironmentProblem(f"{name} must be a whole number, not {value!r}") from None
    if least is not None and parsed < least:
        raise EnvironmentProblem(f"{name} must be at least {least}, not {parsed}")
    return parsed


def duration(name: str, default: str) -> timedelta:
    """An ISO 8601 duration: PT24H, P7D."""
    value = text(name, default).strip()
    parsed = duration_of(value)
    if parsed is None:
        raise EnvironmentProblem(f"{name} must be an ISO 8601 duration such as PT24H, not {value!r}")
    return parsed


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list without blanks."""
    return [w.strip() for w in text(name, default).split(",") if w.strip()]


def folders(name: str) -> list[str]:
    """Absolute paths, with commas between them; none by default."""
    paths = words(name)
    invalid = next((f for f in paths if not f.startswith("/") or f == "/" or ".." in f.split("/")), None)
    if invalid is not None:
        raise EnvironmentProblem(f"{name} must name folders by absolute paths, none of them the root, not {invalid!r}")
    return paths


def object_locations(name: str) -> list[str]:
    """Addresses such as ``s3://bucket/folder?region=…``, with commas between them; none by default."""
    locations = words(name)
    invalid = next((g for g in locations if not spec_location(g)), None)
    if invalid is not None:
        raise EnvironmentProblem(
            f"{name} must name locations such as s3://bucket/folder, gs://bucket/folder or "
            f"abfss://container@account.dfs.core.windows.net/folder, without a login, not {invalid!r}"
        )
    return locations


def word(name: str, default: str) -> str:
    """A name of letters, digits, dots, hyphens and underscores."""
    value = text(name, default).strip() or default
    if not re.fullmatch(r"[\w.-]{1,255}", value):
        raise EnvironmentProblem(f"{name} must have letters, digits, '.', '-' and '_' only, not {value!r}")
    return value


def choice(name: str, *values: str) -> str:
    """One of these words; the first one is the default."""
    value = text(name, values[0]).strip()
    if value in values:
        return value
    raise EnvironmentProblem(f"{name} must be {' or '.join(values)}, not {value!r}")


def internal_url(master: str) -> str:
    """Where applications reach the control plane: not on loopback when they run on other machines."""
    value = text("HEADGATE_INTERNAL_URL", "http://127.0.0.1:8000")
    host, hosts = urlsplit(value).hostname or "", hosts_of(master)
    if master == "local" or not is_loopback(host) or (hosts and all(map(is_loopback, hosts))):
        return value
    raise EnvironmentProblem(
        f"HEADGATE_INTERNAL_URL is {value}, but executors run on the machines of {master}: on each of them, {host} is "
        "the machine itself. Set an address at which they reach the web process, such as http://headgate.internal:8000"
    )


def spark_master() -> str:
    """Where Spark's applications run: ``local``, a standalone master, ``yarn``, or Kubernetes' API server."""
    value = text("HEADGATE_SPARK_MASTER", "local")
    if value.startswith(KUBERNETES) and not re.fullmatch(r"k8s://https?://[^/\s?#@]+/?", value):
        raise EnvironmentProblem(
            f"HEADGATE_SPARK_MASTER is {value}. For Kubernetes, give the whole address of its API server, such as "
            "k8s://https://kubernetes.default.svc or k8s://https://host:6443"
        )
    return value.removesuffix("/")


def has_own_drivers(master: str) -> bool:
    """Whether all drivers run there, and Spark makes a secret for each application."""
    return master == YARN or master.startswith(KUBERNETES)


def spark_secret(master: str) -> str:
    """What Spark's master and workers ask applications for; empty for none."""
    value = text("HEADGATE_SPARK_SECRET", "")
    if has_own_drivers(master):
        return ""  # Spark makes one for each application
    if value or master == "local" or flag("HEADGATE_ALLOW_OPEN_SPARK"):
        return value
    raise EnvironmentProblem(
        f"HEADGATE_SPARK_SECRET is not set: anyone who can connect to {master}, or to an application there, could run "
        "programs in it. Set it to the cluster's spark.authenticate.secret, or set HEADGATE_ALLOW_OPEN_SPARK=1 if it "
        "has none and nobody else is in its network"
    )


def deploy_mode(master: str) -> str:
    """Where drivers run: ``client`` or ``cluster``; on YARN and Kubernetes there alone."""
    modes = ("cluster", "client") if has_own_drivers(master) else ("client", "cluster")
    mode = choice("HEADGATE_SPARK_DEPLOY_MODE", *modes)
    if has_own_drivers(master) and mode == "client":
        raise EnvironmentProblem(
            f"HEADGATE_SPARK_DEPLOY_MODE is client, but HEADGATE_SPARK_MASTER is {master}. Headgate runs drivers there "
            "in cluster mode only: unset HEADGATE_SPARK_DEPLOY_MODE, or set it to cluster"
        )
    if mode == "client" or has_own_drivers(master) or master.startswith("spark://"):
        return mode
    raise EnvironmentProblem(
        f"HEADGATE_SPARK_DEPLOY_MODE is cluster, but HEADGATE_SPARK_MASTER is {master}: there is no cluster for "
        "drivers to run on. Set the master to an address such as spark://host:7077, or the mode to client"
    )


def hadoop_conf_dir(master: str) -> str:
    """The folder that names YARN's cluster, which Hadoop's own programs find by the same variable; else empty."""
    folder = text("HADOOP_CONF_DIR", "") if master == YARN else ""
    if master != YARN or (Path(folder) / "yarn-site.xml").is_file():
        return folder
    raise EnvironmentProblem(
        f"HEADGATE_SPARK_MASTER is yarn, but HADOOP_CONF_DIR is {folder or 'not set'}. Set it to the folder that holds "
        "the cluster's yarn-site.xml and core-site.xml"
    )


def spark_master_web(master: str) -> list[str]:
    """Where the master, or each of several, answers with JSON: where its page is unless that was moved."""
    if master.startswith(KUBERNETES):
        return [master.removeprefix(KUBERNETES)]
    addresses = words("HEADGATE_SPARK_MASTER_WEB")
    if master == YARN and not addresses:
        raise EnvironmentProblem(
            "HEADGATE_SPARK_MASTER is yarn, but HEADGATE_SPARK_MASTER_WEB is not set. Set it to the address of the "
            "ResourceManager's page, such as http://host:8088; with several ResourceManagers, to all of them"
        )
    return [a.rstrip("/") for a in addresses] or [f"http://{host}:8080" for host in hosts_of(master)]


def hosts_of(master: str) -> list[str]:
    """The hosts of a Spark master's address: of spark://a:7077,b:7077 both. Of YARN those of ResourceManagers.

    None of Kubernetes: a pod is a host of its own, wherever the API server is.
    """
    if master.startswith(KUBERNETES):
        return []
    if master == YARN:
        return [urlsplit(address).hostname or "" for address in words("HEADGATE_SPARK_MASTER_WEB")]
    parts = master.partition("://")[2].split(",")
    return [host for part in parts if (host := urlsplit(f"//{part}").hostname)]


def is_loopback(host: str) -> bool:
    """Whether it is this machine alone. Names are not looked up: what they mean elsewhere is not known here."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def secret_key(debug: bool) -> str:
    """Django's secret key; only with debug on may it be missing (then sessions end with the process)."""
    value = text("HEADGATE_SECRET_KEY", "")
    if value:
        return value
    if debug:
        return secrets.token_urlsafe(48)
    raise EnvironmentProblem("HEADGATE_SECRET_KEY is not set: give it 50 random characters, the same for every process")


def long_secret(name: str) -> str:
    """A secret that nobody guesses; empty for none."""
    value = text(name, "")
    if value and len(value) < 20:
        raise EnvironmentProblem(f"{name} is too short: give it 20 random characters or more")
    return value


def metrics_port(token: str) -> int:
    """Where worker and beat answer Prometheus, to who shows the token; 0 for nowhere."""
    port = number("HEADGATE_METRICS_PORT", 0, least=0)
    if port > 65535:
        raise EnvironmentProblem(f"HEADGATE_METRICS_PORT must be a port, at most 65535, not {port}")
    if port and not token:
        raise EnvironmentProblem("HEADGATE_METRICS_PORT needs HEADGATE_METRICS_TOKEN: nobody may read without it")
    return port


def address_policy(allowed: list[str], denied: list[str], ports: list[str]) -> AddressPolicy:
    """What a spec may make Headgate connect to."""
    try:
        return AddressPolicy.of(allowed, denied, ports)
    except ValueError as error:
        names = "HEADGATE_ALLOWED_NETWORKS, HEADGATE_DENIED_NETWORKS or HEADGATE_ALLOWED_PORTS"
        raise EnvironmentProblem(f"{names}: {error}") from None


def prefix(name: str, default: str) -> str:
    """How the variables begin that specs may name. Call it last: it must fit none that was asked for before."""
    value = text(name, default)
    conflicting = sorted(other for other in variables_read if other.startswith(value))
    if conflicting:
        raise EnvironmentProblem(f"{name} must not be the beginning of {', '.join(conflicting)}: specs could read it")
    return value
