"""The wizard's pages: each step is a form that edits what it knows of a draft's document, and a look at the records."""
