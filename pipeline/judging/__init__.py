"""Judges of results: rules that a right result fulfils, for searches, paths, programs and several
sources.
"""
