"""Units of a core of the lite profile: one instruction after the other, with as little logic as that takes."""
