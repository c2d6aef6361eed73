"""A service that predicts, learns when the label of a prediction arrives, and loses nothing if it is killed.

Needs FastAPI and Uvicorn: ``pip install fastapi uvicorn``. With a model that was saved before::

    MODEL=model.tamis uvicorn service:create_app --factory

Each request is a line of a journal when it is answered. The model, the rows that wait for their labels and the length
of the journal are saved in one file, atomically, so a new process continues with the lines after it.
"""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import tamis
import tamis.errors
from tamis.persistence.journal import Journal
from tamis.persistence.lock import write_lock


class Row(BaseModel):
    id: str
    values: list[float]


class Label(BaseModel):
    id: str
    label: str


class LearningModel:
    """A model, the rows that wait for their labels, and a journal of both.

    Parameters
    ----------
    path : path-like
        File of the model; `prepare` writes the first one.
    save_every : int
        Labels between two saves.
    """

    def __init__(self, path: str | os.PathLike[str], save_every: int = 100) -> None:
        self.path, self.save_every = Path(path), save_every
        state = tamis.load(self.path)
        self.model, self.waiting, length = state["model"], dict(state["waiting"]), state["length"]
        self.journal, self.lock, self.n_unsaved = Journal(self.path.with_suffix(".jsonl")), Lock(), 0
        with open(self.journal.path, "rb") as lines:
            lines.seek(length)
            for line in lines.read().splitlines():
                self._apply(json.loads(line))

    def _apply(self, event: dict[str, Any]) -> Any:
        """Predict a row, or learn a label; return the prediction."""
        if "values" in event:
            self.waiting[event["id"]] = event["values"]
            return self.model.predict(np.array([event["values"]]))[0]
        self.model.partial_fit(np.array([self.waiting[event["id"]]]), np.array([event["label"]]))
        del self.waiting[event["id"]]
        self.n_unsaved += 1
        return None

    def predict(self, row: Row) -> str:
        """Return the predicted label; the row waits for the true one."""
        with self.lock:
            if row.id in self.waiting:
                raise HTTPException(409, f"id {row.id!r} waits for its label already: choose another one.")
            if len(row.values) != self.model.n_features_in_ or not np.isfinite(row.values).all():
                raise HTTPException(422, f"values must be {self.model.n_features_in_} finite numbers.")
            event = row.model_dump()
            label = str(self._apply(event))
            self.journal.write([event])
            return label

    def learn(self, label: Label) -> int:
        """Learn from a label; return the number of rows that wait."""
        with self.lock:
            if label.id not in self.waiting:
                raise HTTPException(404, f"id {label.id!r} does not wait for a label.")
            event = label.model_dump()
            try:
                self._apply(event)
            except (ValueError, tamis.errors.TamisError) as error:  # the model is unchanged
                raise HTTPException(422, str(error)) from error
            self.journal.write([event])
            self.journal.flush()  # it is on disk before the request is answered
            if self.n_unsaved >= self.save_every:
                self._save()
            return len(self.waiting)

    def save(self) -> None:
        """Save the model, the waiting rows and the length of the journal in one file."""
        with self.lock:
            self._save()

    def _save(self) -> None:
        self.journal.flush()
        state = {"model": self.model, "waiting": self.waiting, "length": self.journal.length}
        tamis.save(state, self.path)
        self.n_unsaved = 0


def prepare(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model for a service."""
    tamis.save({"model": model, "waiting": {}, "length": 0}, path)
    Path(path).with_suffix(".jsonl").write_bytes(b"")


def create_app(path: str | None = None) -> FastAPI:
    """Return the service of the model in a file."""
    place = path or os.environ["MODEL"]

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        with write_lock(place):  # a second process would overwrite what this one learns
            app.state.served = LearningModel(place)
            yield
            app.state.served.save()

    app = FastAPI(title="A model that learns", lifespan=lifespan)

    @app.post("/predict")
    def predict(row: Row) -> dict[str, str]:
        return {"label": app.state.served.predict(row)}

    @app.post("/label")
    def learn(label: Label) -> dict[str, int]:
        return {"waiting": app.state.served.learn(label)}

    @app.get("/selected")
    def selected() -> list[int]:
        with app.state.served.lock:
            return [int(j) for j in app.state.served.model.get_support(indices=True)]

    return app
