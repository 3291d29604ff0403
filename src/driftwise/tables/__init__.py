"""The log's schema, reading and writing logs (docs/contract.md#logs), and features of contexts and items."""

from driftwise.tables.check import check_log
from driftwise.tables.convert import from_dsjson, from_obp
from driftwise.tables.encoder import Encoder
from driftwise.tables.features import Features
from driftwise.tables.logs import Log, Part, log_of, read_log
from driftwise.tables.schema import Batch, Ragged

__all__ = [
    "Batch", "Encoder", "Features", "Log", "Part", "Ragged", "check_log", "from_dsjson", "from_obp", "log_of",
    "read_log",
]  # fmt: skip
