from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("teams", "0001_initial"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="ConnectionRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("own_properties", models.BooleanField(default=True)),
                (
                    "team",
                    models.OneToOneField(on_delete=models.CASCADE, related_name="connection_rule", to="teams.team"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Connection",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=63)),
                (
                    "kind",
                    models.CharField(
                        choices=[("kafka", "Kafka"), ("schema_registry", "Schema registry")], max_length=20
                    ),
                ),
                ("description", models.CharField(blank=True, max_length=500)),
                ("properties", models.JSONField()),
                ("secrets", models.TextField(blank=True)),
                ("secret_names", models.JSONField(default=list)),
                ("version", models.IntegerField(default=1)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "changed_by",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("team", models.ForeignKey(on_delete=models.PROTECT, related_name="connections", to="teams.team")),
            ],
            options={
                "ordering": ["team__name", "name"],
                "constraints": [models.UniqueConstraint(fields=("team", "name"), name="one_connection_per_name")],
            },
        ),
    ]
