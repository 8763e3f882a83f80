"""Many files to a folder of Parquet shards: every row once, continued after a stop."""

from genpool.integrations.bulk.inputs import BulkOptions
from genpool.integrations.bulk.job import encode_bulk
from genpool.integrations.bulk.manifest import BulkSummary

__all__ = ["BulkOptions", "BulkSummary", "encode_bulk"]
