"""Drivers on Kubernetes: what its API server says of their pods, their end, and their logs.

``spark-submit`` makes the driver's pod, and the driver those of its executors. A pod's environment can be read by all
who may read pods, and a command line by all on its machine: so the task's token goes into a Secret of the pod's name.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from django.conf import settings

from controlplane.spark.cluster_state import Cluster, Driver

MASTER = "k8s://"
SUBMITTED = re.compile(r"submission ID ([\w.-]+:[\w.-]+) into Kubernetes")
IMAGE = "spark.kubernetes.container.image"
_CODE = "local:///opt/headgate"  # in the project's image
_TASK = "headgate-task"  # a label, by which pods of ours are known
_POD_CONF = "spark.kubernetes.driver.pod.name"
_NAMESPACE = "spark.kubernetes.namespace"
_TOKEN_FILE, _CA_FILE = (f"spark.kubernetes.authenticate.submission.{n}" for n in ("oauthTokenFile", "caCertFile"))
# What the driver gets of the submission's environment. The rest is the image's.
_SENT = (
    "HEADGATE_TASK_ID",
    "HEADGATE_TASK_TOKEN",
    "HEADGATE_URL",
    "HEADGATE_STOP_TIMEOUT",
    "JDK_JAVA_OPTIONS",
    "PYTHONUNBUFFERED",
)
# Why the kubelet can't start a container. It tries again, but only people can mend it.
_CANNOT_START = (
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
)
_PAGE = 500
_TIMEOUT_S = 5.0


def conf(name: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """What the application of this name, a task's id, is submitted with. ``overrides``: the operator's properties.
    Raises ``OSError`` when they name no image."""
    if not overrides.get(IMAGE) and not overrides.get("spark.kubernetes.driver.container.image"):
        raise OSError(f"spark-defaults.conf names no {IMAGE}: set it to the address of Headgate's image")
    api, label = Api.of(overrides), label_of(name)
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-")
    pod = f"headgate-{slug}-{secrets.token_hex(4)}"
    return {
        _NAMESPACE: api.namespace,
        _POD_CONF: pod,
        "spark.kubernetes.executor.podNamePrefix": pod,
        "spark.kubernetes.submission.waitAppCompletion": "false",
        f"spark.kubernetes.driver.label.{_TASK}": label,
        f"spark.kubernetes.executor.label.{_TASK}": label,
        f"spark.kubernetes.driver.annotation.{_TASK}": name,
        **{f"spark.kubernetes.driver.secretKeyRef.{variable}": f"{pod}:{variable}" for variable in _SENT},
        **({_TOKEN_FILE: str(api.token_file)} if api.token_file.is_file() else {}),
        **({_CA_FILE: str(api.ca_file)} if api.ca_file.is_file() else {}),
    }


def label_of(name: str) -> str:
    """The value of the label that pods of this application have: a name may be too long, or have other letters."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def program(module: str) -> str:
    """Where the image has it."""
    return f"{_CODE}/{module.replace('.', '/')}.py"


def pod_of(command: Sequence[str]) -> str:
    """The name of the pod that this submission makes; empty for anything else."""
    return next((part.partition("=")[2] for part in command if part.startswith(f"{_POD_CONF}=")), "")


@dataclass(frozen=True)
class Api:
    """The API server, as ``spark-submit`` finds it: by the same address, token and certificate.

    Methods raise httpx2's errors.
    """

    address: str
    namespace: str
    token_file: Path
    ca_file: Path

    @classmethod
    def of(cls, overrides: Mapping[str, str]) -> Api:
        """``overrides``: the operator's properties. What they do not say is in the files that each pod gets."""
        account = Path(settings.KUBERNETES_ACCOUNT)
        own = account / "namespace"
        return cls(
            settings.SPARK_MASTER.removeprefix(MASTER),
            overrides.get(_NAMESPACE) or (own.read_text().strip() if own.is_file() else "default"),
            Path(overrides.get(_TOKEN_FILE) or account / "token"),
            Path(overrides.get(_CA_FILE) or account / "ca.crt"),
        )

    def keep_environment(self, pod: str, environment: Mapping[str, str]) -> None:
        """Make the Secret that the pod's environment comes from."""
        sent = {name: environment[name] for name in _SENT}
        metadata = {"name": pod, "labels": {_TASK: label_of(environment["HEADGATE_TASK_ID"])}}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "stringData": sent}
        self._call("POST", f"namespaces/{self.namespace}/secrets", json=secret)

    def drivers(self) -> dict[str, Driver]:
        """All whose pods there are, by ``NAMESPACE:POD``."""
        return {f"{self.namespace}:{pod['metadata']['name']}": _driver(pod) for pod in self._driver_pods()}

    def _driver_pods(self) -> Iterator[dict[str, Any]]:
        wanted = {"labelSelector": f"{_TASK},spark-role=driver", "limit": str(_PAGE)}
        while True:
            page = self._call("GET", f"namespaces/{self.namespace}/pods", params=wanted).json()
            yield from page["items"]
            if not (following := page["metadata"].get("continue")):
                return
            wanted["continue"] = following

    def has_executors(self, name: str) -> bool:
        """Whether an executor of this application has a node: it runs, or is being started."""
        wanted = {"labelSelector": f"{_TASK}={label_of(name)},spark-role=executor", "limit": "1"}
        wanted["fieldSelector"] = "spec.nodeName!="
        return bool(self._call("GET", f"namespaces/{self.namespace}/pods", params=wanted).json()["items"])

    def is_gone(self, driver_id: str) -> bool:
        """Whether there is no such pod, in its own namespace."""
        return self._call("GET", _path(driver_id, "pods"), missing_is_fine=True).status_code == httpx2.codes.NOT_FOUND

    def kill(self, driver_id: str) -> None:
        """Delete the driver's pod, with which its executors and its settings go, and its Secret."""
        for kind in ("pods", "secrets"):
            self._call("DELETE", _path(driver_id, kind), missing_is_fine=True)

    def forget(self, pod: str) -> None:
        """Delete the Secret of a pod that could not be made."""
        self._call("DELETE", f"namespaces/{self.namespace}/secrets/{pod}", missing_is_fine=True)

    def log(self, address: str) -> bytes:
        """The driver's whole log: Kubernetes gives no part of one by its place."""
        driver_id, _, container = address.removeprefix(MASTER).partition("/")
        return self._call("GET", f"{_path(driver_id, 'pods')}/log", params={"container": container}).content

    def _call(self, method: str, path: str, *, missing_is_fine: bool = False, **parts: Any) -> httpx2.Response:
        # The token is read for each call: the kubelet replaces it within the hour.
        token = self.token_file.read_text().strip() if self.token_file.is_file() else ""
        answer = httpx2.request(
            method,
            f"{self.address}/api/v1/{path}",
            headers={"Authorization": f"Bearer {token}"} if token else {},
            verify=ssl.create_default_context(cafile=self.ca_file) if self.ca_file.is_file() else True,
            timeout=_TIMEOUT_S,
            trust_env=False,
            **parts,
        )
        if missing_is_fine and answer.status_code == httpx2.codes.NOT_FOUND:
            return answer
        return answer.raise_for_status()


def read_cluster(api: Api) -> Cluster:
    """Its drivers alone: how many cores there are, and whose, the API server does not say.

    Raises httpx2's errors, ``ValueError``, ``KeyError``, ``TypeError``.
    """
    return Cluster(cores=0, used=0, drivers=api.drivers(), knows_cores=False)


def reason_of(error: Exception) -> str:
    """What the API server says why not; else the error's own text."""
    if isinstance(error, httpx2.HTTPStatusError):
        try:
            return str(error.response.json()["message"])
        except (ValueError, KeyError, TypeError):
            return f"{error.response.status_code} {error.response.reason_phrase}"
    return str(error) or type(error).__name__


def log_address(driver_id: str, container: str) -> str:
    """Of the log of a driver in this container."""
    return f"{MASTER}{driver_id}/{container}"


def gives(address: str) -> bool:
    """Whether a log is in a pod."""
    return address.startswith(MASTER)


def _path(driver_id: str, kind: str) -> str:
    namespace, _, pod = driver_id.partition(":")
    return f"namespaces/{namespace}/{kind}/{pod}"


def _driver(pod: Mapping[str, Any]) -> Driver:
    status, name = pod["status"], _container(pod)
    phase = status.get("phase", "Pending")
    containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    state: Mapping[str, Any] = next((c.get("state", {}) for c in containers if c["name"] == name), {})
    if (ended := state.get("terminated")) or phase in ("Succeeded", "Failed"):
        succeeded = phase == "Succeeded" or (ended is not None and ended.get("exitCode") == 0)
        return Driver("FINISHED" if succeeded else "FAILED", name if ended else "", _end_reason(status, ended or {}))
    if phase != "Pending":
        return Driver("RUNNING", name)
    waiting = [w for c in containers if (w := c.get("state", {}).get("waiting")) and w.get("reason") in _CANNOT_START]
    if waiting:
        return Driver("SUBMITTED", reason=_text(waiting[0]), cannot_start=True)
    unplaced = [c for c in status.get("conditions", ()) if c["type"] == "PodScheduled" and c["status"] == "False"]
    return Driver("SUBMITTED", reason=_text(unplaced[0]) if unplaced else "")


def _container(pod: Mapping[str, Any]) -> str:
    """The driver's, which a pod template may call as it likes, and have others beside."""
    containers = pod["spec"]["containers"]
    own = [c for c in containers if any(v["name"] == "SPARK_DRIVER_BIND_ADDRESS" for v in c.get("env", ()))]
    return str((own or containers)[0]["name"])


def _end_reason(status: Mapping[str, Any], ended: Mapping[str, Any]) -> str:
    code = f"exit code {ended['exitCode']}" if ended.get("exitCode") else ""
    return ", ".join(filter(None, [_text(status), _text(ended), code]))


def _text(said: Mapping[str, Any]) -> str:
    return ": ".join(filter(None, [said.get("reason"), said.get("message")]))
