"""What a training run leaves on disk: the run record, its signals, and the recorders that write them."""

from benchmark.record.run_record import RunRecord
from benchmark.record.shape import RunShape
from benchmark.record.signals import EMBEDDING, EVAL_LOGITS, TRAIN_LOGITS, Example, Signal

__all__ = ["EMBEDDING", "EVAL_LOGITS", "TRAIN_LOGITS", "Example", "RunRecord", "RunShape", "Signal"]
