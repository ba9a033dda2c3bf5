"""The journal of work in progress: the output that is being made, its scratch folder, and the
result of each finished step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xxhash

from .outputs import write_file
from .system_errors import raise_failure


def read_journal(path: Path) -> dict[str, Any]:
    """Return the document that an earlier attempt wrote; an empty dict if there is no undamaged
    one.
    """
    try:
        document = json.loads(path.read_bytes())
        return document if document.pop("xxh3") == _digest(document) else {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise_failure(path, error)
        return {}


def write_journal(path: Path, document: Mapping[str, Any]) -> None:
    """Replace the journal. It is whole and on the disk afterwards."""
    encoded = json.dumps({**document, "xxh3": _digest(document)}, indent=1).encode()
    write_file(path, encoded)


def _digest(document: Mapping[str, Any]) -> str:
    return xxhash.xxh3_64_hexdigest(json.dumps(document, sort_keys=True).encode())


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """Describe how two purposes differ, in words. If their commands differ, only that is described.

    >>> difference({"--order": "none", "input": "a"}, {"--order": "degree", "input": "a"})
    '--order was none, now degree'
    """
    command = "the command"
    if theirs.get(command) != ours.get(command):
        theirs, ours = ({command: purpose.get(command, "another")} for purpose in (theirs, ours))
    return ", ".join(
        f"{key} was {theirs.get(key, 'not given')}, now {ours.get(key, 'not given')}"
        for key in {**theirs, **ours}
        if theirs.get(key) != ours.get(key)
    )
