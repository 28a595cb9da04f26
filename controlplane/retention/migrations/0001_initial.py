from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("datasources", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="RuleChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("rules", models.JSONField()),
                ("author", models.CharField(max_length=150)),
                ("comment", models.CharField(blank=True, max_length=500)),
                ("address", models.CharField(blank=True, max_length=45)),
                ("created_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        null=True, on_delete=models.CASCADE, related_name="rule_changes", to="datasources.datasource"
                    ),
                ),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.CreateModel(
            name="RuleSet",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("rules", models.JSONField()),
                ("updated_at", models.DateTimeField()),
                (
                    "datasource",
                    models.OneToOneField(
                        null=True, on_delete=models.CASCADE, related_name="rule_set", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        models.Value(1), condition=models.Q(("datasource", None)), name="the_site_has_one_set_of_rules"
                    )
                ]
            },
        ),
    ]
