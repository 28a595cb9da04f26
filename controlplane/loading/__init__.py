"""From a topic to a spec, step by step: drafts, the records that they are tried on, and what each step can tell."""
