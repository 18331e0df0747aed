"""The tests of kvspec."""
