"""What Spark applications import: the data sources ``kafka-sharegroup`` and ``headgate``. Needs no control plane.

``register(spark)`` makes ``spark.readStream.format("kafka-sharegroup")`` known to a session;
``read(spark, datasource, interval)`` reads what a datasource of Headgate's holds.
"""

from headgate.errors import HeadgateError
from headgate.publishes.batch import read
from headgate.registration import metrics, metrics_in, register

__all__ = ["HeadgateError", "metrics", "metrics_in", "read", "register"]
