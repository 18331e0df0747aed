"""Measurements, each a module of its own with a command `kvspec bench NAME`."""
