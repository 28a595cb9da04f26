from django.conf import settings
from django.contrib.auth.models import UserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import migrations, models
from django.utils import timezone

# Entries of the audit trail stay, whoever asks for what, and with SQL too.
_AUDIT = """
CREATE FUNCTION teams_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'entries of the audit trail are never changed or deleted'; END $$;
CREATE TRIGGER audit_entries_stay BEFORE UPDATE OR DELETE ON teams_auditentry
    FOR EACH ROW EXECUTE FUNCTION teams_refuse_change();
"""
_NO_AUDIT = """
DROP TRIGGER audit_entries_stay ON teams_auditentry;
DROP FUNCTION teams_refuse_change();
"""
# Whoever turns a user off, and however: querysets and SQL go past ``User.save``. Nor may a row that was read earlier
# be saved over the count: the sessions that it has ended would come back.
_END = """
CREATE FUNCTION teams_count_ends_of_logins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.logins_ended := greatest(NEW.logins_ended, OLD.logins_ended + (OLD.is_active AND NOT NEW.is_active)::int);
    RETURN NEW;
END $$;
CREATE TRIGGER ended_logins_stay_ended BEFORE UPDATE ON teams_user
    FOR EACH ROW EXECUTE FUNCTION teams_count_ends_of_logins();
CREATE FUNCTION teams_delete_tokens() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN DELETE FROM teams_apitoken WHERE user_id = NEW.id; RETURN NULL; END $$;
CREATE TRIGGER tokens_of_inactive_users_end AFTER UPDATE ON teams_user
    FOR EACH ROW WHEN (OLD.is_active AND NOT NEW.is_active) EXECUTE FUNCTION teams_delete_tokens();
"""
_NO_END = """
DROP TRIGGER tokens_of_inactive_users_end ON teams_user;
DROP FUNCTION teams_delete_tokens();
DROP TRIGGER ended_logins_stay_ended ON teams_user;
DROP FUNCTION teams_count_ends_of_logins();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
                ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. "
                        "Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                ("date_joined", models.DateTimeField(default=timezone.now, verbose_name="date joined")),
                ("logins_ended", models.PositiveIntegerField(default=0)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. "
                        "A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={"verbose_name": "user", "verbose_name_plural": "users", "abstract": False},
            managers=[("objects", UserManager())],
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("digest", models.CharField(max_length=128, primary_key=True, serialize=False)),
                ("token_key", models.CharField(db_index=True, max_length=25)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("expiry", models.DateTimeField(blank=True, null=True)),
                ("name", models.CharField(blank=True, max_length=100)),
                (
                    "scope",
                    models.CharField(
                        blank=True,
                        choices=[("read", "Read"), ("operate", "Operate"), ("admin", "Admin")],
                        max_length=10,
                    ),
                ),
                ("datasources", ArrayField(base_field=models.CharField(max_length=200), default=list, size=None)),
                ("last_used_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="auth_token_set", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("operator", "Operator"), ("admin", "Admin")],
                        default="viewer",
                        max_length=10,
                    ),
                ),
                ("since", models.DateTimeField(default=timezone.now, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="memberships", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PasswordLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField()),
                ("made_by", models.ForeignKey(on_delete=models.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=models.CASCADE, related_name="password_link", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Team",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        max_length=63,
                        unique=True,
                        validators=[
                            RegexValidator(
                                "^[a-z0-9][a-z0-9_-]{0,62}\\Z", "Use lower-case letters, digits, '-' and '_'."
                            )
                        ],
                    ),
                ),
                ("description", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                (
                    "members",
                    models.ManyToManyField(
                        related_name="teams", through="teams.Membership", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.AddField(
            model_name="membership",
            name="team",
            field=models.ForeignKey(on_delete=models.CASCADE, related_name="memberships", to="teams.team"),
        ),
        migrations.CreateModel(
            name="LinkInvitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("email", models.EmailField(max_length=254)),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("operator", "Operator"), ("admin", "Admin")], max_length=10
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("mailed", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "invited_by",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                ("team", models.ForeignKey(on_delete=models.CASCADE, related_name="link_invitations", to="teams.team")),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("team", "email"), name="one_link_per_address")]},
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("username", models.CharField(db_index=True, max_length=150)),
                (
                    "role",
                    models.CharField(
                        choices=[("viewer", "Viewer"), ("operator", "Operator"), ("admin", "Admin")], max_length=10
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "invited_by",
                    models.ForeignKey(
                        null=True, on_delete=models.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("team", models.ForeignKey(on_delete=models.CASCADE, related_name="invitations", to="teams.team")),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("team", "username"), name="one_invitation_per_name")]
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("username", models.CharField(blank=True, max_length=150)),
                ("address", models.GenericIPAddressField(null=True)),
                ("action", models.CharField(max_length=40)),
                ("target", models.CharField(max_length=20)),
                ("target_id", models.CharField(max_length=300)),
                ("token", models.CharField(blank=True, default="", max_length=130)),
                ("detail", models.JSONField(default=dict)),
                (
                    "team",
                    models.ForeignKey(
                        null=True, on_delete=models.PROTECT, related_name="audit_entries", to="teams.team"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["team", "-id"], name="audit_by_team"),
                    models.Index(fields=["target", "target_id", "-id"], name="audit_by_target"),
                ]
            },
        ),
        migrations.AddField(
            model_name="user",
            name="service_of",
            field=models.ForeignKey(
                null=True, on_delete=models.CASCADE, related_name="service_accounts", to="teams.team"
            ),
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(fields=("user", "team"), name="one_role_per_team"),
        ),
        migrations.CreateModel(
            name="AnsweredRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=200)),
                ("digest", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(default=0)),
                ("body", models.JSONField(null=True)),
                ("headers", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(db_index=True)),
                (
                    "user",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("user", "key"), name="one_answer_per_key")]},
        ),
        # Triggers, which Django's models can't have.
        migrations.RunSQL(_AUDIT, _NO_AUDIT),
        migrations.RunSQL(_END, _NO_END),
    ]
