"""The rules of AXI4 and AXI4-Lite, written from the specification, and proofs that the shell's ports obey them."""
