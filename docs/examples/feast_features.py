"""Features of a Feast store: historical rows for a run, the selected columns as a service, and online predictions.

Needs Feast: ``pip install feast``. Files and a SQLite store in a folder stand for a warehouse and an online store.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
from feast import Entity, FeatureService, FeatureStore, FeatureView, Field, FileSource, RepoConfig, ValueType
from feast.types import Float64

from tamis import FIRES, SGDLogisticRegression, StreamPipeline

NAMES = ["heat", "sound", "light", "pressure", "humidity", "current"]
START = datetime(2026, 3, 1, tzinfo=UTC)


def write_rows(folder: Path, n: int = 2000) -> pd.DataFrame:
    """Write features of 50 machines, one row every ten minutes; return the times at which a state was observed."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(n, len(NAMES))), columns=NAMES)
    rows["machine"] = rng.integers(0, 50, n)
    rows["event_timestamp"] = [START + timedelta(minutes=10 * i) for i in range(n)]
    rows.to_parquet(folder / "machines.parquet")
    # States are observed five minutes later, and recorded in the local time of the plant.
    observed = (rows["event_timestamp"] + timedelta(minutes=5)).dt.tz_convert("Europe/Berlin")
    state = np.where(rows["pressure"] - rows["current"] > 0, "on", "off")
    return pd.DataFrame({"machine": rows["machine"], "event_timestamp": observed, "state": state})


def open_store(folder: Path) -> tuple[FeatureStore, FeatureView]:
    """Return a store with a view of all features."""
    config = RepoConfig(
        registry=str(folder / "registry.db"), project="plant", provider="local",
        online_store={"type": "sqlite", "path": str(folder / "online.db")}, entity_key_serialization_version=3,
    )  # fmt: skip
    machine = Entity(name="machine", join_keys=["machine"], value_type=ValueType.INT64)
    view = FeatureView(
        name="measurements", entities=[machine], ttl=timedelta(days=30),
        schema=[Field(name=name, dtype=Float64) for name in NAMES],
        source=FileSource(path=str(folder / "machines.parquet"), timestamp_field="event_timestamp"),
    )  # fmt: skip
    store = FeatureStore(config=config)
    store.apply([machine, view])
    return store, view


def learn(store: FeatureStore, labels: pd.DataFrame) -> StreamPipeline:
    """Learn from the features as they were when each state was observed, in the order of time."""
    features = [f"measurements:{name}" for name in NAMES]
    rows = store.get_historical_features(entity_df=labels, features=features).to_df()
    rows = rows.sort_values("event_timestamp", kind="stable")
    model = StreamPipeline(FIRES(2), SGDLogisticRegression())
    for start in range(0, len(rows), 100):
        batch = rows[start : start + 100]
        model.partial_fit(batch[NAMES], batch["state"], classes=["off", "on"])
    return model


def serve(store: FeatureStore, view: FeatureView, model: StreamPipeline) -> FeatureService:
    """Register the selected features as a service, and copy the latest values to the online store."""
    selected = [str(name) for name in model.get_feature_names_out()]
    service = FeatureService(name="state_of_a_machine", features=[view[selected]])
    store.apply([service])
    store.materialize(START - timedelta(days=1), START + timedelta(days=30))
    return service


def predict(store: FeatureStore, model: StreamPipeline, machines: list[int]) -> list[str]:
    """Predict from the online values of the selected features; the model ignores the others."""
    service = store.get_feature_service("state_of_a_machine")
    values = store.get_online_features(service, [{"machine": machine} for machine in machines]).to_df()
    rows = values.reindex(columns=NAMES, fill_value=0.0)
    return [str(label) for label in model.predict(rows)]


def main(folder: Path) -> tuple[list[str], list[str]]:
    """Run all steps; return the features of the service, and predictions for three machines."""
    labels = write_rows(folder)
    store, view = open_store(folder)
    model = learn(store, labels)
    service = serve(store, view, model)
    names = [
        feature.name for projection in service.feature_view_projections for feature in projection.features
    ]
    return names, predict(store, model, [0, 1, 2])


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        print(*main(Path(place)))
