"""Documents, or parts of them, that commands write."""
