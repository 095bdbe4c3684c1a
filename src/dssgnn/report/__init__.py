"""The page: a model folder turned into one self-contained `report.html`."""

from dssgnn.report.content import report_content
from dssgnn.report.page import write_report

__all__ = ["report_content", "write_report"]
