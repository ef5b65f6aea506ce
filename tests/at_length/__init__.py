"""Drills at length, for `make drills`; their short forms are tests of the suite (tests/drills)."""
