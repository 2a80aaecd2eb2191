"""Wires: bytes in, events out; events in, bytes out.

What lives here.  ``api`` describes what any wire can do: a table of pure functions (``WireOps``) for both roles,
client and server, and the structs that these functions fill.  Each folder below is one wire.  ``inlong`` is the
protocol of Apache InLong's DataProxy:

- client: ``encode`` writes frames and heartbeats, ``decode`` finds frames and reads replies;
- server: ``server`` judges one whole frame, with ``server_text`` for types 2 to 6 and ``server_binary`` for type 7;
  ``answer`` writes replies, ``misaddress`` makes them wrong for tests of clients;
- both: ``const`` (the layout), ``attrs`` (attribute text), ``items`` (the items of a body);
- stored form: ``container`` writes and reads InLongMsg containers, ``identity`` finds the ids of the messages in one;
- ``http``: the HTTP report, a table of its own for the same messages and the same stored form;
- ``codec`` is the table itself; ``message`` gives Python the parts that users and tests call.

``inlongv1`` is the second protocol of the same servers, protobuf packs: ``const``, ``encode``, ``decode``, ``server``
and ``codec`` in the same roles.  Both share connections, containers and codes, so ``inlongv1`` sees ``inlong``; its
table takes the frames of both.  ``registry`` finds the table for a family of frames.

``tubemq`` is the RPC of the queue behind a DataProxy: ``const``, ``frame``, ``rpc`` (what stands around each call),
``get``, ``send`` and ``commit`` (messages on the way of data), ``payload``, and ``record`` (as brokers store them).
``request`` and ``reply`` are a producer's, and ``codec`` is its table; ``serve`` and ``answers`` are a server's, and
``stored`` and ``deliver`` are messages as a hub keeps them, and packs of these.  ``volume`` is which flow rule holds.

``rocketmq`` is the remoting of RocketMQ 4.x, in both roles: ``const``, ``frame`` (found and
taken apart), ``header`` (read, of both forms), ``jsontext`` (the JSON in one form), ``write`` (frames written),
``values`` (numbers that are texts), ``send`` and ``pull`` (messages on the way of data), ``stored`` (messages as
brokers store them, items of batches, ids) and ``properties``.  ``serve`` is a server's, ``codec`` its table, and
``entry`` has messages as a hub keeps them.

Threads.  Any thread, without the GIL; the caller owns all buffers.  Locks: none.

What it may use.  ``base`` and ``plat/endian``; a wire also sees ``wire/api`` and itself, and no other wire but for
``inlongv1``, and for ``tubemq`` and ``rocketmq``, which see containers.  No sockets, clocks, threads, atomic
operations, and no Python objects outside ``message``.  All other folders see ``wire/api`` alone, but for those that
speak TubeMQ or RocketMQ; only ``producer`` and ``server`` cimport ``registry``, to pick a table.
"""
