
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models



class Migration(migrations.Migration):
    initial = True

    dependencies = [("datasources", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Feed",
            fields=[
                (
                    "datasource",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="feed",
                        serialize=False,
                        to="datasources.datasource",
                    ),
                ),
                ("latest", models.BigIntegerField(default=0)),
                ("numbered_until", models.DateTimeField(null=True)),
                ("numbered_id", models.UUIDField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="FeedEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.BigIntegerField()),
                ("publish_id", models.UUIDField()),
                ("segment_ids", ArrayField(base_field=models.UUIDField(), size=None)),
                ("published_at", models.DateTimeField()),
                (
                    "datasource",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="feed_entries", to="datasources.datasource"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("datasource", "number"), name="a_publish_number_is_given_once"),
                    models.UniqueConstraint(fields=("datasource", "publish_id"), name="a_publish_has_one_number"),
                ]
            },
        ),
    ]
