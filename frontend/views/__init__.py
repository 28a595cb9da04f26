"""The pages' views, a module per noun. Each reads through selectors and writes through services."""
