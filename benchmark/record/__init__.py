"""What a training run leaves on disk: the run record, its signals, and the recorders that write them."""

from benchmark.record.recorders import EMBEDDING, EVAL_LOGITS, TRAIN_LOGITS, Signal
from benchmark.record.run_record import RunRecord

__all__ = ["EMBEDDING", "EVAL_LOGITS", "TRAIN_LOGITS", "RunRecord", "Signal"]
