"""Recurrent cells: LSTM and GRU from ONNX to instructions."""
