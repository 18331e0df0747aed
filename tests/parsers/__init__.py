"""Whatever is read from outside: no input gives a traceback, a hang, a flood or a wrong verdict.

`entries` says what is read and what must hold of it, `change` makes an input another one,
`test_parsers` tries some in every run of the tests, `python -m tests.parsers` searches for as long
as it is told (`make fuzz-parsers`).
"""
