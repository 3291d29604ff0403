"""Tables of events: the log's schema, reading and writing it (PRODUCT.md 5), and features of contexts and items."""

from driftwise.tables.encoder import Encoder
from driftwise.tables.features import Features
from driftwise.tables.logs import Log, Part, log_of, read_log
from driftwise.tables.schema import Batch, Ragged

__all__ = ["Batch", "Encoder", "Features", "Log", "Part", "Ragged", "log_of", "read_log"]
