"""What tests share: the house of real services, a proxy that fails on purpose, the checker of invariants."""
