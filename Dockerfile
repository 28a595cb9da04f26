# One image, several commands: web, worker, beat, migrate, spark-master, spark-worker (see docker/entrypoint.sh).
# It holds Java 17 and PySpark, so the Spark master and its workers are made from it too: driver and executors then have
# the same Python packages at the same place.

# By digest, so that it can't change unseen; how to take a newer one: docs/docker.md.
ARG PYTHON_IMAGE=python:3.11.15-slim-bookworm@sha256:d29f48a31a8b408ed19272ca1e7b10ebae13b240a27e862d3d4217c528e2e0c3

FROM ${PYTHON_IMAGE} AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
COPY requirements.txt /tmp/requirements.txt
RUN /opt/venv/bin/python -m pip install --use-pep517 --require-hashes -r /tmp/requirements.txt

FROM ${PYTHON_IMAGE}
# spark-class calls ps. The slim image leaves out the folder of manual pages, which Java's package wants to link into.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
COPY --from=packages /opt/venv /opt/venv

# New volumes take over the owner of the folder that they are mounted on.
RUN useradd --uid 10001 --user-group --home-dir /var/lib/headgate --no-create-home --shell /usr/sbin/nologin headgate \
    && for folder in . segments tasks beat spark; do \
        install -d -o headgate -g headgate -m 0750 "/var/lib/headgate/$folder" || exit 1; done

# PYTHONPATH is for the executors, which start in a folder of their own.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/opt/headgate \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYSPARK_PYTHON=/opt/venv/bin/python \
    SPARK_CONF_DIR=/etc/headgate/spark \
    DJANGO_SETTINGS_MODULE=controlplane.config.settings

WORKDIR /opt/headgate
COPY manage.py LICENSE NOTICE ./
COPY ingestion ingestion
COPY controlplane controlplane
COPY frontend frontend
COPY templates templates
COPY docker/spark-defaults.conf /etc/headgate/spark/spark-defaults.conf
COPY --chmod=0755 docker/entrypoint.sh /usr/local/bin/headgate
RUN python -m compileall -q .

USER headgate
EXPOSE 8000
ENTRYPOINT ["/usr/local/bin/headgate"]
CMD ["web"]
