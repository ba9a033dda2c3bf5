"""What several test files share. Fixtures stand in conftest.py."""
