"""The parts of Python's functions that commands lack: messages with keywords, progress bars.

``public`` decorates the functions; ``keywords`` translates messages, which the rest of the package
writes with the options of the command line; ``progress`` shows ``progress=True``.
"""
