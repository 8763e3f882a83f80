"""The loop, its schedule, checkpoints and the folder of a run."""

from genpool.errors import Interrupted
from genpool.training.loop import train
from genpool.training.settings import RunSettings, read_settings

__all__ = ["Interrupted", "RunSettings", "read_settings", "train"]
