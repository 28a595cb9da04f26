"""The Helm chart, rendered by the real Helm and held against Kubernetes' own schemas. No cluster runs it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.embedded.home import PROJECT
from tests.support.go_programs import LONGEST_BUILD_S, helm_program
from tests.support.kubernetes_schemas import KUBERNETES, check_documents

pytestmark = pytest.mark.timeout(LONGEST_BUILD_S)
CHART = PROJECT / "helm" / "headgate"
LEAST = {"existingSecret": "headgate", "hosts": ["headgate.example.org"], "deepStorage": "s3://rows/headgate"}
MOST = {
    **LEAST,
    "deepStorage": "/var/lib/headgate/segments",
    "deepStorageClaim": "rows",
    "image": {"repository": "example.org/headgate", "tag": "2", "pullSecrets": ["registry"]},
    "spark": {"master": "spark://spark-master:7077", "deployMode": "cluster"},
    "settings": {"HEADGATE_WORKER_CAPACITY": "40", "HEADGATE_OIDC_TEAMS": '{"leads": ["web:admin"]}'},
    "login": {"username": "admin", "team": "web"},
    "worker": {"replicas": 1},
    "ingress": {"enabled": True, "className": "nginx", "annotations": {"a.example/b": "c"}, "tlsSecret": "tls"},
}
PODS = {
    **LEAST,
    "spark": {
        "master": "k8s://https://kubernetes.default.svc",
        "namespace": "streams",
        "credentialsSecret": "storage",
        "properties": {"spark.kubernetes.executor.request.cores": "0.5"},
        "executorPod": {"volumes": [{"name": "more", "emptyDir": {}}]},
    },
}
VALUES: dict[str, dict[str, Any]] = {"least": LEAST, "most": MOST, "pods": PODS}


def helm(command: str, values: dict[str, Any], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    whole = [str(helm_program()), command, *arguments, str(CHART), "--values", str(file), "--kube-version", KUBERNETES]
    return subprocess.run(whole, capture_output=True, text=True)


@pytest.fixture(params=list(VALUES))
def rendered(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    done = helm("template", VALUES[request.param], tmp_path, "shop")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def documents(rendered: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(rendered))


def pods(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """By the name of their only container."""
    specs = [d["spec"]["template"]["spec"] for d in documents if "template" in d.get("spec", {})]
    assert all(len(spec["containers"]) == 1 for spec in specs)
    return {spec["containers"][0]["name"]: spec for spec in specs}


def test_kubernetes_takes_it(documents: list[dict[str, Any]]) -> None:
    check_documents(documents)


@pytest.mark.parametrize("values", list(VALUES.values()), ids=list(VALUES))
def test_helm_finds_no_fault(values: dict[str, Any], tmp_path: Path) -> None:
    done = helm("lint", values, tmp_path, "--strict")
    assert done.returncode == 0, done.stdout


def test_no_pod_may_do_more_than_it_needs(documents: list[dict[str, Any]]) -> None:
    for pod in pods(documents).values():
        [container] = pod["containers"]
        assert pod["automountServiceAccountToken"] == ("serviceAccountName" in pod)
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]["cpu"]
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        assert mounts == {volume["name"] for volume in pod["volumes"]}


def test_what_runs_is_what_the_image_knows(documents: list[dict[str, Any]]) -> None:
    """Its user, commands and folders, and Headgate's settings; secrets come from the secret alone."""
    dockerfile = (PROJECT / "Dockerfile").read_text()
    assert "--uid 10001" in dockerfile
    known = set(re.findall(r"^\| `(\w+)`", (PROJECT / "docs" / "reference" / "settings.md").read_text(), re.MULTILINE))
    roles = re.search(
        r"^    ([\w| -]+)\) \[ \$# -eq 0 \]", (PROJECT / "docker" / "entrypoint.sh").read_text(), re.MULTILINE
    )
    assert roles is not None
    found = pods(documents)
    assert set(found) == {"web", "worker", "beat", "migrate"} <= set(roles[1].split(" | "))
    for name, pod in found.items():
        [container] = pod["containers"]
        assert container["args"][0] == name
        names = [variable["name"] for variable in container["env"]]
        assert set(names) <= known and len(set(names)) == len(names)
        assert container["envFrom"] == [{"secretRef": {"name": "headgate"}}]
        settings = {variable["name"]: variable["value"] for variable in container["env"]}
        assert settings["HEADGATE_INTERNAL_URL"] == "http://shop-headgate-web.default.svc:8000"
        hosts = ["headgate.example.org", "shop-headgate-web", "shop-headgate-web.default.svc"]
        assert settings["HEADGATE_ALLOWED_HOSTS"].split(",")[:3] == hosts
        assert settings["HEADGATE_TASK_DIR"] == "/var/lib/headgate/tasks"
        assert ("HEADGATE_WORKER_STOPS_TASKS" in settings) == (name == "worker")


def test_one_after_another_is_replaced(documents: list[dict[str, Any]]) -> None:
    """The tables first. Requests come only to a web process that answers them."""
    by_name = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    migrate = by_name["Job", "shop-headgate-migrate"]
    assert migrate["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    service = by_name["Service", "shop-headgate-web"]["spec"]
    for part in ("web", "worker", "beat"):
        deployment = by_name["Deployment", f"shop-headgate-{part}"]["spec"]
        assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
        labels = deployment["template"]["metadata"]["labels"].items()
        assert deployment["selector"]["matchLabels"].items() <= labels
        assert (service["selector"].items() <= labels) == (part == "web")
        budget = by_name.get(("PodDisruptionBudget", f"shop-headgate-{part}"))
        assert (budget is not None) == (deployment["replicas"] > 1), "one alone could never be moved"
    web = pods(documents)["web"]["containers"][0]
    assert web["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert web["livenessProbe"]["httpGet"]["path"] == "/healthz", "a web process without PostgreSQL is not at fault"
    worker = pods(documents)["worker"]
    assert worker["terminationGracePeriodSeconds"] >= 60
    assert "livenessProbe" not in worker["containers"][0], "it is asked through Valkey, whose loss costs only speed"
    assert "readinessProbe" in worker["containers"][0], "the next one waits for it"


def test_only_with_pods_of_their_own_do_parts_speak_to_the_api_server(tmp_path: Path) -> None:
    """Web looks, the worker makes, and each has an account of its own. Nothing is allowed beyond the namespace."""
    for values in (LEAST, MOST):
        rendered = helm("template", values, tmp_path, "shop").stdout
        assert not re.search(
            r"^kind: (ServiceAccount|Role|RoleBinding|NetworkPolicy|ConfigMap)$", rendered, re.MULTILINE
        )
    documents = list(yaml.safe_load_all(helm("template", PODS, tmp_path, "shop").stdout))
    found = pods(documents)
    accounts = {name: pod.get("serviceAccountName") for name, pod in found.items()}
    named = {name: f"shop-headgate-{name}" for name in ("web", "worker")}
    assert accounts == {**dict.fromkeys(found), **named}
    roles = {d["metadata"]["name"].rpartition("-")[2]: d for d in documents if d["kind"] == "Role"}
    assert {role["metadata"]["namespace"] for role in roles.values()} == {"streams"}
    verbs = {verb for rule in roles["web"]["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list"}
    may_read_secrets = [
        name
        for name, role in roles.items()
        if any(
            "secrets" in rule["resources"] and {"get", "list", "watch"} & set(rule["verbs"]) for rule in role["rules"]
        )
    ]
    assert not may_read_secrets
    subjects = {d["metadata"]["name"]: d["subjects"][0] for d in documents if d["kind"] == "RoleBinding"}
    homes = {name: subject["namespace"] for name, subject in subjects.items()}
    assert homes == {
        "shop-headgate-web": "default",
        "shop-headgate-worker": "default",
        "shop-headgate-driver": "streams",
    }
    accounts_made = {
        (d["metadata"]["name"], d["metadata"]["namespace"]) for d in documents if d["kind"] == "ServiceAccount"
    }
    assert accounts_made == set(homes.items())


def test_drivers_are_reached_by_executors_alone_and_web_by_all(tmp_path: Path) -> None:
    documents = list(yaml.safe_load_all(helm("template", PODS, tmp_path, "shop").stdout))
    policies = {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"] == "NetworkPolicy"}
    [web] = policies["shop-headgate-web"]["ingress"]
    assert web == {"ports": [{"port": "http"}]}
    driver = policies["shop-headgate-driver"]
    ours = [{"key": "headgate-task", "operator": "Exists"}]
    assert driver["podSelector"] == {"matchLabels": {"spark-role": "driver"}, "matchExpressions": ours}
    assert driver["ingress"] == [{"from": [{"podSelector": {"matchExpressions": ours}}]}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"existingSecret": ""}, "/existingSecret"),
        ({"hosts": []}, "/hosts"),
        ({"hosts": ["https://headgate.example.org"]}, "/hosts/0"),
        ({"deepStorage": "rows"}, "/deepStorage"),
        ({"deepStorage": "/rows"}, "give deepStorageClaim"),
        ({"deepStorage": "/var/lib/headgate/tasks", "deepStorageClaim": "rows"}, "in the folder of tasks"),
        ({"deepStorageClaim": "rows"}, "deepStorageClaim is for a folder"),
        ({"spark": {"master": "yarn"}}, "/spark/master"),
        ({"spark": {"master": "k8s://kubernetes.default.svc"}}, "/spark/master"),
        ({"spark": {"properties": {"spark.kubernetes.namespace": "x"}}}, "spark.kubernetes.namespace"),
        ({"spark": {"properties": {"kubernetes.namespace": "x"}}}, "kubernetes.namespace"),
        ({"spark": {"properties": {"spark.a": "b\nspark.c d"}}}, "/spark/properties"),
        ({"spark": {"driverPod": {"containers": []}}}, "/spark/driverPod"),
        (
            {
                "spark": {"master": "k8s://https://a", "namespace": "streams"},
                "deepStorage": "/rows",
                "deepStorageClaim": "rows",
            },
            "a claim of the release's namespace",
        ),
        ({"spark": {"deployMode": "cluster"}}, "spark.deployMode cluster needs a master"),
        ({"settings": {"HEADGATE_SECRET_KEY": "x"}}, "HEADGATE_SECRET_KEY"),
        ({"settings": {"HEADGATE_ALLOWED_HOSTS": "x"}}, "HEADGATE_ALLOWED_HOSTS"),
        ({"settings": {"HEADGATE_HOST_NAME": "x"}}, "HEADGATE_HOST_NAME"),
        ({"settings": {"HEADGATE_WORKER_CAPACTIY": "40"}}, "HEADGATE_WORKER_CAPACTIY"),
        ({"settings": {"AWS_SECRET_ACCESS_KEY": "x"}}, "AWS_SECRET_ACCESS_KEY"),
        ({"settings": {"HEADGATE_WORKER_CAPACITY": 40}}, "/settings/HEADGATE_WORKER_CAPACITY"),
        ({"web": {"replica": 3}}, "'replica' not allowed"),
        ({"worker": {"replicas": 0}}, "/worker/replicas"),
        ({"wep": {}}, "'wep' not allowed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_value_is_named(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    done = helm("template", {**LEAST, **change}, tmp_path, "shop")
    assert done.returncode != 0
    assert said in done.stderr
    assert not done.stdout
