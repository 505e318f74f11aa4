"""The command line: parses, wires, prints. Nothing here decides anything."""
