"""Checks that run their programs themselves, on a device made with the options they are given."""
