"""How people log in: sessions, second factors, and a provider's groups. allauth does the protocols."""
