"""The Verilog that goes into somebody's design, and the files that its tools read beside it."""
