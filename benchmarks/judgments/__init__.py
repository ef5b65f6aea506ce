"""Ways of judging beside one another, at equal numbers of judged pairs: docs/benchmarks.md.

``material`` is what is judged, ``players`` who plays (``ppi`` and ``lara`` are two of them),
``cells`` what a player's trials are summed up to, ``page`` and ``charts`` what is shown of it.
"""
