from django.db import migrations, models


def forget_groups(apps, schema_editor):
    """Groups are read again from the records, with their figures, when they are asked for."""
    apps.get_model("evidence", "RunIndex").objects.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('evidence', '0002_discussion_and_request_groups'),
    ]

    operations = [
        migrations.AddField(
            model_name='requestgroup',
            name='figures',
            field=models.JSONField(default=dict),
        ),
        migrations.RunPython(forget_groups, migrations.RunPython.noop),
    ]
