"""Tables of events: the log's schema, reading and writing it (PRODUCT.md 5), and features of contexts and items."""

from driftwise.tables.logs import Log, Part, log_of, read_log
from driftwise.tables.schema import Batch, Ragged

__all__ = ["Batch", "Log", "Part", "Ragged", "log_of", "read_log"]
