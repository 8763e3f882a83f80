"""The comparisons of `make bench`; `comparisons.py` lists them."""
