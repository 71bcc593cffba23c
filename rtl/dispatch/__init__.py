"""Dispatch: instructions are checked, decoded, and queued at their units, where the scoreboard holds them back."""
