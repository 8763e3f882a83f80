"""One script for each page of `results/`, except for bench.md, which `make bench` writes."""
