"""``python -m openmxu.cli`` is the ``openmxu`` command."""

from openmxu.cli.application import main

main()
