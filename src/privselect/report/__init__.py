"""A certificate as one page for people: what was promised, what that means, and how to check it."""

from privselect.report.write import Written as Written
from privselect.report.write import write_report as write_report
