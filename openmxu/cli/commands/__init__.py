"""The subcommands of ``openmxu``; each function is one."""
