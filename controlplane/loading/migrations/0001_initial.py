from uuid import uuid4

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("supervisors", "0001_initial"),
        ("teams", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Draft",
            fields=[
                ("id", models.UUIDField(default=uuid4, editable=False, primary_key=True, serialize=False)),
                ("base_version", models.IntegerField(null=True)),
                ("document", models.JSONField(default=dict)),
                ("secrets", models.TextField(blank=True)),
                ("step", models.CharField(db_default="", default="", max_length=20)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "owner",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="drafts", to=settings.AUTH_USER_MODEL),
                ),
                (
                    "supervisor",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="drafts", to="supervisors.supervisor"
                    ),
                ),
                ("team", models.ForeignKey(on_delete=models.CASCADE, related_name="drafts", to="teams.team")),
            ],
            options={
                "ordering": ["-updated_at"],
                "indexes": [models.Index(fields=["owner", "-updated_at"], name="draft_by_owner")],
            },
        )
    ]
