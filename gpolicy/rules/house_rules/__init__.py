"""GP95x: house rules, and mistakes in them."""
