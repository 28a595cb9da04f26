"""Everything that can be sent or pressed, on which pages it stands, and what comes of it: the table that
``test_every_page`` compares with the pages and ``test_controls`` clicks through.

A control that stands on several pages has the same address on each, which the comparison shows; it is clicked on one.
"""

from __future__ import annotations

from tests.browser import (
    walks,
    walks_of_account,
    walks_of_alerts,
    walks_of_connections,
    walks_of_data,
    walks_of_drafts,
    walks_of_imports,
    walks_of_invitations,
    walks_of_people,
    walks_of_queries,
    walks_of_retention,
    walks_of_rewinds,
    walks_of_site,
    walks_of_teams,
)
from tests.browser.control_rows import question, row
from tests.browser.crawl import EVERYWHERE

TIMELINE = ("Earlier", "Zoom in", "Zoom out", "Later", "Whole", "Last hour", "Last day", "Last week", "Height of a bar")

CONNECTION, LOAD = "connections/<str:team>/<str:name>/", walks_of_drafts.LOAD
DS, SV, TASK = "datasources/<str:name>/", "supervisors/<str:supervisor_id>/", "tasks/<str:task_id>/"
SEGMENTS, INTERVALS, EVENTS, GUIDE = f"{DS}segments/", f"{DS}intervals/", f"{DS}events/", "-/styleguide/"
QUARANTINE, RECORD = f"{DS}quarantine/", f"{DS}quarantine/<int:number>/"
ASK, ASK_TASK = f"{SV}confirm/<str:action>/", f"{TASK}confirm/<str:action>/"
END_SESSION = "POST account/sessions/<str:session_id>/end/"
ANSWER = "POST teams/<str:name>/<str:action>/"
CHOOSE, ASKED = f"POST {DS}quarantine/confirm/", f"{DS}quarantine/confirm/"
BACK = f"{SV}spec/<int:number>/"
BACKFILLS, REWINDS = f"{SV}backfills/", f"{SV}rewinds/"
OF_BOTH = (SV, f"{SV}lag/", f"{SV}spec/", f"{SV}autoscaler/", BACKFILLS, REWINDS)
FIX, FIX_SUBMIT = f"{DS}quarantine/fix/", f"POST {DS}quarantine/fix/submit/"
SUBMIT_FIX, REPLAY_FIX = "Submit this spec and replay all of this cause…", "Replay all of this cause with this spec…"
# The stops look at these of the supervisor that runs alone.
TABS = (*OF_BOTH, f"{SV}share-group/", f"{BACK}confirm/")

SITE = [
    row("login/", walks.log_in, ("POST login/", "Log in")),
    row("login/", walks_of_account.log_in_with_a_passkey, ("POST login/passkey/", "Log in with a passkey")),
    row("account/passkey/", walks_of_account.add_a_passkey, ("POST account/passkey/", "Add the passkey")),
    row("login/again/", walks_of_account.say_again_who_it_is, ("POST login/again/", "Continue")),
    row("account/", walks_of_account.change_the_name, ("POST account/name/", "Save the name")),
    row(
        "account/",
        walks_of_account.change_the_address,
        ("POST account/email/", "Save the address"),
    ).and_on("account/email/<str:secret>/", ("POST account/email/<str:secret>/", "Confirm address")),
    row("account/", walks_of_account.change_the_password, ("POST account/password/", "Change the password")),
    row("account/", walks_of_account.make_and_revoke_a_token, ("POST account/tokens/", "Create token")),
    row(
        "account/",
        walks_of_account.end_sessions,
        (END_SESSION, "End the session"),
        (END_SESSION, "End all other sessions"),
    ),
    row("account/app/", walks_of_account.set_up_an_app, ("POST account/app/", "Set up")),
    row(EVERYWHERE, walks.choose_a_theme, ("", "Theme"), ("", "As the system"), ("", "Light"), ("", "Dark")),
    row(EVERYWHERE, walks_of_site.open_the_navigation, ("", "Show the navigation"), ("", "Close the navigation")),
    row(EVERYWHERE, walks_of_site.fold_the_navigation, ("", "Narrow navigation")),
    row(EVERYWHERE, walks_of_site.go_to_anything, ("", "Go to anything"), ("", "Go to anything…")),
    row(EVERYWHERE, walks_of_site.read_the_keys, ("", "Keys"), ("", "Close")),
    row(
        EVERYWHERE,
        walks_of_site.unfold_the_counters,
        *(("", label) for label in ("The other outcomes, all 0", "More counters, all 0", "What these mean")),
    ),
    row(EVERYWHERE, walks_of_site.copy_as_curl, ("", "REST"), ("", "Copy as curl")),
    row(EVERYWHERE, walks_of_site.choose_columns, ("", "View")),
    row(EVERYWHERE, walks_of_site.copy_an_id, ("", "Copy the whole id")),
    row(
        EVERYWHERE,
        walks_of_site.copy_a_line("PyIceberg", "load_catalog", '"flights"'),
        ("", "Copy the line for PyIceberg"),
    ),
    row(EVERYWHERE, walks_of_site.copy_a_line("DuckDB", "duckdb"), ("", "Copy the line for DuckDB")),
    row(EVERYWHERE, walks_of_site.copy_a_line("pandas", "read_parquet"), ("", "Copy the line for pandas")),
    row(EVERYWHERE, walks_of_site.copy_a_line("Spark", "spark"), ("", "Copy the line for Spark")),
    row(
        EVERYWHERE,
        walks_of_site.copy_a_line("Iceberg in Spark 4.1", "SparkCatalog", "`flights`"),
        ("", "Copy the line for Iceberg in Spark 4.1"),
    ),
    row(EVERYWHERE, walks_of_site.copy_the_properties_for_trino, ("", "Copy the properties for Trino")),
    row(GUIDE, walks_of_site.look_at_the_guide, *(("", label) for label in ("Ask…", "Cancel", "Close this message"))),
    row(EVERYWHERE, walks.log_out, ("", "owner"), ("POST logout/", "Log out")),
    row("audit/", walks.filter_the_audit_trail, ("GET audit/", "Filter")),
    row("teams/", walks_of_invitations.accept_an_invitation, (ANSWER, "Accept the invitation of beta")),
    row("teams/", walks_of_invitations.decline_an_invitation, (ANSWER, "Decline the invitation of beta")),
    row("teams/", walks_of_invitations.leave_a_team, (ANSWER, "Leave team alpha")),
    row("records/", walks.find_a_record, ("GET records/", "Find")),
    row(f"{DS}columns/", walks_of_data.find_a_column, (f"GET {DS}columns/", "Filter")),
    row(
        f"{DS}columns/profile/",
        walks_of_data.profile_a_column,
        (f"GET {DS}columns/profile/", "Profile column"),
    ),
    row(f"{DS}columns/", walks_of_data.mask_a_column, (f"POST {DS}columns/mask/", "Mask these columns")),
    row("quarantine/", walks_of_data.find_a_cause, ("GET quarantine/", "Filter")),
    row("tasks/", walks.filter_tasks, ("GET tasks/", "Filter")),
    row("supervisors/", walks.filter_supervisors, ("GET supervisors/", "Filter")),
    row("datasources/", walks.search_datasources, ("GET datasources/", "Filter")),
]
TEAM, ASK_TEAM = "teams/<str:name>/", "teams/<str:name>/delete/confirm/"
ONE_MEMBER, ACCOUNTS = f"{TEAM}members/<str:username>/", f"{TEAM}service-accounts/"
ONE_ACCOUNT = f"{ACCOUNTS}<str:account>/"
TEAMS = [
    row("teams/-/new/", walks_of_teams.make_a_team, ("POST teams/-/new/", "Create team")),
    question(
        (TEAM, f"{TEAM}limits/", f"{TEAM}about/"),
        f"{TEAM}delete/",
        "Delete team",
        "Delete team",
        walks_of_teams.delete_a_team,
    ),
    question(
        (TEAM, f"{TEAM}limits/", f"{TEAM}about/", f"{TEAM}tokens/", ACCOUNTS, ONE_ACCOUNT),
        f"{TEAM}<str:action>/",
        "Leave team",
        "Leave team",
        walks_of_invitations.leave_on_the_teams_page,
    ),
    row(f"{TEAM}leave/confirm/", walks_of_invitations.leave_on_a_page, (ANSWER, "Leave team"), ("", "Cancel")),
    row(f"{DS}transfer/", walks_of_teams.transfer_a_datasource, (f"POST {DS}transfer/", "Transfer it")),
    row(
        f"{CONNECTION}transfer/",
        walks_of_teams.transfer_a_connection,
        (f"POST {CONNECTION}transfer/", "Transfer connection"),
    ),
    row(f"{TEAM}about/", walks_of_teams.rename_a_team, (f"POST {TEAM}about/", "Save")),
    row(f"{TEAM}limits/", walks_of_teams.set_limits, (f"POST {TEAM}limits/", "Set the limits")),
    row(ASK_TEAM, walks_of_teams.delete_on_a_page, (f"POST {TEAM}delete/", "Delete team"), ("", "Cancel")),
]
TEAMS += [
    row(TEAM, walks_of_teams.invite_by_link, (f"POST {TEAM}invite-by-link/", "Create invitation link")),
    row(
        TEAM,
        walks_of_teams.invite_by_name,
        ("", "Invite an existing user by name"),
        (f"POST {TEAM}invite/", "Invite"),
    ),
    row(
        TEAM,
        walks_of_teams.withdraw,
        (f"POST {TEAM}links/<int:number>/withdraw/", "Withdraw the link of guest@example.org"),
        (f"POST {ONE_MEMBER}withdraw/", "Withdraw the invitation of guest"),
    ),
    row(
        TEAM,
        walks_of_teams.change_a_role,
        *((f"POST {ONE_MEMBER}role/", f"Change the role of {name}") for name in ("owner", "operator", "viewer")),
    ),
    row(f"{ONE_MEMBER}remove/", walks_of_teams.remove, (f"POST {ONE_MEMBER}remove/", "Remove"), ("", "Cancel")),
    row(
        f"{TEAM}tokens/",
        walks_of_teams.revoke_a_members_token,
        (f"POST {TEAM}tokens/<str:username>/<str:token_id>/", "Revoke the token laptop of viewer"),
    ),
    row(ACCOUNTS, walks_of_teams.make_an_account, (f"POST {ACCOUNTS}", "Create account")),
    row(
        ONE_ACCOUNT,
        walks_of_teams.make_and_revoke_a_token,
        (f"POST {ONE_ACCOUNT}", "Create token"),
        (f"POST {ONE_ACCOUNT}revoke/<str:token_id>/", "Revoke the token nightly"),
    ),
    row(
        f"{ONE_ACCOUNT}delete/",
        walks_of_teams.delete_an_account,
        (f"POST {ONE_ACCOUNT}delete/", "Delete"),
        ("", "Cancel"),
    ),
    row("join/<str:secret>/", walks_of_teams.make_a_login, ("POST join/<str:secret>/", "Create my login")),
    row("join/<str:secret>/", walks_of_teams.accept_a_link, ("POST join/<str:secret>/", "Accept as owner")),
]
RULE, RECEIVER = "alerts/rules/<int:number>/", "alerts/receivers/<int:number>/"
NEW_RULE, NEW_RECEIVER, NEW_SILENCE = "alerts/rules/-/new/", "alerts/receivers/-/new/", "alerts/silences/-/new/"
END_SILENCE = "POST alerts/silences/<int:number>/end/"
ACKNOWLEDGE = f"{DS}events/<int:number>/acknowledge/"
ALERTS = [
    row(ACKNOWLEDGE, walks_of_alerts.acknowledge_an_event, (f"POST {ACKNOWLEDGE}", "Acknowledge"), ("", "Cancel")),
    row("alerts/", walks_of_alerts.acknowledge, ("POST alerts/<int:number>/acknowledge/", "Acknowledge")),
    row(NEW_RULE, walks_of_alerts.make_a_rule, (f"POST {NEW_RULE}", "Create")),
    row(RULE, walks_of_alerts.change_a_rule, (f"POST {RULE}", "Save")),
    question((RULE,), f"{RULE}delete/", "Delete", "Delete", walks_of_alerts.delete_a_rule),
    row(
        f"{RULE}delete/",
        walks_of_alerts.delete_a_rule_on_a_page,
        (f"POST {RULE}delete/", "Delete"),
        ("", "Cancel"),
    ),
    row(NEW_RECEIVER, walks_of_alerts.make_a_receiver, (f"POST {NEW_RECEIVER}", "Create")),
    row(RECEIVER, walks_of_alerts.change_a_receiver, (f"POST {RECEIVER}", "Save")),
    question((RECEIVER,), f"{RECEIVER}delete/", "Delete", "Delete", walks_of_alerts.delete_a_receiver),
    row(
        f"{RECEIVER}delete/",
        walks_of_alerts.delete_a_receiver_on_a_page,
        (f"POST {RECEIVER}delete/", "Delete"),
        ("", "Cancel"),
    ),
    row("alerts/receivers/", walks_of_alerts.send_a_test, (f"POST {RECEIVER}test/", "Send a test")),
    row("alerts/history/", walks_of_alerts.filter_the_history, ("GET alerts/history/", "Filter")),
    row("alerts/silences/", walks_of_alerts.end_a_silence, (END_SILENCE, "End silence")),
    row(NEW_SILENCE, walks_of_alerts.one_that_fires_is_silenced_and_ends, (f"POST {NEW_SILENCE}", "Silence")),
]
CHOOSE_PASSWORD = "password/<str:secret>/"
PERSON, ASK_PERSON = "people/<str:username>/", "people/<str:username>/switch/"
ASK_FACTORS = "people/<str:username>/second-factors/"
PEOPLE = [
    row("people/", walks_of_people.filter_people, ("GET people/", "Filter")),
    row("people/-/new/", walks_of_people.make_a_user, ("POST people/-/new/", "Create user")),
    row(
        PERSON,
        walks_of_people.make_a_password_link,
        (f"POST {PERSON}password-link/", "Create password link"),
    ),
    question(
        (PERSON,), ASK_FACTORS, "Remove second factors", "Remove second factors", walks_of_people.remove_second_factors
    ).and_on(ASK_FACTORS, (f"POST {ASK_FACTORS}", "Remove second factors"), ("", "Cancel")),
    question((PERSON,), ASK_PERSON, "Deactivate", "Deactivate", walks_of_people.deactivate),
    question((PERSON,), ASK_PERSON, "Activate", "Activate", walks_of_people.activate),
    row(
        ASK_PERSON,
        walks_of_people.switch_on_a_page,
        (f"POST {ASK_PERSON}", "Deactivate"),
        (f"POST {ASK_PERSON}", "Activate"),
        ("", "Cancel"),
    ),
    row(
        "password/<str:secret>/", walks_of_people.choose_a_password, ("POST password/<str:secret>/", "Set the password")
    ),
]
IN_CLUSTER = (
    f"{CONNECTION}topics/",
    f"{CONNECTION}topics/<str:topic>/",
    f"{CONNECTION}topics/<str:topic>/records/",
    f"{CONNECTION}groups/",
    f"{CONNECTION}groups/<path:group>/",
)
OF_CONNECTION = (CONNECTION, *IN_CLUSTER)
NEW, CHANGE, ASK_CONNECTION = "connections/-/new/", f"{CONNECTION}change/", f"{CONNECTION}confirm/<str:action>/"
RESTART, DELETE = "Restart supervisors that use it", "Delete"
CONNECTIONS = [
    row("connections/", walks_of_connections.filter_connections, ("GET connections/", "Filter")),
    row(NEW, walks_of_connections.make_one, (f"POST {NEW}", "Create"), (f"POST {NEW}", "Test")),
    row(CHANGE, walks_of_connections.change_one, (f"POST {CHANGE}", "Save"), (f"POST {CHANGE}", "Test")),
    row(CONNECTION, walks_of_connections.try_one, (f"POST {CONNECTION}test/", "Test connection")),
    question(OF_CONNECTION, f"{CONNECTION}restart/", RESTART, RESTART, walks_of_connections.restart),
    question(OF_CONNECTION, f"{CONNECTION}delete/", DELETE, DELETE, walks_of_connections.delete),
    row(ASK_CONNECTION, walks_of_connections.restart_on_a_page, (f"POST {CONNECTION}restart/", RESTART)),
    row(ASK_CONNECTION, walks_of_connections.delete_on_a_page, (f"POST {CONNECTION}delete/", DELETE)),
    row(ASK_CONNECTION, walks_of_connections.think_better_of_it, ("", "Cancel")),
    *(
        row(f"{CONNECTION}{part}/", walks_of_connections.filter_what_it_holds, (f"GET {CONNECTION}{part}/", "Filter"))
        for part in ("topics", "groups")
    ),
]
SUPERVISORS = [
    question(TABS, f"{SV}suspend/", "Suspend", "Suspend", walks.suspend),
    question(OF_BOTH, f"{SV}resume/", "Resume", "Resume", walks.resume),
    question(TABS, f"{SV}handoff/", "Hand off", "Hand off", walks.hand_off),
    question(TABS, f"{SV}scale/", "Scale", "Scale", walks.scale),
    question(OF_BOTH, f"{SV}reset/", "Reset offsets", "Reset offsets", walks.reset),
    question(TABS, f"{SV}terminate/", "Terminate", "Terminate", walks.terminate),
    row(TABS, walks_of_drafts.begin_a_change, ("POST load/", "Change")),
    row(ASK, walks.answer_on_a_page("handoff", "Hand off", walks.was_handed_off), (f"POST {SV}handoff/", "Hand off")),
    row(ASK, walks.answer_on_a_page("suspend", "Suspend", walks.is_suspended), (f"POST {SV}suspend/", "Suspend")),
    row(ASK, walks.answer_on_a_page("resume", "Resume", walks.is_resumed), (f"POST {SV}resume/", "Resume")),
    row(ASK, walks.scale_on_a_page, (f"POST {SV}scale/", "Scale")),
    row(ASK, walks.answer_on_a_page("reset", "Reset offsets", walks.is_reset), (f"POST {SV}reset/", "Reset offsets")),
    row(ASK, walks.think_better_of_it, ("", "Cancel")),
    row(
        ASK,
        walks.answer_on_a_page("terminate", "Terminate", walks.is_terminated),
        (f"POST {SV}terminate/", "Terminate"),
    ),
    row((SV, GUIDE), walks.look_further_back, ("", "Time window")),
    row((SV, GUIDE), walks_of_site.zoom_the_lag, ("", "Zoom in"), ("", "Zoom out"), ("", "Whole")),
    row((SV, GUIDE), walks_of_site.look_at_a_partition, ("", "Lag of")),
    row(f"{SV}autoscaler/", walks_of_site.simulate, (f"GET {SV}autoscaler/", "Simulate")),
    row(f"{BACK}confirm/", walks_of_site.roll_back, (f"POST {BACK}", "Roll back")),
    row(BACKFILLS, walks.preview_a_backfill, (f"POST {BACKFILLS}", "Preview backfill")),
    row(REWINDS, walks_of_rewinds.preview_a_rewind, (f"POST {REWINDS}", "Preview rewind")),
    row(REWINDS, walks_of_rewinds.cancel_and_undo, *walks_of_rewinds.QUESTIONS),
    row(f"{SV}lag/", walks.show_another_window, (f"GET {SV}lag/", "Show")),
    row(f"{SV}spec/", walks.copy_the_version, ("", "Copy")),
]
TASKS = [
    question((TASK,), f"{TASK}finish/", "Finish", "Finish", walks.finish),
    question((TASK,), f"{TASK}stop/", "Stop now", "Stop now", walks.stop),
    row(ASK_TASK, walks.finish_on_a_page, (f"POST {TASK}finish/", "Finish"), ("", "Cancel")),
    row(ASK_TASK, walks.stop_on_a_page, (f"POST {TASK}stop/", "Stop now")),
    row(TASK, walks.copy_log_and_spec, ("", "Copy")),
    row(TASK, walks_of_site.search_the_log, (f"GET {TASK}", "Search")),
    row(TASK, walks_of_site.see_an_example, ("", "Newest record")),
]
SPECS = [
    row("tasks/-/new/", walks.submit_a_task, ("POST tasks/-/new/", "Submit task")),
    row("tasks/-/new/", walks.check_a_task, ("POST tasks/-/new/", "Check spec")),
    row("tasks/-/new/", walks.preview("tasks"), ("POST tasks/-/new/", "Preview")),
    row("supervisors/-/new/", walks.submit_a_supervisor, ("POST supervisors/-/new/", "Submit supervisor")),
    row("supervisors/-/new/", walks.check_a_supervisor, ("POST supervisors/-/new/", "Check spec")),
    row("supervisors/-/new/", walks.preview("supervisors"), ("POST supervisors/-/new/", "Preview")),
    row(walks_of_imports.PAGE, walks_of_imports.import_supervisors, *walks_of_imports.CONTROLS),
]
DATA = [
    row((DS, GUIDE), walks_of_data.move_the_timeline, *(("", label) for label in TIMELINE)),
    row(INTERVALS, walks_of_data.switch_layers, (f"GET {INTERVALS}", "Show layers")),
    row(SEGMENTS, walks_of_data.filter_segments, (f"GET {SEGMENTS}", "Filter")),
    row(EVENTS, walks_of_data.filter_events, (f"GET {EVENTS}", "Filter")),
    row(QUARANTINE, walks_of_data.filter_the_quarantine, (f"GET {QUARANTINE}", "Filter")),
    row(QUARANTINE, walks_of_data.ingest_ticked, (CHOOSE, "Ingest…")).and_on(
        ASKED, (f"POST {QUARANTINE}replay/", "Ingest")
    ),
    row(QUARANTINE, walks_of_data.produce_all_that_match, (CHOOSE, "Produce again…")).and_on(
        ASKED, (f"POST {QUARANTINE}replay/", "Produce again")
    ),
    row(QUARANTINE, walks_of_data.purge_ticked, (CHOOSE, "Purge…")).and_on(
        ASKED, (f"POST {QUARANTINE}purge/", "Purge")
    ),
    row(RECORD, walks_of_data.ingest_one, (CHOOSE, "Ingest…")),
    row(RECORD, walks_of_data.produce_one, (CHOOSE, "Produce again…")),
    row(RECORD, walks_of_data.purge_one, (CHOOSE, "Purge…")),
    row(FIX, walks_of_data.try_a_spec, (f"POST {FIX}", "Try")),
    row(FIX, walks_of_data.submit_a_fix, (f"POST {FIX}", SUBMIT_FIX)).and_on(
        FIX, (FIX_SUBMIT, "Submit and replay"), (FIX_SUBMIT, "Edit spec")
    ),
    row(FIX, walks_of_data.replay_files_with_a_fix, (f"POST {FIX}", REPLAY_FIX)).and_on(FIX, (FIX_SUBMIT, "Replay")),
]
RULES, MARK, COMPACTION = f"{DS}retention/rules/", f"{DS}retention/mark/", f"{DS}compaction/"
SEND_RULES, SEND_SITES, SEND_MARK = f"POST {RULES}", "POST retention/", f"POST {MARK}"
MOVES = ("Move rule 1 down", "Move rule 2 up", "Remove rule 1", "Remove rule 2")
RETENTION = [
    row(
        RULES,
        walks_of_retention.set_rules,
        *((SEND_RULES, label) for label in ("Add a rule", "Preview", "Save the rules")),
    ),
    row(RULES, walks_of_retention.move_rules, *((SEND_RULES, label) for label in MOVES)),
    row(
        "retention/",
        walks_of_retention.set_the_sites_rules,
        *((SEND_SITES, label) for label in ("Add a rule", "Preview", "Save the rules", *MOVES)),
    ),
    row(
        MARK,
        walks_of_retention.use_again_and_take_out,
        *((SEND_MARK, label) for label in ("Preview", "Mark used", "Mark unused")),
    ),
    row(MARK, walks_of_retention.delete_segments_for_good, (SEND_MARK, "Delete for good")),
    row(COMPACTION, walks_of_retention.filter_merges, (f"GET {COMPACTION}", "Filter")),
    row(
        COMPACTION,
        walks_of_retention.try_compaction,
        (f"GET {COMPACTION}", "Simulate"),
        (f"POST {COMPACTION}apply/", "Apply these settings"),
    ),
    row(f"{DS}delete/", walks_of_retention.delete_a_datasource, (f"POST {DS}delete/", "Delete datasource")),
]
STEP, SEND = walks_of_drafts.STEP, walks_of_drafts.SEND
DRAFTS = [
    row("load/", walks_of_drafts.begin, ("POST load/", "Create draft")),
    row("load/", walks_of_drafts.throw_away, (f"POST {LOAD}delete/", "Delete draft")),
    row(STEP, walks_of_drafts.connection, (SEND, "Topic")),
    row(STEP, walks_of_drafts.topic, (SEND, "Parse"), (SEND, "Back")),
    row(STEP, walks_of_drafts.read_records, (SEND, "Read records")),
    row(STEP, walks_of_drafts.parse, (SEND, "Time"), (SEND, "Try")),
    row(STEP, walks_of_drafts.use_a_format, (SEND, "Use json")),
    row(STEP, walks_of_drafts.time, (SEND, "Filter, transform")),
    row(STEP, walks_of_drafts.use_a_time, (SEND, "Use __time"), (SEND, "Use Kafka's own time")),
    row(STEP, walks_of_drafts.transform, (SEND, "Columns")),
    row(STEP, walks_of_drafts.schema, (SEND, "Reading")),
    row(STEP, walks_of_drafts.reading, (SEND, "Review")),
    row(STEP, walks_of_drafts.name_it, (SEND, "Use this name")),
    row(STEP, walks_of_drafts.change_a_part, *walks_of_drafts.PARTS),
    row(STEP, walks_of_drafts.save_the_json, (SEND, "Save the JSON")),
    row(STEP, walks_of_drafts.submit_a_supervisor, (SEND, "Submit supervisor")),
    row(STEP, walks_of_drafts.run_as_a_task, (SEND, "Run once as a task")),
    row(STEP, walks_of_drafts.submit_a_change, (SEND, "Submit the change")),
]
# What a page has only when a broker answers; ``test_controls`` does so with a real one.
WITH_A_BROKER = [
    row(f"{SV}share-group/", walks.apply_the_spec, (f"POST {SV}share-group/apply/", "Apply the spec")),
]
PREVIEWED = [
    row(BACKFILLS, walks.fill_a_gap, (f"POST {BACKFILLS}", "Fill")),
    row(BACKFILLS, walks.skip_and_fill, (f"POST {BACKFILLS}", "Skip and fill")),
    row(REWINDS, walks_of_rewinds.try_and_begin, *walks_of_rewinds.PREVIEWED),
]
GROUPS = {
    "site": SITE,
    "connections": CONNECTIONS,
    "supervisors": SUPERVISORS,
    "tasks": TASKS,
    "specs": SPECS,
    "data": DATA,
    "queries": walks_of_queries.QUERIES,
    "retention": RETENTION,
    "drafts": DRAFTS,
    "teams": TEAMS,
    "people": PEOPLE,
    "alerts": ALERTS,
}
