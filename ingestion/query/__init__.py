"""SQL over segments: one statement in one process, which can read the files of this statement and nothing else."""
