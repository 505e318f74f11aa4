"""Single mistakes in good policies: their kinds, and which of them `check` finds."""
