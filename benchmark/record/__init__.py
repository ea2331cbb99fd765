"""What a training run leaves on disk: the run record, its signals, and the recorders that write them."""

from benchmark.record.history import RunShape
from benchmark.record.run_record import RunRecord, open_record, read_history, read_metadata, write_record
from benchmark.record.signals import (
    EMBEDDING,
    EVAL_LOGITS,
    TRAIN_LOGITS,
    CheckpointGradientNorms,
    Embedding,
    EvalLogits,
    Example,
    GradientNorms,
    InputGradientSpread,
    Signal,
    TrainLogits,
    recorders_of,
    without_parts,
)
