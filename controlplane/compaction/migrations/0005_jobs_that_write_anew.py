from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("compaction", "0004_rewrites")]

    operations = [
        migrations.AddField("job", "anew", models.JSONField(null=True)),
        migrations.AddField("job", "partitioned_by", models.TextField(blank=True, db_default="", default="")),
    ]
