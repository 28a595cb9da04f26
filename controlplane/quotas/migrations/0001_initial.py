from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("teams", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Quota",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("indexers", models.PositiveIntegerField(null=True)),
                ("rows_a_day", models.PositiveBigIntegerField(null=True)),
                ("stored_bytes", models.PositiveBigIntegerField(null=True)),
                ("sql_seconds", models.PositiveIntegerField(null=True)),
                ("sql_mebibytes", models.PositiveIntegerField(null=True)),
                ("sql_rows", models.PositiveIntegerField(null=True)),
                ("sql_queries", models.PositiveIntegerField(null=True)),
                (
                    "used_up",
                    models.CharField(
                        blank=True,
                        choices=[("", "nothing"), ("rows_a_day", "rows a day"), ("stored_bytes", "stored bytes")],
                        default="",
                        max_length=12,
                    ),
                ),
                ("used_up_since", models.DateTimeField(null=True)),
                ("team", models.OneToOneField(on_delete=models.CASCADE, related_name="quota", to="teams.team")),
            ],
        ),
    ]
