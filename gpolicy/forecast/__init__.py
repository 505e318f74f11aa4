"""What rules ask of tests and plans, told by the rooms that know. They are imported when a rule first asks."""
