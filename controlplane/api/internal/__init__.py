"""The indexers' endpoints: plain views, since they are on the path of every record.

Authorisation is the task's own token, which ends with the task.
"""
