"""The environment of the processes of the data plane that the control plane starts."""

from __future__ import annotations

import os

_NAMES = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "TZ",
        "USER",
        "LD_LIBRARY_PATH",
        "PYSPARK_PYTHON",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
    }
)
# What Hadoop's library needs for hdfs://.
_HADOOP = frozenset({"ARROW_LIBHDFS_DIR", "CLASSPATH", "HADOOP_HOME"})
# The last three: credentials, region and endpoint of deep storage, as their vendors' tools name them.
_PREFIXES = ("LC_", "SPARK_", "JAVA_", "AWS_", "AZURE_", "GOOGLE_")


def passed_on() -> dict[str, str]:
    """What of this process's environment they get. The control plane's own secrets are not in it."""
    return {k: v for k, v in os.environ.items() if k in _NAMES or k in _HADOOP or k.startswith(_PREFIXES)}
