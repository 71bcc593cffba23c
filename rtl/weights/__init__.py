"""The weight path: tiles from weight memory through the FIFO to the array's edge."""
