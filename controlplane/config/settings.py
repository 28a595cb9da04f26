"""Django settings: one file, from the environment (``HEADGATE_*``, ``DATABASE_URL``)."""

import sys
from datetime import timedelta
from pathlib import Path

from csp.constants import NONCE, NONE, SELF

from controlplane.common.applications import STOP_TIMEOUT_S, host_name
from controlplane.config import env, postgresql
from controlplane.config.mail_settings import mail_settings, public_url
from controlplane.config.oidc_settings import oidc_provider

BASE_DIR = Path(__file__).resolve().parents[2]
DEBUG = env.flag("HEADGATE_DEBUG")
SECRET_KEY = env.secret_key(DEBUG)
SECRET_KEY_FALLBACKS = env.text("HEADGATE_OLD_SECRET_KEYS", "").split()
ALLOWED_HOSTS = env.words("HEADGATE_ALLOWED_HOSTS", "127.0.0.1,localhost")
CSRF_TRUSTED_ORIGINS = env.words("HEADGATE_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "django_htmx",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "controlplane.teams",
    "controlplane.connections",
    "controlplane.login",
    "controlplane.datasources",
    "controlplane.sources",
    "controlplane.segments",
    "controlplane.quarantine",
    "controlplane.publishing",
    "controlplane.quotas",
    "controlplane.lag",
    "controlplane.feed",
    "controlplane.tasks",
    "controlplane.compaction",
    "controlplane.supervisors",
    "controlplane.retention",
    "controlplane.loading",
    "controlplane.alerts",
    "controlplane.metrics",
    "controlplane.catalog",
    "controlplane.query",
    "controlplane.operations",
    "controlplane.api",
    "frontend",
]

MIDDLEWARE = [
    "controlplane.common.client_address.ClientAddress",
    "controlplane.config.request_measures.MeasuredRequests",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "controlplane.config.middleware.NothingLargeFromStrangers",
    "controlplane.config.middleware.RefusalsInTheTrail",
    "django.contrib.messages.middleware.MessageMiddleware",
    "controlplane.config.middleware.SecondFactorFirst",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "controlplane.config.urls"
CSRF_FAILURE_VIEW = "controlplane.config.error_pages.form_expired"
ASGI_APPLICATION = "controlplane.config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "frontend.context.navigation",
            ],
        },
    },
]

DATABASES = {"default": postgresql.metadata_store("DATABASE_URL")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "teams.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_RESET_TIMEOUT = 3600  # seconds
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

# allauth does the steps between a password and a session. Nobody signs up by themselves, and limits are our own.
ACCOUNT_ADAPTER = "controlplane.login.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False
MFA_REAUTHENTICATION_REQUIRED = False  # pages ask by themselves: controlplane.login.reauthentication
MFA_ADAPTER = "controlplane.login.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_TOLERANCE = 1  # codes of the half minute before and after are taken, each once
MFA_TOTP_ISSUER = "Headgate"
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_FORMS = {
    "authenticate": "controlplane.login.codes.CodeForm",
    "authenticate_webauthn": "controlplane.login.codes.PasskeyForm",
    "login_webauthn": "controlplane.login.codes.PasskeyLoginForm",
}
MFA_RECOVERY_CODE_DIGITS = 10
SOCIALACCOUNT_ADAPTER = "controlplane.login.adapters.ProviderAdapter"
# Who must have a second factor.
REQUIRE_SECOND_FACTOR = env.choice("HEADGATE_REQUIRE_SECOND_FACTOR", "none", "admins", "all")
# The provider that people may log in by; None for none.
OIDC = oidc_provider()

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = None  # WhiteNoise serves the files where they are: nothing to collect
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# Plain http is for a loopback stack only.
INSECURE_COOKIES = env.flag("HEADGATE_INSECURE_COOKIES")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not INSECURE_COOKIES
SECURE_SSL_REDIRECT = env.flag("HEADGATE_SSL_REDIRECT", not INSECURE_COOKIES)
SECURE_REDIRECT_EXEMPT = [r"^internal/", r"^healthz$", r"^readyz$", r"^metrics(/|$)"]
SECURE_HSTS_SECONDS = 0 if INSECURE_COOKIES else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = not INSECURE_COOKIES
# How many proxies stand in front, one behind the other: what they add to a request's headers is believed.
PROXIES = env.number("HEADGATE_BEHIND_PROXY", 0, least=0)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PROXIES else None
SESSION_COOKIE_HTTPONLY = True
SESSION_ENGINE = "controlplane.login.sessions"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "style-src-attr": ["'unsafe-inline'"],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    },
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024 * 1024

# Where people reach the site: what mails link to. Without it a mail that no request asked for has no links.
PUBLIC_URL = public_url(env.text("HEADGATE_PUBLIC_URL", ""))
globals().update(mail_settings(env.text("HEADGATE_EMAIL_URL", "")))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("HEADGATE_EMAIL_FROM", "headgate@localhost")

REDIS_URL = env.text("HEADGATE_REDIS_URL", "redis://127.0.0.1:6379/0")
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "controlplane.api.authentication.TokenAuthentication",
        "controlplane.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "controlplane.api.problems.exception_handler",
    "DEFAULT_THROTTLE_RATES": {"login": "20/min"},
    "NUM_PROXIES": PROXIES,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Headgate",
    "DESCRIPTION": "Control plane for streaming ingestion from Apache Kafka into Parquet segments.",
    "VERSION": "0.1.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "AlertKindEnum": "controlplane.api.v1.serializers.alerts.KIND_CHOICES",
        "BatchTypeEnum": ["index_parallel", "index"],
        "ConnectionKindEnum": "controlplane.connections.models.Connection.Kinds",
        "ConnectionUserEnum": "controlplane.api.v1.serializers.connections.USERS",
        "FactorKindEnum": "controlplane.api.v1.serializers.account.KINDS",
        "HealthKindEnum": "controlplane.api.v1.serializers.totals.HEALTH_KINDS",
        "InTypeMatchValueTypeEnum": ["STRING", "LONG"],
        "MatchValueTypeEnum": ["STRING", "LONG", "DOUBLE", "FLOAT"],
        "PositionEnum": ["earliest", "latest"],
        "QuarantineStateEnum": "controlplane.quarantine.models.QuarantinedRecord.State",
        "ReceiverKindEnum": "controlplane.alerts.models.Receiver.Kinds",
        "RoleEnum": "controlplane.teams.roles.Role",
        "StateEnum": "controlplane.supervisors.states.State",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
KNOX_TOKEN_MODEL = "teams.ApiToken"  # noqa: S105
REST_KNOX = {"AUTH_HEADER_PREFIX": "Bearer", "TOKEN_TTL": timedelta(days=30), "AUTO_REFRESH": False}
MIGRATION_MODULES = {"knox": None}

CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_TIME_LIMIT = 300
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 600}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT = "controlplane.config.broker_connection:Transport"
CELERY_DB_REUSE_MAX = sys.maxsize  # it leaves the connection alone, which is looked after in config/celery.py
# expires: a schedule that was missed while no worker ran is not made up for.
CELERY_BEAT_SCHEDULE = {
    name: {"task": task, "schedule": seconds, "options": {"expires": max(seconds, 5)}}
    for name, task, seconds in (
        ("watch tasks", "controlplane.tasks.tasks.watch", 2.0),
        ("run supervisors", "controlplane.supervisors.tasks.run_all", 2.0),
        # The round over all supervisors sends these as soon as they have something to do.
        ("iterate supervisors", "controlplane.supervisors.tasks.iterate", 15.0),
        ("import dead letters", "controlplane.supervisors.tasks.import_dead_letters", 15.0),
        ("go on with rewinds", "controlplane.supervisors.tasks.rewind", 15.0),
        ("look at topics that nobody reads", "controlplane.supervisors.tasks.look_at_waiting", 10.0),
        ("observe when unread records expire", "controlplane.supervisors.tasks.observe_unread", 60.0),
        ("drop old samples of lag", "controlplane.lag.tasks.drop_old_lag", 60.0),
        ("drop old events", "controlplane.sources.tasks.drop_old_events", 3600.0),
        ("fold settled ranges", "controlplane.publishing.tasks.fold", 5.0),
        ("fold settled ranges everywhere", "controlplane.publishing.tasks.fold_everywhere", 120.0),
        ("fold the sums of causes", "controlplane.quarantine.tasks.fold_causes", 60.0),
        ("sum up days of intervals", "controlplane.segments.tasks.sum_up_days", 10.0),
        ("repair holes", "controlplane.supervisors.tasks.repair", float(env.number("HEADGATE_REPAIR_PERIOD", 15))),
        ("compact segments", "controlplane.compaction.tasks.round", 5.0),
        ("drop old compaction jobs", "controlplane.compaction.tasks.drop_old", 3600.0),
        ("make receipt partitions", "controlplane.publishing.tasks.make_receipt_partitions", 3600.0),
        ("look at alert rules", "controlplane.alerts.tasks.evaluate", 10.0),
        ("send alerts", "controlplane.alerts.tasks.send", 5.0),
        ("drop old alerts", "controlplane.alerts.tasks.drop_old", 3600.0),
        ("drop sessions that are over", "controlplane.login.tasks.drop_over", 3600.0),
        ("drop old drafts", "controlplane.loading.tasks.drop_old_drafts", 3600.0),
        ("purge the quarantine", "controlplane.quarantine.tasks.purge_quarantine", 3600.0),
        ("apply retention rules", "controlplane.retention.tasks.apply_rules", 60.0),
        ("clear deleted datasources", "controlplane.retention.tasks.clear", 15.0),
        ("delete unused segments", "controlplane.retention.tasks.kill", 300.0),
        ("sum up records of ended tasks", "controlplane.metrics.tasks.sum_up_records", 600.0),
        ("add up what teams use", "controlplane.metrics.tasks.fold_usage", 60.0),
        ("drop old snapshots", "controlplane.catalog.tasks.expire", 300.0),
        ("clean up orphans", "controlplane.segments.tasks.clean_up_orphans", 3600.0),
    )
}

# Where things are.
SCHEMA_FOLDER = env.text("HEADGATE_SCHEMA_FOLDER", "")
LOCAL_INPUT_FOLDERS = env.folders("HEADGATE_LOCAL_INPUT_FOLDERS")
INPUT_LOCATIONS = env.object_locations("HEADGATE_INPUT_LOCATIONS")
KEY_FOLDER = env.text("HEADGATE_KEY_FOLDER", "")
# Whether each web process has a sampler that has loaded what it needs, and waits.
SAMPLER_READY = env.flag("HEADGATE_SAMPLER_READY", default=True)
DEEP_STORAGE = env.text("HEADGATE_DEEP_STORAGE", str(BASE_DIR / ".headgate" / "segments"))
# How old a file that no segment names must be to be deleted.
ORPHAN_GRACE = env.duration("HEADGATE_ORPHAN_GRACE", "PT24H")
# How long a reader may go on with the segments that were in use when it began: nothing deletes them before.
SNAPSHOT_LEASE = env.duration("HEADGATE_SNAPSHOT_LEASE", "PT1H")
# What one query in SQL may take.
SQL_TIMEOUT = env.duration("HEADGATE_SQL_TIMEOUT", "PT60S")
SQL_MEMORY_BYTES = env.number("HEADGATE_SQL_MEMORY_MEBIBYTES", 512, least=64) * 1024 * 1024
# How long the files of segments stay that were marked unused, and of those that compaction has replaced.
KILL_BUFFER_PERIOD = env.duration("HEADGATE_KILL_BUFFER_PERIOD", "P30D")
KILL_REPLACED_AFTER = env.duration("HEADGATE_KILL_REPLACED_AFTER", "P7D")
TASK_DIR = Path(env.text("HEADGATE_TASK_DIR", str(BASE_DIR / ".headgate" / "tasks")))
# What tells this host from others on which workers run.
HOST_NAME = env.word("HEADGATE_HOST_NAME", host_name())
DEFAULT_BOOTSTRAP = env.text("HEADGATE_DEFAULT_BOOTSTRAP", "")
SPARK_MASTER = env.spark_master()
# Where Kubernetes puts what a pod's own service account may show to the API server.
KUBERNETES_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
HADOOP_CONF_DIR = env.hadoop_conf_dir(SPARK_MASTER)
SPARK_MASTER_WEB = env.spark_master_web(SPARK_MASTER)
SPARK_SECRET = env.spark_secret(SPARK_MASTER)
# Whether executors are sent their Python and the code, or have both installed.
SPARK_PYTHON = env.choice("HEADGATE_SPARK_PYTHON", "shipped", "installed")
# Where drivers run: beside the worker that starts them, or on the cluster.
SPARK_DEPLOY_MODE = env.deploy_mode(SPARK_MASTER)
# Where the cluster's machines find what the worker has packed for drivers: a folder that they share, or a web server's.
SPARK_SHIPPED_URL = env.text("HEADGATE_SPARK_SHIPPED_URL", f"file:{TASK_DIR.absolute()}/.shipped").rstrip("/")
SPARK_PACKAGES = env.words("HEADGATE_SPARK_PACKAGES")
INTERNAL_URL = env.internal_url(SPARK_MASTER)
SPARK_SLOTS = env.number("HEADGATE_SPARK_SLOTS", 32)
# How many indexers run at once, of all tasks; 0 for no limit.
WORKER_CAPACITY = env.number("HEADGATE_WORKER_CAPACITY", 0)
# How much the processes of what reads old records yield to the others; 0: they do not.
BACKFILL_NICENESS = env.number("HEADGATE_BACKFILL_NICENESS", 10, least=0)
# How many applications wait on each host for a task that reads a stream; only with the master "local".
SPARE_APPLICATIONS = env.number("HEADGATE_SPARE_APPLICATIONS", 0, least=0)
# How many topics a supervisor's topicPattern may match.
TOPICS_PER_SUPERVISOR = env.number("HEADGATE_TOPICS_PER_SUPERVISOR", 50)
# Whether small segments are merged where nobody has said otherwise; and what share of the pool, or of the machine's
# cores where that has no limit, compaction may take.
AUTO_COMPACTION = env.flag("HEADGATE_AUTO_COMPACTION", default=True)
COMPACTION_PERCENT = env.number("HEADGATE_COMPACTION_PERCENT", 25, least=1)
# Up to this size an interval is partitioned by a job of its application, a larger one by a task of its own.
COMPACTION_JOB_BYTES = env.number("HEADGATE_COMPACTION_JOB_MEBIBYTES", 128, least=0) * 1024 * 1024
# How long its application waits for more work before it ends.
COMPACTION_IDLE = env.duration("HEADGATE_COMPACTION_IDLE", "PT60S")
# How long a supervisor's next task waits for a slot before the one that still reads must make it.
HANDOVER_PATIENCE = env.duration("HEADGATE_HANDOVER_PATIENCE", "PT20S")
# A task whose heartbeat is older than this is lost.
TASK_HEARTBEAT_TIMEOUT = timedelta(seconds=env.number("HEADGATE_TASK_HEARTBEAT_TIMEOUT", 30))
# The most that a supervisor waits before it starts another task after failures in a row.
RESTART_LONGEST_DELAY = timedelta(seconds=env.number("HEADGATE_RESTART_LONGEST_DELAY", 60))
# How often an indexer, and a source's repair, may fail in a row for one reason.
INDEXER_MOST_FAILURES = env.number("HEADGATE_INDEXER_MOST_FAILURES", 15, least=1)
REPAIR_MOST_FAILURES = env.number("HEADGATE_REPAIR_MOST_FAILURES", 10, least=1)
# Druid's druid.supervisor.*: how many iterations or tasks in a row make it unhealthy, and healthy again.
SUPERVISOR_UNHEALTHINESS_THRESHOLD = env.number("HEADGATE_SUPERVISOR_UNHEALTHINESS_THRESHOLD", 3, least=1)
SUPERVISOR_HEALTHINESS_THRESHOLD = env.number("HEADGATE_SUPERVISOR_HEALTHINESS_THRESHOLD", 3, least=1)
SUPERVISOR_TASK_UNHEALTHINESS_THRESHOLD = env.number("HEADGATE_SUPERVISOR_TASK_UNHEALTHINESS_THRESHOLD", 3, least=1)
SUPERVISOR_TASK_HEALTHINESS_THRESHOLD = env.number("HEADGATE_SUPERVISOR_TASK_HEALTHINESS_THRESHOLD", 1, least=1)
SUPERVISOR_STORE_STACK_TRACE = env.flag("HEADGATE_SUPERVISOR_STORE_STACK_TRACE")
SUPERVISOR_MAX_STORED_EXCEPTION_EVENTS = env.number("HEADGATE_SUPERVISOR_MAX_STORED_EXCEPTION_EVENTS", 10, least=1)
# How large a task's log may become; of a larger one the last half is kept.
TASK_LOG_BYTES = env.number("HEADGATE_TASK_LOG_MEBIBYTES", 16, least=1) * 1024 * 1024
# What a task's application may take to end in order when the stack or its machine is stopped.
STOP_TIMEOUT = env.number("HEADGATE_STOP_TIMEOUT", STOP_TIMEOUT_S, least=1)
# Whether a worker that ends ends the applications that were started beside it, for where nobody outlives it.
WORKER_STOPS_TASKS = env.flag("HEADGATE_WORKER_STOPS_TASKS")
TASK_START_TIMEOUT = timedelta(seconds=env.number("HEADGATE_TASK_START_TIMEOUT", 180))
REPAIR_MARGIN = timedelta(seconds=env.number("HEADGATE_REPAIR_MARGIN", 30))
# How long the coarsest samples of lag are kept.
LAG_RETENTION = env.duration("HEADGATE_LAG_RETENTION", "P30D")
# A supervisor's page is red when Kafka may delete unread records within this time.
RETENTION_WARNING = env.duration("HEADGATE_RETENTION_WARNING", "PT6H")
# How long events stay that say how ingestion went, not what became of records.
EVENT_RETENTION = env.duration("HEADGATE_EVENT_RETENTION", "P90D")
# What is older is purged from the quarantine, and of each datasource the oldest payloads beyond this size.
QUARANTINE_RETENTION = env.duration("HEADGATE_QUARANTINE_RETENTION", "P90D")
# How many records of files that can't be read a batch task puts there at most.
BATCH_QUARANTINED = env.number("HEADGATE_BATCH_QUARANTINED", 10_000, least=0)
QUARANTINE_BYTES = env.number("HEADGATE_QUARANTINE_MEBIBYTES", 1024) * 1024 * 1024
# A test's file that makes one datasource's applications fail at named places. Never set in production.
FAILPOINTS_FILE = env.text("HEADGATE_FAILPOINTS", "")

# What Prometheus is told: by web to who shows this token, or a REST token for its teams; by worker and beat on a port.
METRICS = env.flag("HEADGATE_METRICS", default=True)
METRICS_TOKEN = env.long_secret("HEADGATE_METRICS_TOKEN")
METRICS_PORT = env.metrics_port(METRICS_TOKEN)

# What a spec may make Headgate connect to, and how.
ADDRESS_POLICY = env.address_policy(
    allowed=env.words("HEADGATE_ALLOWED_NETWORKS", ""),
    denied=env.words("HEADGATE_DENIED_NETWORKS", ""),
    ports=env.words("HEADGATE_ALLOWED_PORTS", "80,443,1024-65535"),
)
ALLOW_INSECURE_KAFKA = env.flag("HEADGATE_ALLOW_INSECURE_KAFKA")
SECRET_PREFIX = env.prefix("HEADGATE_SECRET_PREFIX", "SPEC_SECRET_")  # after all other settings

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "filters": {"repeats": {"()": "controlplane.common.log_repeats.Repeats"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["repeats"]}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {"django.server": {"level": "WARNING"}, "httpx2": {"level": "WARNING"}},
}
