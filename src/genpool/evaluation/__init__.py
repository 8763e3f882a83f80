"""Scores of a model: accuracy, calibration, significance, similarity, relatedness, transfer probes.

Works on lists of labels, arrays of vectors and any callable that encodes sentences; imports no
model.
"""

from genpool.evaluation.accuracy import AccuracyReport, ClassScore, GenreScore, accuracy_report
from genpool.evaluation.calibration import CalibrationScores, calibration_scores
from genpool.evaluation.pictures import confusion_picture, learning_curve_picture
from genpool.evaluation.predictions import Predictions, read_predictions, write_predictions
from genpool.evaluation.probes import ProbeReport, probe, probe_cross_validated
from genpool.evaluation.relatedness import RelatednessReport, relatedness_report
from genpool.evaluation.significance import Comparison, compare_predictions
from genpool.evaluation.similarity import SimilarityReport, cosine_pairs, similarity_report
from genpool.evaluation.tables import LabelledVectors, ScoredPairs, labelled_vectors, scored_pairs
from genpool.evaluation.vectors import Encode, encode_sentences, pair_features

__all__ = [
    "AccuracyReport",
    "CalibrationScores",
    "ClassScore",
    "Comparison",
    "Encode",
    "GenreScore",
    "LabelledVectors",
    "Predictions",
    "ProbeReport",
    "RelatednessReport",
    "ScoredPairs",
    "SimilarityReport",
    "accuracy_report",
    "calibration_scores",
    "compare_predictions",
    "confusion_picture",
    "cosine_pairs",
    "encode_sentences",
    "labelled_vectors",
    "learning_curve_picture",
    "pair_features",
    "probe",
    "probe_cross_validated",
    "read_predictions",
    "relatedness_report",
    "scored_pairs",
    "similarity_report",
    "write_predictions",
]
