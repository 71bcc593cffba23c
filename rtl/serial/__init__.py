"""The serial shell: the core behind a byte stream, with a computer at its other end that serves the memories."""
