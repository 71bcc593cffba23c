"""The AXI shell: the core behind AXI4-Lite registers, with AXI4 managers for host and weight memory."""
