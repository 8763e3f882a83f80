"""Scores of a model: accuracy, calibration, significance, similarity, relatedness, transfer probes.

Works on lists of labels, arrays of vectors and any callable that encodes sentences; imports no
model.
"""

from genpool.evaluation.accuracy import (
    AccuracyReport,
    Comparison,
    accuracy_report,
    compare_predictions,
)
from genpool.evaluation.predictions import Predictions, read_predictions, write_predictions
from genpool.evaluation.probes import ProbeReport, probe, probe_cross_validated
from genpool.evaluation.similarity import (
    RelatednessReport,
    ScoreReport,
    SimilarityReport,
    relatedness_report,
    similarity_report,
)
from genpool.evaluation.vectors import LabelledVectors, ScoredPairs, labelled_vectors, scored_pairs

__all__ = [
    "AccuracyReport",
    "Comparison",
    "LabelledVectors",
    "Predictions",
    "ProbeReport",
    "RelatednessReport",
    "ScoreReport",
    "ScoredPairs",
    "SimilarityReport",
    "accuracy_report",
    "compare_predictions",
    "labelled_vectors",
    "probe",
    "probe_cross_validated",
    "read_predictions",
    "relatedness_report",
    "scored_pairs",
    "similarity_report",
    "write_predictions",
]
