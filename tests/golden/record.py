"""Where the golden record is kept."""

from pathlib import Path

RECORD = Path(__file__).parent / "record.json"
