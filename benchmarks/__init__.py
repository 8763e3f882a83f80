"""Measurements of genpool, run from the repository; no part of the package.

speed/          the rows of `make bench`: genpool beside other ways to do the same
results_pages/  one script for each other page of `results/`, which it writes
release/        makes the models inside the package
data.py         where the data sets are
pages.py        how a page of `results/` is written
"""
