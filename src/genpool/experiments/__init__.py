"""The paper's tables and figures as runnable definitions, and their report."""

from genpool.experiments.definitions import EXPERIMENTS, check_definitions
from genpool.experiments.ledger import Ledger, Record
from genpool.experiments.reproduction import Reproduction, reproduce

__all__ = ["EXPERIMENTS", "Ledger", "Record", "Reproduction", "check_definitions", "reproduce"]
