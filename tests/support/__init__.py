"""Helpers that several test files share. Fixtures stand in conftest.py."""
