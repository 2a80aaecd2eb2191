"""A notebook as a script: a month of real flights as a DataFrame, sent row by row, read back, compared and drawn.

python examples/tables_notebook.py [FOLDER]

Cells begin with ``# %%``, as editors run them one by one.  The picture is FOLDER/tables.png (default: demo-out).
"""

# %% What is needed: Polars, and a hub in this process
from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import polars as pl
from flights_source import unpack

import dataproxy
from dataproxy.hub import Hub

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-out")
hub = Hub()

# %% The table: flights of January 2013, an id for each, and a stream for each airline
with tempfile.TemporaryDirectory() as place:
    year = pl.read_csv(unpack(Path(place), None)[0], null_values=["NA", ""])
flights = year.filter(pl.col("month") == 1).with_columns(
    pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC"),
    pl.concat_str(pl.lit("s_"), pl.col("carrier")).alias("stream"),
    pl.int_range(pl.len()).cast(pl.String).alias("id"),
)
print(f"{flights.height:,} rows, {flights.width} columns")

# %% Send: each row is a JSON message with its own stream, data time and id
with dataproxy.Producer(hub.target, group_id="b_flights") as producer:
    batch = producer.send_rows(None, flights, stream_column="stream", dt_column="time_hour", id_column="id")
    result = batch.result(timeout=60)
print(f"{result.accepted:,} accepted, {result.delivered:,} acknowledged, {result.refused} refused")

# %% Read back, and compare every row with the table
sent = {row.pop("id"): row for row in flights.to_dicts()}
wrong = 0
stored: Counter[str] = Counter()
for record in hub.records("b_flights"):
    row = sent.pop(record.message_id)
    stored[row.pop("stream")] += 1
    wrong += record.dt_ms != int(row.pop("time_hour").timestamp() * 1000)
    wrong += json.loads(record.body) != {name: value for name, value in row.items() if value is not None}
print(f"{stored.total():,} stored; {len(sent)} missing, {wrong} changed")

# %% A picture: rows by airline, in the table and in the hub
import matplotlib as mpl  # noqa: E402 - the cell of the picture

mpl.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

counts = flights.group_by("stream").len().sort("len", descending=True)
names = counts["stream"].to_list()
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.bar(names, counts["len"].to_list(), color="#2b6cb0", alpha=0.35, label="rows of the table")
left.plot(names, [stored[name] for name in names], "o", color="#c8553d", label="messages in the hub")
left.set_ylabel("rows")
left.set_title("One stream for each airline")
left.tick_params(axis="x", rotation=60)
left.legend()
hours = flights.group_by("hour").agg(pl.col("dep_delay").mean()).sort("hour").drop_nulls()
right.plot(hours["hour"].to_list(), hours["dep_delay"].to_list(), marker="o", color="#5a8f4e")
right.set_xlabel("hour of departure")
right.set_ylabel("mean delay, minutes")
right.set_title("What was sent: delays of January 2013")
right.grid(alpha=0.3)
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "tables.png", dpi=130)
print(f"picture: {folder / 'tables.png'}")

# %% The end: the hub goes, and the exit status says whether each row came back
hub.close()
sys.exit(1 if sent or wrong or not result.ok else 0)
