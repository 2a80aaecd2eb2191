"""Option names of Kafka's producers and consumers: the option here that replaces each, and its unit."""

from __future__ import annotations

from typing import Final

from dataproxy.config.option import Word

__all__ = ["KAFKA_READ_WORDS", "KAFKA_WORDS"]


def _seconds(native: str, example: str) -> str:
    return f"here it is {{{native}}}, in seconds: {{{native}}}={example}"


def _bytes(native: str, example: int) -> str:
    return f"here it is {{{native}}}, in bytes: {{{native}}}={example}"


_RETRIES: Final = "retries have no number here: a message is sent again until {delivery_timeout} (seconds) has passed"
_ACKS: Final = (
    "every message is acknowledged here ({ack}='source'): leave it out; {ack}='none' for those that ask for none"
)
_BODIES: Final = "a body is bytes here: encode it before send"
_SECURITY: Final = (
    "encryption is {tls}=True here; proxies know a client by its certificate alone ({tls_certificate}), and a Manager"
    " accepts {manager_secret_id}, {manager_secret_key} and https://"
)
_REPORTS: Final = "here it is the argument on_delivery, called with the DeliveryResult of each message"
_TRANSACTIONS: Final = "there are no transactions here"
_STATS: Final = "call Producer.stats() at any time"

#: Names with underscores; names with dots and other spellings count as equal.  Names in braces are options here.
KAFKA_WORDS: Final[tuple[Word, ...]] = (
    Word(
        ("bootstrap_servers", "metadata_broker_list"), "here it is {target}: {target}='tcp://host1:46801,host2:46801'"
    ),
    Word(("topic",), "here a message goes to a group and a stream: {group_id}='g', then send('stream', body)"),
    Word(("linger_ms", "queue_buffering_max_ms"), _seconds("linger", "0.005")),
    Word(("batch_size", "max_batch_size"), _bytes("batch_bytes", 262144)),
    Word(("batch_num_messages",), "here it is {batch_messages}, in messages: {batch_messages}=10000"),
    Word(("buffer_memory",), _bytes("buffer_bytes", 67108864)),
    Word(("queue_buffering_max_kbytes",), _bytes("buffer_bytes", 67108864)),
    Word(("queue_buffering_max_messages",), "here it is {buffer_messages}, in messages: {buffer_messages}=100000"),
    Word(("max_block_ms",), _seconds("max_block", "60")),
    Word(("delivery_timeout_ms", "message_timeout_ms"), _seconds("delivery_timeout", "120")),
    Word(("request_timeout_ms",), _seconds("ack_timeout", "10")),
    Word(("socket_connection_setup_timeout_ms",), _seconds("connect_timeout", "5")),
    Word(("retries", "message_send_max_retries"), _RETRIES),
    Word(("retry_backoff_ms",), _seconds("retry_backoff", "0.1")),
    Word(("retry_backoff_max_ms",), _seconds("retry_backoff_max", "5")),
    Word(("reconnect_backoff_ms",), _seconds("reconnect_backoff", "0.1")),
    Word(("reconnect_backoff_max_ms",), _seconds("reconnect_backoff_max", "10")),
    Word(("metadata_max_age_ms", "topic_metadata_refresh_interval_ms"), _seconds("discovery_interval", "120")),
    Word(
        ("connections_max_idle_ms",),
        "idle connections stay open here; heartbeats check them ({heartbeat_interval})",
    ),
    Word(("acks", "request_required_acks"), _ACKS),
    Word(
        ("max_in_flight_requests_per_connection", "max_in_flight"),
        "{buffer_bytes} limits what is in flight here; {ordering}='key' keeps the order through retries",
    ),
    Word(
        ("compression_type", "compression_codec"),
        "here it is {compression}, 'snappy' or 'none': {compression}='snappy'",
    ),
    Word(("max_request_size", "message_max_bytes"), _bytes("max_frame_bytes", 524288)),
    Word(("client_id",), "a producer has no name here: its messages have unique ids"),
    Word(
        ("enable_idempotence",),
        "every message has an id here, by which a hub (option dedupe='ids') or a reader removes copies",
    ),
    Word(("transactional_id", "transaction_timeout_ms"), _TRANSACTIONS),
    Word(("key_serializer",), "a key is bytes or text here: send(..., key='k'), with {ordering}='key'"),
    Word(("value_serializer",), _BODIES),
    Word(
        ("partitioner",), "a proxy and its store choose the partition here; {ordering}='key' keeps the order of a key"
    ),
    Word(("socket_nagle_disable",), "here it is {nagle}, with the opposite meaning: {nagle}=False"),
    Word(("security_protocol", "sasl_mechanism", "sasl_mechanisms", "sasl_username", "sasl_password"), _SECURITY),
    Word(("sasl_plain_username", "sasl_plain_password"), _SECURITY),
    Word(("ssl_context",), "here files are given: {tls_ca}, {tls_certificate}, {tls_key}"),
    Word(("ssl_cafile", "ssl_ca_location"), "here it is {tls_ca}, with {tls}=True"),
    Word(("ssl_certfile", "ssl_certificate_location"), "here it is {tls_certificate}, with {tls}=True"),
    Word(("ssl_keyfile", "ssl_key_location"), "here it is {tls_key}"),
    Word(("ssl_password", "ssl_key_password"), "here it is {tls_key_password}"),
    Word(("ssl_check_hostname", "ssl_endpoint_identification_algorithm"), "here it is {tls_verify}='full' or 'chain'"),
    Word(("loop",), "an AsyncProducer uses the loop that is running"),
    Word(("dr_cb", "dr_msg_cb"), _REPORTS),
    Word(("stats_cb", "statistics_interval_ms"), _STATS),
    Word(("error_cb",), "errors of connections go to the logger 'dataproxy.conn'"),
)

_READ_SECURITY: Final = "encryption is {tls}=True here; {user} and {password} sign requests where servers ask for it"
_OWN_BODIES: Final = "a body is bytes here: decode record.body"

#: The same of Kafka's consumers.
KAFKA_READ_WORDS: Final[tuple[Word, ...]] = (
    Word(
        ("bootstrap_servers", "metadata_broker_list"),
        "here it is {target}, TubeMQ's masters: {target}='tubemq://master1:8715,master2:8715'",
    ),
    Word(("topic",), "here it is {topics}: {topics}='orders'"),
    Word(("auto_offset_reset",), "here it is {start}: {start}='latest'"),
    Word(
        ("enable_auto_commit", "enable_auto_offset_store"),
        "here it is {auto_confirm}; without it the application confirms: consumer.confirm(pack)",
    ),
    Word(
        ("auto_commit_interval_ms",),
        "confirms have no period here: with {auto_confirm} a pack is confirmed when the next one is asked for",
    ),
    Word(("max_poll_records",), "poll returns one pack, half a megabyte of messages or one larger message"),
    Word(("max_poll_interval_ms",), _seconds("confirm_timeout", "300") + ", for each pack"),
    Word(("session_timeout_ms",), "servers are set to the time after which a silent member is gone"),
    Word(("heartbeat_interval_ms",), _seconds("heartbeat_interval", "10")),
    Word(
        ("fetch_max_bytes", "max_partition_fetch_bytes", "fetch_message_max_bytes"), _bytes("prefetch_bytes", 67108864)
    ),
    Word(("queued_max_messages_kbytes", "queued_min_messages"), _bytes("prefetch_bytes", 67108864)),
    Word(
        ("fetch_min_bytes", "fetch_max_wait_ms", "fetch_wait_max_ms"),
        "what is there is fetched at once; {not_found_wait} is the wait after a broker had nothing",
    ),
    Word(("consumer_timeout_ms",), "poll has a timeout, in seconds: consumer.poll(timeout=2)"),
    Word(("request_timeout_ms", "socket_timeout_ms"), _seconds("call_timeout", "10")),
    Word(("socket_connection_setup_timeout_ms",), _seconds("connect_timeout", "3")),
    Word(("client_id", "group_instance_id"), "a consumer makes its own name here: consumer.client"),
    Word(
        ("partition_assignment_strategy",),
        "the master divides partitions; with {balance}='client' the application does, by assign()",
    ),
    Word(("isolation_level",), _TRANSACTIONS),
    Word(("key_deserializer", "value_deserializer"), _OWN_BODIES),
    Word(("security_protocol", "sasl_mechanism", "sasl_mechanisms"), _READ_SECURITY),
    Word(("sasl_username", "sasl_plain_username"), "here it is {user}"),
    Word(("sasl_password", "sasl_plain_password"), "here it is {password}"),
    Word(("ssl_context",), "here files are given: {tls_ca}, {tls_certificate}, {tls_key}"),
    Word(("ssl_cafile", "ssl_ca_location"), "here it is {tls_ca}, with {tls}=True"),
    Word(("ssl_certfile", "ssl_certificate_location"), "here it is {tls_certificate}, with {tls}=True"),
    Word(("ssl_keyfile", "ssl_key_location"), "here it is {tls_key}"),
    Word(("ssl_password", "ssl_key_password"), "here it is {tls_key_password}"),
    Word(("ssl_check_hostname", "ssl_endpoint_identification_algorithm"), "here it is {tls_verify}='full' or 'chain'"),
    Word(("stats_cb", "statistics_interval_ms"), "call Consumer.stats() at any time"),
    Word(("error_cb",), "errors of connections go to the logger 'dataproxy.consumer'"),
)
