"""The AXI shell between cocotbext-axi's models."""

import warnings

# cocotbext-axi 0.1.28 still uses names that cocotb 2.1 has replaced.
warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"cocotbext\.axi\.")
