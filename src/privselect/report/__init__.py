"""A certificate as an HTML page: what is protected, how strongly, under which assumptions, and how to verify it."""

from privselect.report.write import Report as Report
from privselect.report.write import write_report as write_report
