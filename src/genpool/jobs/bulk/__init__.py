"""Many files to a folder of Parquet shards: every row once, continued after a stop.

inputs.py     files, folders and globs, with the name that each has in ids
plan.py       the shards: which rows of which file
shard.py      encodes one shard; every engine calls it, so that all write the same bytes
shard_file.py the Parquet file of a shard
manifest.py   what the folder is, and what is done
local.py      the engine of worker processes
job.py        a run from the inputs to the summary
"""

from genpool.jobs.bulk.job import encode_bulk
from genpool.jobs.bulk.options import BulkOptions
from genpool.jobs.bulk.summary import BulkSummary

__all__ = ["BulkOptions", "BulkSummary", "encode_bulk"]
