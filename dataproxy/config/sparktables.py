"""Options that only the Spark sink and the Spark reader have; read without pyspark, as ``dataproxy explain`` does."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Option

__all__ = ["FORMATS", "FORMAT_OPTIONS", "READ_OPTIONS", "SINK_OPTIONS"]

FORMATS: Final = ("raw", "csv", "kv", "json")
"""How the sink makes bodies."""

_TIMES: Final = ("iso", "iso_micros", "sql", "sql_micros", "millis")  # as in rows/bodies, which this does not know

FORMAT_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "format",
        "choice",
        "",
        "How a body is made: `raw` takes the column `value`, which is the default where there is one; `json`, `csv`"
        " (delimited text) and `kv` (key-value text) are made of all columns that have no meaning of their own.",
        choices=("", *FORMATS),
    ),
    Option(
        "bodyColumns",
        "names",
        (),
        "Columns of the body, in this order; may name columns that have a meaning as well. By default all others.",
    ),
    Option("separator", "text", "", "Character between values (`csv`, default `,`) or entries (`kv`, default `&`)."),
    Option("kvSeparator", "text", "=", "Character between key and value."),
    Option("escape", "text", "\\", "Character in front of those that have a meaning; empty for none."),
    Option(
        "quote",
        "text",
        "",
        "The reader's quote character: it is escaped too, and without `escape` used to mask the others.",
    ),
    Option(
        "lineSeparator",
        "text",
        "",
        "Set it where the reader splits a body into lines: the character is escaped (`csv`) or refused (`kv`).",
    ),
    Option(
        "nullText",
        "text",
        "",
        "Text of a null in `csv`, and in `kv` where nulls are not left out. A value of that text is a bad record in a"
        " column that may be null, so that the two can be told apart, unless an empty text is given here.",
    ),
    Option("ignoreNullFields", "bool", True, "Leave nulls out of `json` objects and of `kv`."),
    Option(
        "timestampFormat",
        "choice",
        "iso",
        "`iso` (2013-01-01T05:00:00.000-05:00, as `to_json`), `iso_micros`, `sql` (2013-01-01 05:00:00), `sql_micros`,"
        " or `millis` since 1970.",
        choices=_TIMES,
    ),
    Option("timeZone", "text", "", "Time zone of timestamps in bodies; by default the session's."),
)
"""Options that say what bodies are made of."""

SINK_OPTIONS: Final[tuple[Option, ...]] = (
    Option("streamId", "text", "", "Stream (InLong streamId) of all rows. It overrides the column `stream_id`."),
    Option(
        "rowIds",
        "bool",
        True,
        "Give each row an id that stays the same when its task or micro-batch runs again, so that a hub with"
        " de-duplication, or a consumer, can recognise the copy. About 40 bytes a row. Rows with a column `msg_id` keep"
        " theirs. Off for message types other than 7.",
    ),
    Option(
        "runId",
        "text",
        "",
        "Name of a batch write, such as `app-17` for micro-batch 17 of `foreachBatch`: when it is written again under"
        " this name, its rows have the same ids as before, and a hub with de-duplication stores them once. Use a name"
        " for one write only.",
    ),
    Option(
        "idFrom",
        "names",
        (),
        "Columns whose values together say which row of the input a row is, such as `topic,partition,offset`: ids are"
        " made of them, and not of the place of a row in its partition, so that they stay when Spark cuts partitions in"
        " another way. Columns of integers, string, binary, boolean, date or timestamp; without `format` they are not"
        " sent.",
    ),
    Option(
        "connectCheck",
        "choice",
        "warn",
        "What the driver does about proxies that it cannot connect to before any task starts: `warn` names them in"
        " its log, `fail` ends the write if none answers. `off` does not try, for where only executors reach them.",
        choices=("warn", "fail", "off"),
    ),
    Option(
        "reportFile",
        "text",
        "",
        "File on the driver's machine that gets the books of a write as JSON, when it was committed and when it failed;"
        " a streaming query adds a line for each micro-batch.",
    ),
    Option(
        "reportFolder",
        "text",
        "",
        "Folder that the driver and all executors see, as a path or URI: in it each attempt of a task leaves its counts"
        " until the write is over. By default a temporary folder of the driver's machine.",
    ),
    Option(
        "reportCallback",
        "text",
        "",
        "Function `module:function` that is called with the JobReport after a commit, in the process in which Spark"
        " commits on the driver's machine.",
    ),
    Option(
        "reportLog",
        "bool",
        True,
        "Write a line into the driver's log after each commit, and after a write that failed.",
    ),
    Option(
        "badRecords",
        "text",
        "fail",
        "What happens to rows that cannot be sent: `fail` ends the task, `skip` counts them, a path or URI gets them"
        " with the reasons as JSON lines.",
    ),
    Option(
        "nullGroupId", "text", "", "Group of rows whose column `group_id` is null; without it they are bad records."
    ),
    Option("nullStreamId", "text", "", "Stream of rows whose column `stream_id` is null; likewise."),
    Option(
        "columns",
        "names",
        (),
        "Columns with a meaning to the sink, as `stream_id` or `dt=seen_at`; all others are data. `none` for none. By"
        " default every column that has the name of one of the sink's.",
    ),
    Option(
        "columnPrefix",
        "text",
        "",
        "Prefix of the columns with a meaning, instead of `columns`: with `_` they are `_group_id`, `_stream_id`,"
        " `_dt`, `_attrs`, `_msg_id` (and `_key` with `ordering=key`), and `dt` is data.",
    ),
    *FORMAT_OPTIONS,
)
"""Options that only the sink has, in Spark's spelling."""

READ_OPTIONS: Final[tuple[Option, ...]] = (
    Option("streamId", "text", "", "Stream to read; all streams of the group without it."),
    Option(
        "token", "text", "", "The hub's token, where it has credentials and these are not to be given.", secret=True
    ),
    Option(
        "startingOffsets",
        "text",
        "",
        'First offset of each log: `earliest`, a number, or JSON by partition as `{"0": 17, "1": -2}`, where -2 stands'
        " for earliest, as do logs that are not named.",
    ),
    Option(
        "endingOffsets",
        "text",
        "",
        'Offset of each log in front of which reading ends: `latest`, a number, or JSON by partition as `{"0": 99}`,'
        " where -1 stands for latest, as do logs that are not named.",
    ),
    Option("startingTimestamp", "text", "", "Instead: the first entry that the hub got at this time (ms) or later."),
    Option("endingTimestamp", "text", "", "Instead: reading ends in front of the first entry of this time or later."),
    Option(
        "failOnDataLoss",
        "bool",
        True,
        "End a read whose rows were dropped by retention. `false` warns in the log and gives what is left.",
    ),
    Option(
        "maxPartitionBytes",
        "size",
        16 << 20,
        "Bytes of the store, which are mostly compressed, that a partition of the DataFrame reads, by the average entry"
        " of the log.",
        low=1,
        high=1 << 40,
    ),
    Option(
        "requestTimeout",
        "duration",
        30.0,
        "How long a request to the hub may take, waiting for its turn included.",
        low=0.1,
        high=3600.0,
    ),
)
"""Options that only a read has, in Spark's spelling."""
