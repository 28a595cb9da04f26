"""Rules over the project's files: code, templates, documentation. Each rule is one test, which checks every file."""
