"""The host interface: rows between host memory and unified buffer."""
