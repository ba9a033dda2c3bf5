"""One GPU: preparing, searching, checking, generating. ``device`` alone imports CuPy."""
