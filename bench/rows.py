"""What a program here prints as a table, it can also leave as JSON: --json=FILE."""

import json


def write_rows(path, rows):
    """Nothing without a path."""
    if not path:
        return
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
