#!/usr/bin/env python
"""Django's command line for the control plane."""

import json
import os
import sys

from django.core.management import execute_from_command_line

from controlplane.common.environment import EnvironmentProblem

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")
    try:
        execute_from_command_line(sys.argv)
    except EnvironmentProblem as problem:
        if sys.argv[1:2] == ["doctor"] and "--json" in sys.argv:
            finding = {"check": "settings", "state": "fail", "found": str(problem), "advice": "Correct this setting."}
            print(json.dumps({"ok": False, "findings": [finding]}))
            sys.exit(1)
        sys.exit(f"error: {problem}")
