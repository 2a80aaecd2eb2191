"""Proxies, connections and a clock that only the simulation moves; everything follows from one seed."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from typing import Any

from dataproxy.codes import RETRY_CLASS
from tests.native.probe_connections import Connections
from tests.sim.proxy import OUT_OF_STEP, Proxy, Temper, answer_of, frame_seq, take_frame

__all__ = ["Broken", "World"]

_DELIVERED, _FAILED, _EXPIRED, _DROPPED = 1, 2, 3, 4
_CONNECT_FAILED, _LOST, _PROTOCOL = 2, 3, 5
_LATE_US = 1000
_CALM_US = 60_000_000
_LAST = -1
_MS = 1000


class Broken(AssertionError):
    """An invariant does not hold; the message names the seed."""


@dataclass
class Socket:
    """One simulated socket of a connection."""

    index: int
    proxy: Proxy
    up: bool = False
    alive: bool = True
    blocked: bool = False
    lost_place: bool = False  # its server has said that it finds no frames in it
    arrives: int = 0  # bytes come in order
    to_server: bytearray = field(default_factory=bytearray)
    to_client: bytearray = field(default_factory=bytearray)


@dataclass
class Sent:
    """What was submitted under one number."""

    frame: bytes
    deadline: int
    touched: bool = False  # some byte of it was written
    given_up: bool = False
    heard: bool = False  # a success came for it over a connection that had carried it
    result: dict[str, Any] | None = None


class World:
    """Run one seed: ``World(seed).run()`` returns counts, or raises Broken."""

    def __init__(self, seed: int, *, trace: bool = False) -> None:
        rng = self.rng = random.Random(seed)
        self.seed = seed
        self.now = 1_000_000
        self.trace = trace
        self.many = seed % 10 == 1  # slow proxies, more than anybody wants to remember, and resends at will
        self.ack_timeout = rng.choice((20,) if self.many else (20, 100, 500)) * _MS
        self.heartbeat = rng.choice((0, 30, 200)) * _MS
        self.delivery = rng.choice((300, 1000, 2000) if self.many else (5, 50, 300, 2000, 5000)) * _MS
        self.pool = Connections(
            ack_timeout=self.ack_timeout,
            connect_timeout=rng.choice((10, 80)) * _MS,
            retry_backoff=rng.choice((0, 1, 10)) * _MS,
            retry_backoff_max=rng.choice((10, 100)) * _MS,
            reconnect_backoff=rng.choice((0, 1, 10)) * _MS,
            reconnect_backoff_max=rng.choice((10, 200)) * _MS,
            heartbeat=self.heartbeat,
            heartbeat_kind=rng.choice((8, 1)),
            heartbeat_retries=rng.randint(1, 3),
            avoid=rng.choice((10, 300)) * _MS,
            retry_share=1_000_000 if self.many else 200,
            classes={code: int(kind) for code, kind in RETRY_CLASS.items() if code < 256},
            seed=seed + 1,
            compress=rng.random() < 0.2,
            sheds=seed % 3 == 0,
        )
        self.shed_rng = random.Random(seed) if seed % 3 == 0 else None
        proxies = rng.randint(5, 14) if self.many else rng.randint(1, 4)
        self.proxies = [Proxy(f"p{i}:1", self._temper()) for i in range(proxies)]
        self.wanted = self._how_many()
        self.standbys = random.Random(f"standbys {seed}").choice((0, 0, 1, 2))
        self.sockets: dict[int, Socket] = {}
        self.sent: dict[int, Sent] = {}
        self.by_seq: dict[int, Sent] = {}
        self.by_frame: dict[bytes, Sent] = {}
        self.events: list[tuple[int, int, str, Any]] = []
        self.ticket = 0
        self.pending = 0
        self.aborted = False
        self.most_connections = self.wanted

    def _temper(self) -> Temper:
        return Temper.lagging(self.rng) if self.many and self.rng.random() < 0.9 else Temper.random(self.rng)

    def _how_many(self) -> int:
        return self.rng.randint(5, 14) if self.many else self.rng.randint(1, 4)

    # --- the script of a run

    def run(self) -> dict[str, int]:
        """Play the seed to its end."""
        rng = self.rng
        self._give_list()
        at, seq = self.now, rng.randrange(1 << 32)
        for ident in range(rng.randint(2, 10) if self.many else rng.randint(5, 40)):
            at += rng.choice((0, 0, 10, 1000, 30_000))
            self._later(at, "submit", (ident, (seq + ident) & 0xFFFFFFFF))
        for _ in range(rng.randint(0, 3)):
            self._later(rng.randrange(self.now, at + 500_000), rng.choice(("list", "temper", "temper")), None)
        if rng.random() < 0.15:
            self._later(rng.randrange(self.now, at + 500_000), "abort", None)
        if self.shed_rng is not None:
            for _ in range(self.shed_rng.randint(1, 30)):
                self._later(self.shed_rng.randrange(self.now, at + 100_000), "shed", None)
        self._pump()
        steps = self._play()
        if not self.aborted:
            steps += self._calm()
        self._finish()
        outcomes = [s.result["outcome"] for s in self.sent.values() if s.result]
        return {
            "delivered": outcomes.count(_DELIVERED), "failed": outcomes.count(_FAILED),
            "expired": outcomes.count(_EXPIRED), "dropped": outcomes.count(_DROPPED), "steps": steps,
            "retries": self.pool.facts()["retries"],
        }  # fmt: skip

    def _play(self) -> int:
        steps = 0
        while self.pending or any(kind == "submit" for _, _, kind, _ in self.events):
            steps += 1
            self._check(steps < 50_000, "the run does not end")
            if not self._step():
                break
        return steps

    def _calm(self) -> int:
        """Once every proxy is good, the next pack is delivered: no connection may be lost for good."""
        self.events = [event for event in self.events if event[2] not in ("abort", "temper")]
        heapq.heapify(self.events)
        for proxy in self.proxies:
            proxy.temper = Temper()
        seq = self.rng.randrange(1 << 32)
        frame = self.pool.submit(_LAST, seq, [b"last"], self.now + _CALM_US, self.now)
        self.sent[_LAST] = self.by_seq[seq] = Sent(frame, self.now + _CALM_US)
        self.pending += 1
        self._pump()
        steps = self._play()
        result = self.sent[_LAST].result
        self._check(result is not None and result["outcome"] == _DELIVERED, f"all is well, and yet: {result}")
        return steps

    def _step(self) -> bool:
        due = self.pool.next_due()
        first = self.events[0][0] if self.events else -1
        if due < 0 and first < 0:
            return False
        if first < 0 or 0 <= due < first:
            self.now = max(self.now, due)
        else:
            self.now = max(self.now, first)
            while self.events and self.events[0][0] <= self.now:
                _, _, kind, what = heapq.heappop(self.events)
                getattr(self, f"_on_{kind}")(what)
        self._expire()
        self._pump()
        return True

    def _finish(self) -> None:
        facts = self.pool.facts()
        for key in ("waiting", "backoff", "table", "settled"):
            self._check(facts[key] == 0, f"{key} is {facts[key]} at the end")
        for i in range(facts["connections"]):
            connection = self.pool.connection(i)
            self._check(not connection["queue"] and not connection["flight"], f"connection {i} holds packs at the end")
            held = connection["queue_bytes"] or connection["flight_bytes"]
            self._check(not held, f"connection {i} counts bytes at the end")
        self._check(facts["timers"] <= facts["connections"], "timers of packs are armed at the end")
        for ident, sent in self.sent.items():
            self._check(sent.result is not None, f"pack {ident} has no result")

    # --- events

    def _later(self, at: int, kind: str, what: Any) -> None:
        self.ticket += 1
        heapq.heappush(self.events, (at, self.ticket, kind, what))

    def _on_submit(self, what: tuple[int, int]) -> None:
        ident, seq = what
        rng = self.rng
        if self.aborted:
            return
        bodies = [bytes([ident & 255]) * rng.randint(1, 60) for _ in range(rng.randint(1, 4))]
        deadline = self.now + self.delivery - rng.choice((0, 0, self.delivery + 1))
        frame = self.pool.submit(ident, seq, bodies, deadline, self.now)
        self.sent[ident] = self.by_seq[seq] = self.by_frame[frame] = Sent(frame, max(deadline, self.now))
        self.pending += 1

    def _on_list(self, _: None) -> None:
        if not self.aborted:
            self._give_list()

    def _on_temper(self, _: None) -> None:
        self.rng.choice(self.proxies).temper = self._temper()

    def _on_abort(self, _: None) -> None:
        self.aborted = True
        self.pool.abort(-4)

    def _on_shed(self, _: None) -> None:
        """Give up a pack as a sender does; its executor hears of it a little later."""
        assert self.shed_rng is not None
        self._collect()  # what another event of this moment has settled is its executor's
        open_ = [
            ident for ident, sent in self.sent.items() if sent.result is None and not sent.given_up and ident != _LAST
        ]
        if not open_ or self.aborted:
            return
        ident = self.shed_rng.choice(open_)
        sent = self.sent[ident]
        sent.given_up = self.pool.give_up(ident)
        self._say("shed", ident, sent.given_up)
        self._check(sent.given_up != sent.touched, f"pack {ident} was given up: {sent.given_up}, sent: {sent.touched}")
        if sent.given_up:
            self._later(self.now + self.shed_rng.choice((0, 50, 5000)), "put_away", None)

    def _on_put_away(self, _: None) -> None:
        self.pool.put_away()

    def _on_connect(self, sock: Socket) -> None:
        if not sock.alive:
            return
        if sock.proxy.temper.connect == "refuse":
            self._drop(sock, _CONNECT_FAILED, 111)
            return
        sock.up = True
        self.pool.connected(sock.index, self.now)

    def _on_writable(self, sock: Socket) -> None:
        sock.blocked = False
        self._pump()  # an executor closes what it has to before it writes
        if sock.alive:
            self._write(sock)

    def _on_arrive(self, what: tuple[Socket, bytes]) -> None:
        sock, data = what
        if not sock.alive:
            return
        sock.to_server += data
        while True:
            frame = take_frame(sock.to_server)
            if frame is None:
                return
            if frame[4] & 0x1F == 7:
                sent = self.by_seq.get(frame_seq(frame))
                self._check(sent is None or not sent.given_up, "a frame that was given up is on the wire")
                self._check(sent is not None and sent.frame == frame, "a frame on the wire is not what was submitted")
            for delay, answer in sock.proxy.react(frame, self.rng, self.ack_timeout):
                self._later(self.now + delay, "answer", (sock, answer))

    def _on_answer(self, what: tuple[Socket, bytes | None]) -> None:
        sock, data = what
        if not sock.alive:
            return
        if data is None:
            self._drop(sock, _LOST, 104)
            return
        cut = self.rng.randint(0, len(data)) if self.rng.random() < 0.3 else 0
        for part in (data[:cut], data[cut:]):
            if part and sock.alive:
                sock.to_client += part
                status, used = self.pool.feed(sock.index, bytes(sock.to_client), self.now)
                del sock.to_client[:used]
                if status != 0:
                    self._drop(sock, _PROTOCOL, 0)
        if sock.alive and (said := answer_of(data)) is not None:
            self._heard(sock, *said)

    def _heard(self, sock: Socket, seq: int, code: int) -> None:
        """Check what comes of an answer that was read over the connection that had carried its frame."""
        sock.lost_place = sock.lost_place or code == OUT_OF_STEP
        sent = self.by_seq.get(seq)
        if code or sent is None or any(seq in proxy.refused_twice for proxy in self.proxies):
            return  # of two refusals of one attempt the second closes another one
        self._collect()
        sent.heard = sent.heard or sent.result is None
        half = [i for i in self.sockets if self._is_half_written(i, sent)]
        self._check(sent.result is not None or bool(half), f"L7 the success of number {seq} was thrown away")

    def _is_half_written(self, index: int, sent: Sent) -> bool:
        connection = self.pool.connection(index)
        return bool(connection["head_sent"]) and self.sent[connection["queue"][0]] is sent

    # --- what an executor does

    def _give_list(self) -> None:
        chosen = self.rng.sample(self.proxies, self.rng.randint(1, len(self.proxies)))
        self.wanted = self._how_many()
        self.most_connections = max(self.most_connections, self.wanted)
        self._say("list", [p.label for p in chosen], self.wanted)
        self.pool.endpoints([p.label for p in chosen], self.wanted, self.now, standbys=self.standbys)

    def _drop(self, sock: Socket, event: int, detail: int) -> None:
        sock.alive = False
        self.sockets.pop(sock.index, None)
        self._say("drop", sock.index, event)
        self.pool.lost(sock.index, event, detail, self.now)

    def _expire(self) -> None:
        before = {i: self.pool.connection(i) for i in self.sockets} if self.heartbeat else {}
        self.pool.expire(self.now)
        for i, old in before.items():
            new = self.pool.connection(i)
            if new["control"] > old["control"]:
                kept = set(old["queue"]) & set(new["queue"])
                self._check(not kept, f"connection {i} has a heartbeat although {kept} wait")

    def _pump(self) -> None:
        work = self.pool.take_work()
        while work is not None:
            index, what, event = work
            self._say(what, index, event)
            sock = self.sockets.get(index)
            if what == "close":
                if sock is not None:
                    sock.alive = False
                    del self.sockets[index]
                self.pool.lost(index, event, 0, self.now)
            elif what == "connect":
                self._connect(index)
            elif what == "write" and sock is not None and sock.up:
                self._write(sock)
            work = self.pool.take_work()
        kept = [i for i, sock in self.sockets.items() if sock.lost_place]
        self._check(not kept, f"connections {kept} are kept though their servers have lost their place")
        self._collect()

    def _connect(self, index: int) -> None:
        self._check(index not in self.sockets, f"connection {index} connects although it has a socket")
        label = self.pool.connection(index)["peer"]
        sock = Socket(index, next(p for p in self.proxies if p.label == label))
        self.sockets[index] = sock
        if sock.proxy.temper.connect != "silent":
            self._later(self.now + self.rng.randrange(10, 3000), "connect", sock)

    def _write(self, sock: Socket) -> None:
        while not sock.blocked and sock.alive:
            parts = self.pool.gather(sock.index, self.rng.randint(1, 5), 1 << 20)
            data = b"".join(parts)
            if not data:
                return
            n = len(data) if self.rng.random() < 0.6 else self.rng.randint(1, len(data))
            self._check(not sock.lost_place, "a frame is written where the server has lost its place")
            self._touch(parts, n)
            self.pool.wrote(sock.index, n, self.now)
            sock.arrives = max(sock.arrives, self.now + self.rng.randrange(10, 500))
            self._later(sock.arrives, "arrive", (sock, data[:n]))
            if n < len(data):
                sock.blocked = True
                self._later(self.now + self.rng.choice((100, 5000, 60_000)), "writable", sock)

    def _touch(self, parts: list[bytes], n: int) -> None:
        for part in parts:
            if n <= 0:
                return
            if part in self.by_frame:  # the rest of one that is half written is not
                self._check(not self.by_frame[part].given_up, "a frame that was given up is written")
                self.by_frame[part].touched = True
            n -= len(part)

    def _collect(self) -> None:
        for result in self.pool.take_settled():
            ident = result["ident"]
            sent = self.sent[ident]
            self._say("settled", ident, result)
            self._check(sent.result is None, f"pack {ident} was settled twice")
            self._check(
                sent.given_up or self.now <= sent.deadline + _LATE_US,
                f"pack {ident} was settled {self.now - sent.deadline} late",
            )
            self._check(not result["armed"], f"pack {ident} left with an armed timer")
            self._check(result["open_attempts"] >= 0, f"pack {ident} has {result['open_attempts']} open attempts")
            self._judge(ident, sent, result)
            sent.result = result
            self.pending -= 1

    def _judge(self, ident: int, sent: Sent, result: dict[str, Any]) -> None:
        seq = frame_seq(sent.frame)
        stored = [p.label for p in self.proxies if seq in p.stored]
        self._check(not sent.heard or result["outcome"] == _DELIVERED, f"L7 pack {ident} had a success: {result}")
        if result["outcome"] == _EXPIRED:
            self._check(self.now >= sent.deadline, f"pack {ident} expired {sent.deadline - self.now} early")
        self._check((result["outcome"] == _DROPPED) == sent.given_up, f"pack {ident} was given up, or not: {result}")
        if result["outcome"] == _DROPPED:
            self._check(not stored and not result["attempts"], f"pack {ident} was dropped, and {stored} stored it")
        elif result["outcome"] == _DELIVERED:
            self._check(bool(stored), f"pack {ident} is delivered and nobody stored it")
            self._check(result["node"] in stored, f"pack {ident} names {result['node']!r}, stored it have {stored}")
            self._check(result["code"] == 0, f"pack {ident} is delivered with code {result['code']}")
        elif stored and not any(seq in p.refused_twice for p in self.proxies):
            self._check(result["open_attempts"] > 0, f"pack {ident} is surely not delivered, but {stored} stored it")

    # --- talk

    def _check(self, holds: bool, text: str) -> None:
        if not holds:
            raise Broken(
                f"seed {self.seed} at {self.now} us: {text}  (python -m tests.sim --start {self.seed} --trace)"
            )

    def _say(self, *what: Any) -> None:
        if self.trace:
            print(self.now, *what)
