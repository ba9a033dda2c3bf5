"""Supersteps of several ranks on CPUs: what a rank holds, visits and sends, by layout."""
