"""Helpers that several test files share; fixtures are in conftest.py."""
