"""One GPU: preparing, searching, checking, generating; memory that others read. ``device`` alone
imports CuPy.
"""
