from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("teams", "0001_initial"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "session_key",
                    models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name="session key"),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("seen_at", models.DateTimeField()),
                ("address", models.GenericIPAddressField(null=True)),
                ("browser", models.CharField(blank=True, max_length=300)),
                (
                    "user",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="sessions", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "db_table": "login_session",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "membership",
                    models.OneToOneField(
                        null=True, on_delete=models.CASCADE, related_name="grant", to="teams.membership"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="grants", to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("membership__isnull", True)), fields=("user",), name="one_grant_of_the_site"
                    )
                ]
            },
        ),
    ]
