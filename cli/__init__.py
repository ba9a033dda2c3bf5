"""The command line: options, help, progress, exit codes."""
