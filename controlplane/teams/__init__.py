"""Teams, members, roles, tokens: who may do what."""
