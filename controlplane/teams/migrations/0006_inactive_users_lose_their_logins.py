from django.db import migrations

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
    dependencies = [("teams", "0005_invitations")]

    operations = [migrations.RunSQL(_END, _NO_END)]
