"""The dataSchema and its parts."""
