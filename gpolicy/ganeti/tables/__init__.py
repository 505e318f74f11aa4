"""The rows of the table of parameters, by what they describe."""
