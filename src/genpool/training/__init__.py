"""Training: settings, the loop and its schedule, checkpoints, and the folder of a run."""

from genpool.errors import Interrupted
from genpool.training.fitting import train
from genpool.training.heads import HeadDistances, HeadsReport, heads_report
from genpool.training.settings import RunSettings, read_settings

__all__ = [
    "HeadDistances",
    "HeadsReport",
    "Interrupted",
    "RunSettings",
    "heads_report",
    "read_settings",
    "train",
]
