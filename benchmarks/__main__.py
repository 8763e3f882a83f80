"""python -m benchmarks is the same as genpool bench."""

import sys

from genpool.cli import main

sys.argv = ["genpool", "bench", *sys.argv[1:]]
main()
