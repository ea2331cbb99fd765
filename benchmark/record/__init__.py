"""What a training run leaves on disk: the run record, its signals, and the recorders that write them."""

from benchmark.record.history import RunShape
from benchmark.record.logger import DynamicsLogger
from benchmark.record.run_record import RunRecord, open_record, read_history, read_metadata, write_record
from benchmark.record.signals import (
    EMBEDDING,
    EVAL_LOGITS,
    EVAL_SUMMARY,
    TRAIN_LOGITS,
    TRAIN_SUMMARY,
    CheckpointGradientNorms,
    Embedding,
    EvalLogits,
    EvalSummary,
    Example,
    GradientNorms,
    InputGradientSpread,
    Signal,
    TrainLogits,
    TrainSummary,
    recorders_of,
    without_parts,
)
from benchmark.record.summary import summarise
