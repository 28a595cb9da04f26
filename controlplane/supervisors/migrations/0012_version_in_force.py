from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("supervisors", "0011_discovery_says_its_types")]

    operations = [migrations.AddField("supervisor", "in_force", models.IntegerField(null=True))]
