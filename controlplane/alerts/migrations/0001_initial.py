from uuid import uuid4

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("datasources", "0001_initial"),
        ("teams", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("rule_name", models.CharField(max_length=100)),
                ("kind", models.CharField(max_length=20)),
                (
                    "about",
                    models.CharField(
                        choices=[("supervisor", "Supervisor"), ("datasource", "Datasource")], max_length=10
                    ),
                ),
                ("subject", models.CharField(max_length=200)),
                ("datasource", models.CharField(max_length=200)),
                ("episode", models.BigIntegerField()),
                (
                    "transition",
                    models.CharField(
                        choices=[("fired", "fired"), ("ended", "ended"), ("complete", "complete")], max_length=10
                    ),
                ),
                ("at", models.DateTimeField()),
                ("since", models.DateTimeField()),
                ("value", models.FloatField(null=True)),
                ("cause", models.TextField(blank=True)),
                ("action", models.TextField(blank=True)),
                ("silenced", models.CharField(blank=True, max_length=500)),
                ("interval_start", models.DateTimeField(null=True)),
                ("interval_end", models.DateTimeField(null=True)),
                ("team", models.ForeignKey(on_delete=models.CASCADE, related_name="alert_events", to="teams.team")),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["team", "-id"], name="alert_event_by_team"),
                    models.Index(fields=["at"], name="alert_event_by_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Receiver",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                (
                    "kind",
                    models.CharField(
                        choices=[("email", "E-mail"), ("webhook", "Webhook"), ("slack", "Slack")], max_length=10
                    ),
                ),
                ("addresses", models.JSONField(default=list)),
                ("shown", models.CharField(blank=True, max_length=300)),
                ("secrets", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("failures", models.IntegerField(default=0)),
                ("last_error", models.CharField(blank=True, max_length=500)),
                ("failing_since", models.DateTimeField(null=True)),
                ("next_try_at", models.DateTimeField(null=True)),
                ("sent_at", models.DateTimeField(null=True)),
                ("leased_until", models.DateTimeField(null=True)),
                ("tested_at", models.DateTimeField(null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("team", models.ForeignKey(on_delete=models.CASCADE, related_name="alert_receivers", to="teams.team")),
            ],
            options={
                "ordering": ["team__name", "name"],
                "constraints": [models.UniqueConstraint(fields=("team", "name"), name="one_alert_receiver_per_name")],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid4, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("sent", "sent"),
                            ("refused", "refused"),
                            ("given_up", "given up"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("attempts", models.IntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, max_length=500)),
                ("event", models.ForeignKey(on_delete=models.CASCADE, related_name="deliveries", to="alerts.event")),
                (
                    "receiver",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="deliveries", to="alerts.receiver"),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["receiver", "next_at"],
                        name="alert_delivery_waiting",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("event", "receiver"), name="a_receiver_is_told_once")],
            },
        ),
        migrations.CreateModel(
            name="Rule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("kind", models.CharField(max_length=20)),
                ("params", models.JSONField(default=dict)),
                ("hold_s", models.IntegerField(default=0)),
                ("clear_s", models.IntegerField(default=0)),
                ("enabled", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                ("evaluated_at", models.DateTimeField(null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "datasource",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="alert_rules", to="datasources.datasource"
                    ),
                ),
                ("receivers", models.ManyToManyField(related_name="rules", to="alerts.receiver")),
                ("team", models.ForeignKey(on_delete=models.CASCADE, related_name="alert_rules", to="teams.team")),
            ],
            options={
                "ordering": ["team__name", "name"],
                "constraints": [models.UniqueConstraint(fields=("team", "name"), name="one_alert_rule_per_name")],
            },
        ),
        migrations.AddField(
            model_name="event",
            name="rule",
            field=models.ForeignKey(null=True, on_delete=models.SET_NULL, related_name="events", to="alerts.rule"),
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "about",
                    models.CharField(
                        choices=[("supervisor", "Supervisor"), ("datasource", "Datasource")], max_length=10
                    ),
                ),
                ("subject", models.CharField(max_length=200)),
                ("datasource", models.CharField(max_length=200)),
                (
                    "state",
                    models.CharField(
                        choices=[("ok", "ok"), ("pending", "pending"), ("firing", "firing"), ("unknown", "unknown")],
                        max_length=10,
                    ),
                ),
                ("since", models.DateTimeField()),
                ("bad_since", models.DateTimeField(null=True)),
                ("good_since", models.DateTimeField(null=True)),
                ("value", models.FloatField(null=True)),
                ("cause", models.TextField(blank=True)),
                ("action", models.TextField(blank=True)),
                ("episode", models.BigIntegerField(default=0)),
                ("told", models.BooleanField(default=False)),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("acknowledged_by", models.CharField(blank=True, max_length=150)),
                ("mark", models.DateTimeField(null=True)),
                ("team", models.ForeignKey(on_delete=models.CASCADE, related_name="alerts", to="teams.team")),
                ("fired", models.ForeignKey(null=True, on_delete=models.SET_NULL, related_name="+", to="alerts.event")),
                ("rule", models.ForeignKey(on_delete=models.CASCADE, related_name="alerts", to="alerts.rule")),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("state", "firing")), fields=["team"], name="alert_firing")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("rule", "about", "subject"), name="one_alert_per_subject")
                ],
            },
        ),
        migrations.CreateModel(
            name="Silence",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.CharField(max_length=500)),
                ("begins_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("created_by", models.CharField(max_length=150)),
                ("ended_by", models.CharField(blank=True, max_length=150)),
                (
                    "datasource",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="alert_silences", to="datasources.datasource"
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(null=True, on_delete=models.CASCADE, related_name="silences", to="alerts.rule"),
                ),
                ("team", models.ForeignKey(on_delete=models.CASCADE, related_name="alert_silences", to="teams.team")),
            ],
            options={"indexes": [models.Index(fields=["ends_at"], name="alert_silence_by_end")]},
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.UniqueConstraint(
                fields=("rule", "about", "subject", "episode", "transition"), name="an_alert_says_it_once"
            ),
        ),
    ]
