"""Organizers, assessors and workers as a machine does them: acts, cuts, and what must hold."""
