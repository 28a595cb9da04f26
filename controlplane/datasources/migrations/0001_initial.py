import uuid

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("teams", "0001_initial"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="Datasource",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("deleted_by", models.CharField(blank=True, max_length=150)),
                ("clearing", models.BooleanField(db_default=False, default=False)),
                ("identity", models.UUIDField(default=uuid.uuid4)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("team", models.ForeignKey(on_delete=models.PROTECT, related_name="datasources", to="teams.team")),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.CreateModel(
            name="MaskedColumn",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("column", models.CharField(max_length=300)),
                ("role", models.CharField(choices=[("operator", "Operator"), ("admin", "Admin")], max_length=10)),
                (
                    "datasource",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="masked_columns", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "ordering": ["column"],
                "constraints": [
                    models.UniqueConstraint(fields=("datasource", "column"), name="a_column_is_masked_once"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["operator", "admin"])), name="masked_below_a_role"
                    ),
                ],
            },
        ),
    ]
