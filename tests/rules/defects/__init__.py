"""Single mistakes put into good policies: what kinds there are, and which of them `check` finds."""
