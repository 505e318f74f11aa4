"""What Ganeti itself knows: its parameters, units, inheritance, option grammars and commands."""
