"""What is different in Verilog for simulators that compile a design to a program, so that the program is fast."""
