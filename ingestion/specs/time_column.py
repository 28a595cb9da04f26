"""The id of the column of times, which is the same in the files of all datasources.

Apart from the messages about columns: they take a quarter of a second to import, and a process that lives for one
snapshot of the catalog needs this id alone.
"""

TIME_ID = 1  # the others' are higher
