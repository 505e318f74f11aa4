"""GP80x and GP81x: guards, and the policy's own tests."""
