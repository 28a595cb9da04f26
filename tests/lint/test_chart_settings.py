"""The settings that the Helm chart's values may have: all but its own, secrets and those of the embedded stack."""

from __future__ import annotations

import json
import re

from controlplane.embedded.home import PROJECT

OF_THE_CHART = {
    "HEADGATE_ALLOWED_HOSTS",
    "HEADGATE_INTERNAL_URL",
    "HEADGATE_DEEP_STORAGE",
    "HEADGATE_TASK_DIR",
    "HEADGATE_HOST_NAME",
    "HEADGATE_SPARK_MASTER",
    "HEADGATE_SPARK_DEPLOY_MODE",
    "HEADGATE_WORKER_STOPS_TASKS",
}
SECRETS = {
    "HEADGATE_SECRET_KEY",
    "HEADGATE_OLD_SECRET_KEYS",
    "HEADGATE_REDIS_URL",
    "HEADGATE_LOGIN_PASSWORD",
    "HEADGATE_SPARK_SECRET",
    "HEADGATE_OIDC_CLIENT_SECRET",
    "HEADGATE_METRICS_TOKEN",
}
OF_OTHERS = {"HEADGATE_HOME", "HEADGATE_CACHE_DIR", "HEADGATE_FAILPOINTS", "HEADGATE_CONNECTOR_FAILPOINTS"}


def test_every_other_setting_may_be_given_and_no_misspelt_one() -> None:
    page = (PROJECT / "docs" / "reference" / "settings.md").read_text()
    documented = set(re.findall(r"^\| `(HEADGATE_\w+)`", page, re.MULTILINE))
    schema = json.loads((PROJECT / "helm" / "headgate" / "values.schema.json").read_text())
    taken = schema["properties"]["settings"]["propertyNames"]["then"]["enum"]
    not_taken = OF_THE_CHART | SECRETS | OF_OTHERS
    assert not_taken <= documented
    assert sorted(taken) == sorted(documented - not_taken)
