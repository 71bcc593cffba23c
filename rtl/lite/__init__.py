"""Units of a core of the dense profile: one instruction after the other, with as little logic as that takes."""
