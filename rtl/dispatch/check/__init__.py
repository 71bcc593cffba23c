"""The check of an instruction: its format, the ranges that it touches, and the faults that these show."""
