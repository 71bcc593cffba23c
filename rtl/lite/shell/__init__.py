"""What the shells hold beside a small core: registers, events, bus errors, and the fetch of programs."""
