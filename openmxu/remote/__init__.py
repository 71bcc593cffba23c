"""Devices at an address: a server that lends its device to one client after the other, and the device of a client.

:mod:`openmxu.remote.client` is the only module that a program needs; :func:`openmxu.open_device` opens it. The protocol
is in ``device.proto``, and docs/remote.md explains it.
"""
