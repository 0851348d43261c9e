"""What a report holds, as types: from here come the JSON, its schema, docs/report-schema.md, tables and pages.

Reports are deterministic: no timings (but in `Comparison.timings`) and no paths (but in `path`), so equal datasets have
equal reports. Metrics are those of `packtool.metrics`, under the names that they have there.
"""

from packtool.report.schema.comparison import (
    Advice,
    ChosenStrategy,
    Comparison,
    SlidingForecast,
    Timing,
    Trial,
    Verdict,
)
from packtool.report.schema.reports import (
    FORMAT,
    SCHEMA_VERSION,
    CorpusReport,
    DocumentsReport,
    MeasuredReport,
    PackedReport,
    Report,
    StoreReport,
)
from packtool.report.schema.rows import (
    BucketFigures,
    ContextPoint,
    DocumentsBin,
    LengthBin,
    Lengths,
    Options,
    PicturedRow,
    PicturedSegment,
    RowFigures,
)
from packtool.report.schema.sources import LeftOutFigures, PackedSourceFigures, SourceFigures, StoredSourceFigures

__all__ = [
    "FORMAT",
    "SCHEMA_VERSION",
    "Advice",
    "BucketFigures",
    "ChosenStrategy",
    "Comparison",
    "ContextPoint",
    "CorpusReport",
    "DocumentsBin",
    "DocumentsReport",
    "LeftOutFigures",
    "LengthBin",
    "Lengths",
    "MeasuredReport",
    "Options",
    "PackedReport",
    "PackedSourceFigures",
    "PicturedRow",
    "PicturedSegment",
    "Report",
    "RowFigures",
    "SlidingForecast",
    "SourceFigures",
    "StoreReport",
    "StoredSourceFigures",
    "Timing",
    "Trial",
    "Verdict",
]
