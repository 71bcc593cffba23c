"""The parts of a program that device and host compute in turn, and the arrays that they exchange."""
