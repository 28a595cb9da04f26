"""Where records come from: sources, files, connections."""
