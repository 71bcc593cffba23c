"""Boards at serial ports: finding them, opening them for other commands, and simulating them."""
