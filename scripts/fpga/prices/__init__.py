"""What a core's parameters cost on an ECP5."""
