"""Changes to ECP5 netlists and placements before nextpnr runs, and the places of the die's blocks."""
