"""The netlist that Yosys makes, compiled with models of the FPGA's cells."""
