"""How tests are run: their lanes, who gets which file, what they cost, and the second run of what failed in *deep*."""
