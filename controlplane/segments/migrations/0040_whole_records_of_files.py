from django.db import migrations, models

# What said so until now was the end of the error alone.
MARK_CUT = r"""
    UPDATE segments_quarantinedrecord SET cut = true
    WHERE source_id IS NULL AND error ~ '\(Only the first [0-9,]+ of its [0-9,]+ bytes are kept\.\)$'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('segments', '0039_quarantine_of_files'),
    ]

    operations = [
        migrations.AddField(
            model_name='quarantinedrecord',
            name='cut',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='quarantinedrecord',
            name='file_header',
            field=models.BinaryField(db_default=b'', default=b''),
        ),
        migrations.RunSQL(MARK_CUT, migrations.RunSQL.noop),
    ]
