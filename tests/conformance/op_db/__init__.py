"""PyTorch's own operator samples, run plain and under Headwater, compared bit by bit.

    python -m tests.conformance.op_db --fraction 0.2 --seed 0

``samples`` enumerates, ``execute`` runs one sample, ``bits`` records what came out, ``worker`` runs
one operator in a process that may crash, ``runner`` spreads the work and ``report`` judges it
against the written list of ``expected`` differences. ``writes`` finds arguments that an operator
changes although its schema does not say so.
"""
