"""Checkpoints that cut runs off."""

from __future__ import annotations

from typing import Any

from delegraph.pipeline.results.checkpoint import Checkpoint


class CutOff(Checkpoint):
    """A checkpoint that ends its run after a save, as a signal does. left: the number of saves that
    are left, this one included. done: the steps that it saved.
    """

    left = 2
    done = 0

    def save_state(self, done: int, *state: Any, **others: Any) -> None:
        super().save_state(done, *state, **others)
        self.left -= 1
        if not self.left:
            self.done = done
            raise KeyboardInterrupt
