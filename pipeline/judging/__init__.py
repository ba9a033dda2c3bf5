"""Judging results by rules that make them right: searches, programs, paths, several sources."""
