"""The indexers' endpoints. They are plain Django views, because all records pass through them.

Each request has the task's own token, which expires with the task.
"""
