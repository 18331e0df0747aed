"""The plain implementation: short, obvious, slow. The text one learns the choices from.

`manager` decides, `pool` counts, `worker` moves bytes. The judge in `spec/` judges it like any
other target.
"""
