"""The comparisons of `genpool bench`; `comparisons.py` lists them."""
