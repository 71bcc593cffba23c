"""From the hardware's description to placed and routed designs and bitstreams, with tools from PyPI."""
