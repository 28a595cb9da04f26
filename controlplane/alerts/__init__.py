"""Alerts: rules on what is known of supervisors and datasources, and messages to those who asked for them."""
