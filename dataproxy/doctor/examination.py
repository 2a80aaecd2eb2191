"""All checks in their order, and ``examine``."""

from __future__ import annotations

import contextlib
import ssl
import time
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from dataproxy.config import load_producer_config
from dataproxy.config.rules import LEAST_FRAME_BYTES
from dataproxy.doctor.advice import proxy_findings, setting_findings
from dataproxy.doctor.clocks import clock_findings
from dataproxy.doctor.findings import Finding, Findings, Level, ManagerReport, ProxyReport
from dataproxy.doctor.installation import installation_findings, read_versions
from dataproxy.doctor.limits import limit_findings, read_limits
from dataproxy.doctor.managers import ask, manager_findings
from dataproxy.doctor.names import Address, addresses_of, look_up, name_findings
from dataproxy.doctor.proxies import Plan, look_at
from dataproxy.errors import ConfigError, DiscoveryError
from dataproxy.messagetypes import has_item_attributes
from dataproxy.problems import seconds as seconds_of
from dataproxy.producer.discovery.credentials import Credentials
from dataproxy.producer.discovery.limited import side_by_side
from dataproxy.producer.discovery.listfile import read_list
from dataproxy.producer.discovery.targets import is_numeric, parse_target, refuse_masters
from dataproxy.producer.ingest.names import check_name
from dataproxy.trust.files import proxy_files, uses_tls
from dataproxy.types import DnsTarget, Endpoint, FileTarget, ManagerTarget, ProxyList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dataproxy.config import ProducerConfig
    from dataproxy.producer.discovery.credentials import ManagerAuth

__all__ = ["DEFAULT_TIMEOUT", "Examination", "examine"]

DEFAULT_TIMEOUT: Final = 5.0
_LONGEST_TIMEOUT: Final = 600.0
_AT_A_TIME: Final = 32  # of `side_by_side`
_STEPS: Final = 3  # connection with TLS, heartbeat, message
_SIZE_STEPS: Final = 8
_GRACE: Final = 1.0
_MOST_ADDRESSES: Final = 512  # that are looked at: a Manager may name any number
_AROUND_BYTES: Final = 1536  # most of a frame beside the body: two names of 256 bytes, attributes, fields
_AROUND_FORM_BYTES: Final = 512  # most of a request beside names and body
_ENCODED: Final = 3  # bytes that one byte may need in a form
_THREAD: Final = "dataproxy-doctor"


def examine(
    target: str | list[str] | tuple[str, ...] | None = None,
    *,
    group_id: str | None = None,
    stream_id: str = "",
    send: bool = False,
    body: bytes = b"",
    frame_limit: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    config: ProducerConfig | None = None,
    tls: ssl.SSLContext | bool | None = None,
    progress: Callable[[str], object] | None = None,
    manager_auth: ManagerAuth | None = None,
    **options: Any,
) -> Findings:
    """Check everything between this machine and a cluster, and return what was found.

    ``target`` and ``options`` are those of a Producer, read from the environment too; without a target only this
    machine and installation are checked.  ``config`` gives settled options instead.  ``send`` sends one marked message
    (``body``, else a line that says what it is) to each proxy, for ``group_id`` and ``stream_id``; without it only
    heartbeats are sent.  ``frame_limit`` tries a heartbeat of ``max_frame_bytes``.  ``timeout`` is the longest time of
    one step, in seconds.  Connections to proxies have TLS where a producer's would, with the same files; a context as
    ``tls`` takes the place of these files.  ``manager_auth`` is that of a Producer.  ``progress`` is called with one
    line of text for each step, from any thread.

    Blocks; the time is bounded by a few times ``timeout`` for every 32 addresses.  Raises ConfigError and
    InvalidMessageError for arguments that are not allowed, before anything is sent.  A problem of a server is never
    raised: it is a finding.  Any thread; makes no producer.
    """
    if isinstance(tls, bool):
        options["tls"], tls = tls, None
    if config is None:
        if isinstance(target, str):
            refuse_masters(target)
        config = load_producer_config(target, require_target=False, group_id=group_id, **options)
    elif target is not None or group_id is not None or options:
        raise ConfigError("config was given beside options", hint="use config.replace(...)")
    examination = Examination(
        config, stream_id=stream_id, send=send, body=body, frame_limit=frame_limit, timeout=timeout, tls=tls,
        progress=progress, manager_auth=manager_auth,
    )  # fmt: skip
    examination.run()
    return examination.findings()


class Examination:
    """Run the checks; ``findings`` may also be asked after an interruption.  One thread.

    Raises ConfigError and InvalidMessageError, as ``examine`` says.
    """

    def __init__(
        self,
        config: ProducerConfig,
        *,
        stream_id: str = "",
        send: bool = False,
        body: bytes = b"",
        frame_limit: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        tls: ssl.SSLContext | None = None,
        progress: Callable[[str], object] | None = None,
        manager_auth: ManagerAuth | None = None,
    ) -> None:
        self._timeout = _checked_timeout(timeout)
        self._config = config.replace(manager_timeout=max(self._timeout, 0.01))
        self._target = parse_target(config.target) if config.target else None
        self._check(stream_id, send, body)
        self._stream_id, self._send, self._body, self._frame_limit = stream_id, send, body, frame_limit
        if tls is not None and not isinstance(tls, ssl.SSLContext):
            raise ConfigError(f"tls is of type {type(tls).__name__}", hint="give True, False or an ssl.SSLContext")
        self._tls = tls or _encryption(self._config)
        asks = isinstance(self._target, ManagerTarget)
        self._credentials = Credentials(self._config, manager_auth) if asks else None
        self._progress = progress or (lambda _line: None)
        self._started = time.monotonic()
        self._found = Findings(
            config.target, config.group_id, stream_id, datetime.now(UTC).isoformat(timespec="seconds"), finished=False
        )
        self._cluster_limit = 0
        self._left_out = 0

    @contextlib.contextmanager
    def watched(self, progress: Callable[[str], object]) -> Iterator[None]:
        """Call ``progress`` with one line of text for each step while the block runs, from any thread."""
        before, self._progress = self._progress, progress
        try:
            yield
        finally:
            self._progress = before

    def _check(self, stream_id: str, send: bool, body: bytes) -> None:
        config = self._config
        kind = config.message_type
        if not isinstance(body, bytes):
            raise ConfigError(f"body is of type {type(body).__name__}, not bytes", hint="encode it")
        if config.group_id:
            check_name("group", config.group_id, message_type=kind)
        if stream_id:
            check_name("stream", stream_id, message_type=kind)
        if isinstance(self._target, ManagerTarget) and not self._target.cluster and not config.group_id:
            raise ConfigError(
                f"the Manager {str(self._target)!r} is asked by group, and there is no group_id",
                hint="give group_id= (dataproxy doctor: --group ID), or set DATAPROXY_GROUP_ID",
            )
        if send and not (self._target and config.group_id and stream_id):
            raise ConfigError(
                "a message needs a target, a group and a stream", hint="give all three: TARGET --group ID --stream ID"
            )
        if body and not send:
            raise ConfigError("a body was given, and nothing is to be sent", hint="add send=True (--send)")
        over_http = config.protocol == "http"
        if b"\n" in body and (over_http or not has_item_attributes(kind)):
            dialect = "protocol=http" if over_http else f"message_type={kind}"
            leave = "leave the line feed out"
            raise ConfigError(
                f"a body with a line feed cannot be sent with {dialect}",
                hint=leave if over_http else f"{leave}, or use message_type=7",
            )
        if body and over_http and not _is_text(body):
            raise ConfigError(
                "a body over HTTP must be UTF-8 and more than blanks", hint="give text, or use protocol=tcp"
            )
        size, counted = len(body) + _AROUND_BYTES, ""
        if over_http:
            names = len(config.group_id.encode()) + len(stream_id.encode())
            counted = ", since each byte counts three times over HTTP"
            size = _ENCODED * (len(body) + names) + _AROUND_FORM_BYTES
        if body and size > config.max_frame_bytes:
            raise ConfigError(
                f"a body of {len(body):,} bytes does not fit into max_frame_bytes={config.max_frame_bytes}{counted}",
                hint="give a shorter one, or raise max_frame_bytes",
            )

    def run(self) -> None:
        """Do all checks; ``findings`` has what they found."""
        found = self._found
        self._progress("reading versions and limits")
        found.versions, found.limits = read_versions(), read_limits()
        if self._target is not None:
            endpoints = self._proxies_of_target()
            addresses = self._addresses(endpoints)
            self._look_at_all(addresses)
        found.finished = True

    def _proxies_of_target(self) -> list[Endpoint]:
        """Return the proxies that the target names, after asking its Managers."""
        target = self._target
        if target is None:
            return []
        if isinstance(target, FileTarget):
            return _listed(target.path, self._config.protocol.upper())
        if isinstance(target, DnsTarget):
            return [target.endpoint]
        if not isinstance(target, ManagerTarget):
            return list(target.endpoints)
        urls = [target.url, *target.others]
        looked = look_up([_endpoint_of(url) for url in urls], self._timeout)
        self._found.names += [one.report for one in looked.values() if not is_numeric(one.report.host)]
        self._progress(f"asking {_counted(len(urls), 'Manager', 'Managers')}")
        grace = self._timeout + _GRACE
        asking = partial(ask, config=self._config, cluster=target.cluster, credentials=self._credentials)
        outcomes = side_by_side(_THREAD, grace, asking, urls)
        first: ProxyList | None = None
        for url in urls:
            outcome = outcomes.get(url)
            if isinstance(outcome, BaseException):
                raise outcome
            late = ManagerReport(
                url, "MANAGER_TIMEOUT", f"did not answer within {self._timeout:g} s", "check it", seconds=grace
            )
            report, answer = outcome or (late, None)
            self._found.managers.append(report)
            first = first or answer
        if first is None:
            return []
        self._cluster_limit = first.max_packet_length
        return list(first.endpoints)

    def _addresses(self, endpoints: Sequence[Endpoint]) -> list[Address]:
        if not endpoints:
            return []
        self._progress(f"looking up {_counted(len({one.host for one in endpoints}), 'host', 'hosts')}")
        self._left_out = max(len(endpoints) - _MOST_ADDRESSES, 0)
        endpoints = endpoints[:_MOST_ADDRESSES]
        looked = look_up(endpoints, self._timeout)
        known = {one.host for one in self._found.names}
        hosts = {one.host: looked[one].report for one in endpoints if not is_numeric(one.host)}
        self._found.names += [report for host, report in hosts.items() if host not in known]
        addresses: dict[tuple[Any, ...], Address] = {}
        for endpoint in endpoints:
            for address in addresses_of(endpoint, looked[endpoint]):
                addresses.setdefault(address.where, address)
        self._left_out += max(len(addresses) - _MOST_ADDRESSES, 0)
        return list(addresses.values())[:_MOST_ADDRESSES]

    def _look_at_all(self, addresses: Sequence[Address]) -> None:
        frame_bytes = 0
        if self._frame_limit:
            most = self._config.max_frame_bytes
            frame_bytes = min(most, max(self._cluster_limit or most, LEAST_FRAME_BYTES))
        plan = Plan(self._config, self._timeout, self._stream_id, self._send, self._body, frame_bytes, self._tls)
        reports = {
            one: ProxyReport(one.label, one.endpoint.host, str(one.where[0]), one.endpoint.port, one.used)
            for one in addresses
        }
        self._found.proxies += reports.values()
        done = count(1)  # `next` is atomic

        def look(address: Address) -> None:
            look_at(address, plan, reports[address])
            self._progress(f"{next(done)} of {_counted(len(addresses), 'address', 'addresses')} of proxies")

        rounds = -(-len(addresses) // _AT_A_TIME)
        steps = _STEPS + (2 * _SIZE_STEPS if self._frame_limit else 0)
        if addresses:
            self._progress(f"0 of {_counted(len(addresses), 'address', 'addresses')} of proxies")
        outcomes = side_by_side(_THREAD, rounds * (steps * self._timeout + _GRACE), look, list(addresses))
        for outcome in outcomes.values():
            if isinstance(outcome, BaseException):
                raise outcome

    def findings(self) -> Findings:
        """Return what was found so far, with its meaning."""
        found = self._found
        proxies = found.proxies
        used = len({(one.host, one.port) for one in proxies if one.used})
        lines = installation_findings(found.versions) if found.versions else []
        lines += limit_findings(found.limits, self._config, used) if found.limits else []
        if self._target is not None:
            lines += name_findings(found.names)
            lines += manager_findings(found.managers, self._config)
            lines += proxy_findings(proxies, by_manager=bool(found.managers), heartbeat=self._config.heartbeat)
            lines += clock_findings(found.managers, proxies)
            lines += setting_findings(
                self._config, sent=self._send, stream_id=self._stream_id, cluster_limit=self._cluster_limit,
                measured=any(one.frame_taken or one.frame_refused for one in proxies),
            )  # fmt: skip
            if self._left_out:
                lines.append(
                    Finding(
                        "target", found.target, Level.NOTE, f"{self._left_out:,} more addresses were not looked at",
                        f"{_MOST_ADDRESSES} are the most that are looked at", "name some of them as tcp://host:port,...",
                    )
                )  # fmt: skip
            if found.finished and not proxies and not any(one.level is Level.ERROR for one in lines):
                lines.append(Finding("target", found.target, Level.ERROR, "there is no proxy to look at"))
        found.findings = lines
        found.seconds = time.monotonic() - self._started
        return found


def _encryption(config: ProducerConfig) -> ssl.SSLContext | None:
    """Return the settings of connections to proxies, None for plain ones.  Raises ConfigError."""
    if not uses_tls(config):
        return None
    from dataproxy.trust.context import ssl_context

    return ssl_context(proxy_files(config))


def _listed(path: str, protocol: str) -> list[Endpoint]:
    """Return the proxies that a file lists.  Raises ConfigError."""
    try:
        return list(read_list(path, protocol).endpoints)
    except DiscoveryError as error:
        raise ConfigError(error.message, hint=error.hint) from None


def _is_text(body: bytes) -> bool:
    try:
        return bool(body.decode().strip())
    except UnicodeDecodeError:
        return False


def _checked_timeout(timeout: float) -> float:
    number = seconds_of(timeout)
    if not 0.01 <= number <= _LONGEST_TIMEOUT:
        allowed = f"allowed is 0.01 .. {_LONGEST_TIMEOUT:g}"
        raise ConfigError(f"a timeout of {number:g} s is out of range", code="BAD_TIMEOUT", hint=allowed)
    return number


def _endpoint_of(url: str) -> Endpoint:
    parts = urlsplit(url)
    return Endpoint(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))


def _counted(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
