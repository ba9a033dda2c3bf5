"""Files that detect damage, outputs that appear whole, work that survives a kill, memory limits."""
