from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('segments', '0015_task_events'),
    ]

    operations = [
        migrations.AlterField(
            model_name='sourceevent',
            name='kind',
            field=models.CharField(
                choices=[
                    ('topic_recreated', 'The topic was deleted and made again'),
                    ('gap', 'Retention removed records before they were read'),
                    ('repaired', 'Records that the broker had archived were read again'),
                    ('offset_reset', 'A stored offset was reset'),
                    ('partitions_added', 'Partitions were added to the topic'),
                    ('purged', 'Quarantined records were purged by a rule'),
                    ('early_duplicate', 'A record delivered for the first time was settled already'),
                    ('task_failed', 'A task failed'),
                    ('restarted', 'An indexer was started again'),
                    ('quarantined', 'Records were quarantined'),
                    ('refused', "A publish was refused for a record's sake"),
                    ('failing', 'Something fails over and over'),
                ],
                max_length=20,
            ),
        ),
    ]
