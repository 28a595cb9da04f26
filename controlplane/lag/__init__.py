"""How far readers are behind, over time."""
