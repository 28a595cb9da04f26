#!/bin/sh
# What a container does: the first word chooses, what follows is handed on. Anything else is run as a command.
set -eu

role=${1:-web}
case $role in
    web | worker | beat | migrate | manage | spark-master | spark-worker | driver | executor) [ $# -eq 0 ] || shift ;;
esac

case $role in
    web | worker | beat)
        # Prometheus finds each container by its address, and asks for it by that name.
        HEADGATE_ALLOWED_HOSTS="${HEADGATE_ALLOWED_HOSTS:-127.0.0.1,localhost},$(hostname -i | tr ' ' ',')"
        export HEADGATE_ALLOWED_HOSTS
        ;;
esac

case $role in
    web)
        # Django reads the proxy's headers itself, and only when HEADGATE_BEHIND_PROXY says that there is one.
        exec uvicorn controlplane.config.asgi:application --host 0.0.0.0 --port 8000 \
            --timeout-graceful-shutdown 10 --no-access-log --no-proxy-headers "$@"
        ;;
    worker)
        exec celery -A controlplane.config worker --pool prefork --concurrency 2 -l info -n "worker@${HEADGATE_HOST_NAME:-%h}" \
            --without-gossip --without-mingle --without-heartbeat "$@"
        ;;
    beat)
        # A container has it; on a machine without one, celery would call the missing folder a corrupted schedule.
        [ $# -gt 0 ] || mkdir -p /var/lib/headgate/beat
        exec celery -A controlplane.config beat -l info -s /var/lib/headgate/beat/schedule --pidfile= "$@"
        ;;
    migrate)
        # Arguments are those of ensure_login; without any, no login is made.
        python manage.py migrate --no-input
        [ $# -eq 0 ] || exec python manage.py ensure_login "$@"
        ;;
    manage)
        exec python manage.py "$@"
        ;;
    spark-master)
        exec spark-class org.apache.spark.deploy.master.Master --port 7077 --webui-port 8080 "$@"
        ;;
    spark-worker)
        exec spark-class org.apache.spark.deploy.worker.Worker --webui-port 8081 "$@"
        ;;
    driver)
        # Spark on Kubernetes starts its pods with these two words: see docs/reference/spark.md.
        exec spark-submit --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" --deploy-mode client "$@"
        ;;
    executor)
        jars=$(python -c 'import importlib.util as u; print(u.find_spec("pyspark").submodule_search_locations[0])')/jars
        # Each option of its Java is in a variable of its own.
        number=0
        while eval "option=\${SPARK_JAVA_OPT_$number-}" && [ -n "$option" ]; do
            set -- "$@" "$option"
            number=$((number + 1))
        done
        exec java "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
            -cp "$SPARK_CONF_DIR:${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$jars/*" \
            org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --driver-url "$SPARK_DRIVER_URL" \
            --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" \
            --hostname "$SPARK_EXECUTOR_POD_IP" --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
            --podName "$SPARK_EXECUTOR_POD_NAME"
        ;;
    *)
        exec "$@"
        ;;
esac
