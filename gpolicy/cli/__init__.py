"""The command line: parses, wires, prints. It decides nothing itself."""
