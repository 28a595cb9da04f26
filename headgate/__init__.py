"""What Spark applications import: the data sources ``kafka-sharegroup`` and ``headgate``. Needs no control plane.

``register(spark)`` makes ``spark.readStream.format("kafka-sharegroup")`` known to a session;
``read(spark, datasource, interval)`` reads what a datasource of Headgate's holds. ``headgate.client`` asks a site over
REST.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.publishes.batch import read
    from headgate.registration import metrics, metrics_in, register

__all__ = ["HeadgateError", "metrics", "metrics_in", "read", "register"]
# Loaded when they are used: they load PySpark, which neither the client nor the command line needs.
_PLACES = {
    "metrics": "headgate.registration",
    "metrics_in": "headgate.registration",
    "read": "headgate.publishes.batch",
    "register": "headgate.registration",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
