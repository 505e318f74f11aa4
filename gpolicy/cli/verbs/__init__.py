"""The verbs with their options, by what they are for. Each body imports what it needs, for a fast start-up."""
