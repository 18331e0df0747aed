"""Mutants: semantic faults that the spec has to see, and the hunt for them.

`catalogue` lists them, `load` makes a faulty copy of a package, `drivers` and `hunt` run them,
`matrix` tells what came of it. `without` takes single clauses away from the judge, and `losses`
tells what passes then; `liar` is a manager whose books are wrong where one clause speaks.
"""
