"""What must be on the machine before anything starts: Python 3.11 and Java 17, or newer.

Standard library only, and runnable as a script before any package is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

PYTHON = (3, 11)
JAVA = 17
DEBIAN = "sudo apt-get install openjdk-17-jre-headless"
MACOS = "brew install openjdk@17"


def problem() -> str | None:
    """One sentence with what is missing and the command that installs it; None when all is there."""
    if sys.version_info < PYTHON:
        return f"Headgate needs Python 3.11 or newer, but this is {sys.version.split()[0]}."
    return java_problem()


def java_program() -> str | None:
    """The Java that Spark takes, too: JAVA_HOME's, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")


def java_problem() -> str | None:
    """One sentence with what is wrong with Java; None when it is 17 or newer."""
    chosen = " (chosen by JAVA_HOME)" if os.environ.get("JAVA_HOME") else ""
    advice = f"Install it with: {MACOS if sys.platform == 'darwin' else DEBIAN}"
    if chosen:
        advice += ", and unset JAVA_HOME or point it there"
    program = java_program()
    if program is None:
        return f"Headgate needs Java 17 or newer, but there is no java on the PATH. {advice}"
    version = java_version(program)
    if version is None:
        return f"Headgate needs Java 17 or newer, but {program}{chosen} does not run. {advice}"
    if version < JAVA:
        return f"Headgate needs Java 17 or newer, but {program}{chosen} is Java {version}. {advice}"
    return None


def java_version(program: str) -> int | None:
    """The major version that `java -version` tells; None when it does not run or says nothing."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(done.stderr + done.stdout) if done.returncode == 0 else None


def parse_version(text: str) -> int | None:
    """`version "17.0.15"` is 17, `version "1.8.0_392"` is 8."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if match is None:
        return None
    first, second = int(match[1]), int(match[2] or 0)
    return second if first == 1 else first


if __name__ == "__main__":
    sys.exit(problem())
