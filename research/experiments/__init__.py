"""What exact accounting buys: measured, with every number in a table. Nothing here is needed to use the package."""
