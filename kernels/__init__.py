"""Block copy and block zero: CUDA source, its host twin, launch and copy plan.

A later issue fills this package. Nothing moves bytes here yet; until then the only worker that
does is the plain one in `kvspec.reference`.
"""
