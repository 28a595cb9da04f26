"""What was called a writer is an indexer's fence: the table, and what refers to it, take the name. No row is touched."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('segments', '0016_refused_and_failing'),
        ('datasources', '0001_initial'),
    ]

    operations = [
        migrations.RenameModel(old_name='Writer', new_name='IndexerFence'),
        migrations.SeparateDatabaseAndState(
            # Renamed instead of built anew: that takes no time, however large the tables are.
            database_operations=[
                migrations.RunSQL(
                    'ALTER TABLE segments_indexerfence RENAME CONSTRAINT one_writer_per_indexer TO one_fence_per_indexer',
                    'ALTER TABLE segments_indexerfence RENAME CONSTRAINT one_fence_per_indexer TO one_writer_per_indexer',
                ),
                migrations.RunSQL(
                    'ALTER TABLE segments_publish RENAME COLUMN writer_id TO fence_id',
                    'ALTER TABLE segments_publish RENAME COLUMN fence_id TO writer_id',
                ),
                migrations.RunSQL(
                    'ALTER INDEX publish_by_writer RENAME TO publish_by_fence',
                    'ALTER INDEX publish_by_fence RENAME TO publish_by_writer',
                ),
            ],
            state_operations=[
                migrations.RemoveConstraint(model_name='indexerfence', name='one_writer_per_indexer'),
                migrations.AddConstraint(
                    model_name='indexerfence',
                    constraint=models.UniqueConstraint(fields=('task_id', 'number'), name='one_fence_per_indexer'),
                ),
                migrations.RemoveIndex(model_name='publish', name='publish_by_writer'),
                migrations.RenameField(model_name='publish', old_name='writer', new_name='fence'),
                migrations.AddIndex(
                    model_name='publish',
                    index=models.Index(fields=['fence', 'created_at'], name='publish_by_fence'),
                ),
            ],
        ),
        migrations.AlterField(
            model_name='indexerfence',
            name='datasource',
            field=models.ForeignKey(on_delete=models.deletion.CASCADE, related_name='fences', to='datasources.datasource'),
        ),
        migrations.AlterField(
            model_name='indexerfence',
            name='source',
            field=models.ForeignKey(null=True, on_delete=models.deletion.CASCADE, related_name='fences', to='segments.source'),
        ),
    ]
