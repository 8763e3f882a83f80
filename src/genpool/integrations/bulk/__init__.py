"""Many files to a folder of Parquet shards: every row once, continued after a stop.

inputs.py     the options, the files, and the shards: which rows of which file
shard.py      encodes one shard; every engine calls it, so that all write the same bytes
engines.py    what runs shards: worker processes (Ray: `genpool.integrations.ray`)
manifest.py   what the folder is, and what is done
job.py        a run from the inputs to the summary
"""

from genpool.integrations.bulk.inputs import BulkOptions
from genpool.integrations.bulk.job import encode_bulk
from genpool.integrations.bulk.manifest import BulkSummary

__all__ = ["BulkOptions", "BulkSummary", "encode_bulk"]
