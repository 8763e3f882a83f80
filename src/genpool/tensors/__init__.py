"""What several rooms share on tensors: packed rows, threads, dropout, the switch of fast paths."""
