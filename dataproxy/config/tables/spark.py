"""Options that only Spark's sink, reader and source have.  Needs no pyspark: ``dataproxy explain`` reads it too."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Option

__all__ = ["FORMATS", "FORMAT_OPTIONS", "OF_CONSUMERS", "READ_OPTIONS", "SINK_OPTIONS", "SOURCE_OPTIONS"]

FORMATS: Final = ("raw", "csv", "kv", "json")
"""The ways in which the sink makes bodies."""

_TIMES: Final = ("iso", "iso_micros", "sql", "sql_micros", "millis")  # the same as in rows/bodies

FORMAT_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "format",
        "choice",
        "",
        "How a body is made: `raw` takes the column `value`, which is the default where there is one; `json`, `csv`"
        " (delimited text) and `kv` (key-value text) are made of all columns that the sink does not use itself.",
        choices=("", *FORMATS),
    ),
    Option(
        "bodyColumns",
        "names",
        (),
        "Columns of the body, in this order; columns that the sink uses may be named, too. By default all others.",
    ),
    Option("separator", "text", "", "Character between values (`csv`, default `,`) or entries (`kv`, default `&`)."),
    Option("kvSeparator", "text", "=", "Character between key and value."),
    Option("escape", "text", "\\", "Character before characters with a meaning; empty for none."),
    Option(
        "quote",
        "text",
        "",
        "The reader's quote character. It is escaped, too; without `escape` values with special characters are put"
        " in quotes.",
    ),
    Option(
        "lineSeparator",
        "text",
        "",
        "Set it if the reader splits a body into lines: the character is escaped (`csv`) or refused (`kv`).",
    ),
    Option(
        "nullText",
        "text",
        "",
        "Text of a null in `csv`, and in `kv` where nulls are not left out. In a column that may be null, a value equal"
        " to this text is a bad record, because readers could not tell it from a null; an empty text here allows"
        " such values.",
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
"""Options for bodies that are made of columns."""

SINK_OPTIONS: Final[tuple[Option, ...]] = (
    Option("streamId", "text", "", "Stream (InLong streamId) of all rows. It overrides the column `stream_id`."),
    Option(
        "rowIds",
        "bool",
        True,
        "Give each row an id that stays the same when its task or micro-batch runs again, so that a hub with"
        " de-duplication, or a consumer, can recognise copies. About 40 bytes a row. Rows with a column `msg_id` keep"
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
        "Columns whose values together identify a row of the input, such as `topic,partition,offset`. Ids are made from"
        " them, and not from the place of a row in its partition, so they stay the same when Spark partitions the"
        " input in another way. Columns of integers, string, binary, boolean, date or timestamp; without `format` they"
        " are not sent.",
    ),
    Option(
        "connectCheck",
        "choice",
        "warn",
        "Before any task starts the driver connects to each proxy; this option says what it does if a connection"
        " fails: `warn` names the proxies in its log, `fail` ends the write if no proxy can be reached. `off` does"
        " not connect, for drivers that cannot reach the proxies.",
        choices=("warn", "fail", "off"),
    ),
    Option(
        "reportFile",
        "text",
        "",
        "File on the driver's machine for the counts of a write as JSON, written after a commit and after a failure; a"
        " streaming query adds a line for each micro-batch.",
    ),
    Option(
        "reportFolder",
        "text",
        "",
        "Folder that the driver and all executors see, as a path or URI: each attempt of a task keeps its counts there"
        " until the write ends. By default a temporary folder of the driver's machine.",
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
        "What happens to rows that cannot be sent: `fail` ends the task, `skip` counts them, and a path or URI names"
        " a folder for them, as JSON lines with the reasons.",
    ),
    Option(
        "nullGroupId", "text", "", "Group of rows whose column `group_id` is null; without it they are bad records."
    ),
    Option(
        "nullStreamId", "text", "", "Stream of rows whose column `stream_id` is null; without it they are bad records."
    ),
    Option(
        "columns",
        "names",
        (),
        "Columns that the sink uses, as `stream_id` or `dt=seen_at`; all others are data. `none` for none. By default"
        " every column whose name the sink knows.",
    ),
    Option(
        "columnPrefix",
        "text",
        "",
        "Prefix of the columns that the sink uses, instead of `columns`: with `_` they are `_group_id`, `_stream_id`,"
        " `_dt`, `_attrs`, `_msg_id` (and `_key` with `ordering=key`), and `dt` is data.",
    ),
    *FORMAT_OPTIONS,
)
"""Options that only the sink has, in Spark's spelling."""

READ_OPTIONS: Final[tuple[Option, ...]] = (
    Option("streamId", "text", "", "Stream to read; all streams of the group without it."),
    Option("token", "text", "", "The hub's token, to use instead of the hub's credentials.", secret=True),
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
        'Offset of each log before which reading ends: `latest`, a number, or JSON by partition as `{"0": 99}`,'
        " where -1 means latest, which is also the default of logs that are not named.",
    ),
    Option(
        "startingTimestamp",
        "text",
        "",
        "Alternative to offsets: begin at the first entry that the hub received at this time (ms) or later.",
    ),
    Option("endingTimestamp", "text", "", "Alternative to offsets: end before the first entry of this time or later."),
    Option(
        "failOnDataLoss",
        "bool",
        True,
        "Fail a read if retention dropped some of its rows. `false` logs a warning and reads the rest.",
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
        "Longest time of a request to the hub, including the wait for its turn.",
        low=0.1,
        high=3600.0,
    ),
)
"""Options that only a read has, in Spark's spelling."""

OF_CONSUMERS: Final = (
    "target",
    "group",
    "topics",
    "call_timeout",
    "connect_timeout",
    "heartbeat_interval",
    "user",
    "password",
    "tls",
    "tls_ca",
    "tls_verify",
    "tls_server_name",
    "tls_certificate",
    "tls_key",
    "tls_key_password",
    "tls_min_version",
)
"""Options of a consumer that the source has, too."""

SOURCE_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "filters",
        "names",
        (),
        "Filter items of the topics that have none of their own in `topics`, with commas between them: only messages"
        " with one of these values of `$msgType$` (InLong streamId) are read.",
    ),
    Option(
        "records",
        "choice",
        "raw",
        "What a row is: `raw`, a message as it is in the topic, or `inlong`, a record out of a container that a"
        " DataProxy has written.",
        choices=("raw", "inlong"),
        importance="high",
    ),
    Option(
        "startingOffsets",
        "text",
        "",
        "Where reading begins: `earliest` (default of a batch), `latest` (default of a stream), `stored` (the offset"
        " that is stored for the group at the brokers, without one the oldest message), or JSON by partition as"
        ' `{"1:orders:0": 280, "1:orders:1": "earliest"}`, where partitions that are not named begin at the default.'
        " A stream that has a checkpoint goes on there.",
        importance="high",
    ),
    Option(
        "endingOffsets",
        "text",
        "",
        "Where a batch ends: `latest` (default), `stored`, or JSON by partition; partitions that are not named end at"
        " the newest message of the moment when the read is planned.",
        importance="high",
    ),
    Option(
        "maxOffsetsPerTrigger",
        "int",
        0,
        "Most offsets of a micro-batch, divided between partitions by what each has to read; 0 means no limit."
        " Partitions that share a store count the messages of the others, too. Needs Spark 4.2.",
        low=0,
        high=1 << 62,
    ),
    Option(
        "minPartitions",
        "int",
        0,
        "Divide ranges until there are so many partitions of the DataFrame, where a topic's partition has its store"
        " for itself. 0: one for each partition of the topics.",
        low=0,
        high=1 << 20,
    ),
    Option(
        "failOnDataLoss",
        "bool",
        True,
        "Fail if messages of a range are not there any more, or damaged. `false` logs a warning and reads the rest.",
    ),
    Option(
        "malformed",
        "choice",
        "fail",
        "What happens with `records=inlong` to a message that is no container, or a damaged one: `fail` ends the task,"
        " `skip` counts it in the executor's log.",
        choices=("fail", "skip"),
    ),
    Option(
        "timeZone",
        "text",
        "UTC",
        "Time zone of the attribute `$msgTime$`, which producers write in their local time.",
    ),
    Option(
        "groupWait",
        "duration",
        45.0,
        "How long the start of a stream waits for a group that another reader has. What was killed on another machine"
        " keeps the group until the brokers miss its heartbeats (30 s unless configured there).",
        low=0.0,
        high=3600.0,
    ),
    Option(
        "listingInterval",
        "duration",
        30.0,
        "Time between two questions to a master for the partitions of the topics: so soon does a stream read from new"
        " ones.",
        low=0.0,
        high=86400.0,
    ),
)
"""Options that only the source of TubeMQ's topics has, in Spark's spelling."""
