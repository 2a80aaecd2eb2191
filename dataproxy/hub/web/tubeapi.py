"""The part of the Manager server for administration of the hub as TubeMQ, and for calls of TubeMQ's own HTTP API."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from aiohttp import web

from dataproxy.errors import ClosedError, ConfigError, HubError
from dataproxy.hub.web.pages.served import Served
from dataproxy.problems import shown
from dataproxy.shown import json_text

if TYPE_CHECKING:
    from dataproxy.hub.tubemq.admin.parts import Parts, Positions
    from dataproxy.hub.tubemq.service import Service

__all__ = ["TubeApi"]

_USUAL, _MOST = 100, 1000  # rows of a page
_LARGEST: Final = 2**31 - 1
_FORM: Final = "application/x-www-form-urlencoded"
_Work = Callable[["Parts", "Positions"], Any]


class Paged(Protocol):
    """What answers with a page that is made on a reading thread."""

    def __call__(self, request: web.Request, make: Callable[[], bytes]) -> Awaitable[web.StreamResponse]:
        """Answer a request."""
        ...


class TubeApi:
    """Serve ``/hub/tubemq/*`` and ``/webapi.htm``; ``hub`` gives the hub or raises ClosedError.

    A request's body must be complete within ``body_seconds``.  Work is done on the thread of the master; positions and
    JSON are made on reading threads.
    """

    def __init__(self, hub: Callable[[], Served], page: Paged, body_seconds: float) -> None:
        self._hub, self._page, self._body_seconds = hub, page, body_seconds

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register the paths; the router's are below ``/hub``."""
        router.add_get("/tubemq/topics", self._topics)
        router.add_get("/tubemq/partitions", self._partitions)
        router.add_get("/tubemq/groups", self._groups)
        router.add_get("/tubemq/members", self._members)
        router.add_get("/tubemq/offsets", self._offsets)
        router.add_post("/tubemq/offsets", self._reset)
        router.add_get("/tubemq/rules", self._rules)
        router.add_post("/tubemq/rules", self._set_rules)
        router.add_delete("/tubemq/rules", self._delete_rules)
        router.add_get("/tubemq/rights", self._rights)
        router.add_post("/tubemq/rights", self._set_rights)
        router.add_post("/tubemq/moves", self._move)

    def add_calls(self, router: web.UrlDispatcher) -> None:
        """Register the page of TubeMQ's own calls."""
        router.add_get("", self._call)
        router.add_post("", self._call)

    # --- reading

    async def _topics(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.views import topics_page

        start, limit = request.query.get("start", ""), _limit(request)
        return await self._told(request, lambda parts, _: topics_page(parts, start, limit), positions=False)

    async def _partitions(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.views import partitions_of

        topic = _given(request, "topic")
        return await self._told(request, lambda parts, _: partitions_of(parts, topic), positions=False)

    async def _groups(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.views import groups_page

        start, limit = request.query.get("start", ""), _limit(request)
        return await self._told(request, lambda parts, found: groups_page(parts, found, start, limit))

    async def _members(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.views import members_of

        group = _given(request, "group")
        return await self._told(request, lambda parts, found: members_of(parts, found, group), only=group)

    async def _offsets(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.views import offsets_of

        group, topic = _given(request, "group"), request.query.get("topic", "")
        return await self._told(request, lambda parts, found: offsets_of(parts, found, group, topic), only=group)

    async def _rules(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.changes import rules_told

        return await self._told(request, lambda parts, _: rules_told(parts), positions=False)

    async def _rights(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.changes import rights_told

        return await self._told(request, lambda parts, _: rights_told(parts), positions=False)

    # --- changes

    async def _reset(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.resets import apply_steps, plan_reset, steps_told

        value = await self._read(request, "group", "topic", "partition", "to", "execute")
        group, topic = _text(value, "group"), _text(value, "topic", default="")
        partition, execute = _number(value, "partition"), _flag(value, "execute", default=False)

        events = self._hub()._overview.events

        def work(parts: Parts, found: Positions) -> Any:
            steps = plan_reset(parts, found, group, topic=topic, partition=partition, to=value.get("to"))
            if execute:
                apply_steps(parts, group, steps)
                for name in dict.fromkeys(one.topic for one in steps):
                    queues = sum(one.topic == name for one in steps)
                    events.add("reset", protocol="tubemq", group=group, topic=name, queues=queues)
            return steps_told(group, steps, executed=execute)

        return await self._told(request, work, only=group)

    async def _set_rules(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.changes import rules_told, set_rules

        value = await self._read(request, "group", "rules")
        group = None if value.get("group") is None else _text(value, "group")
        return await self._told(request, _then(rules_told, set_rules, group, value.get("rules")), positions=False)

    async def _delete_rules(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.changes import delete_rules, rules_told

        group = request.query.get("group")
        return await self._told(request, _then(rules_told, delete_rules, group), positions=False)

    async def _set_rights(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.changes import rights_told, set_control, set_right

        value = await self._read(request, "topic", "controlled", "group", "allow", "items")
        topic = _text(value, "topic")
        if "group" in value:
            if "controlled" in value:
                raise ConfigError("controlled and group were both given", hint="send two requests")
            allow, items = _flag(value, "allow", default=True), value.get("items")
            if items is not None and not (isinstance(items, list) and all(isinstance(one, str) for one in items)):
                raise ConfigError(f"items={shown(items)} is no list of filter items", hint='send {"items": ["a"]}')
            work = _then(rights_told, set_right, _text(value, "group"), topic, allow=allow, items=items)
        else:
            work = _then(rights_told, set_control, topic, on=_flag(value, "controlled"))
        return await self._told(request, work, positions=False)

    async def _move(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.changes import move

        value = await self._read(request, "group", "topic", "partition", "broker", "member")
        group, topic, member = (_text(value, name) for name in ("group", "topic", "member"))
        partition, broker = _number(value, "partition", required=True), _number(value, "broker")
        service = self._service()

        def work(parts: Parts, _: Positions) -> Any:
            move(parts, group, topic, partition or 0, member, service.now, broker)
            return {"group": group, "topic": topic, "partition": partition, "member": member}

        return await self._told(request, work, positions=False)

    # --- TubeMQ's own calls

    async def _call(self, request: web.Request) -> web.StreamResponse:
        from dataproxy.hub.tubemq.admin.tubecalls import answer, refused

        query = dict(request.query)
        if request.method == "POST":
            async with asyncio.timeout(self._body_seconds):
                query.update({name: text for name, text in (await request.post()).items() if isinstance(text, str)})
        token = self._hub().token.encode()

        def is_token(text: str) -> bool:
            return hmac.compare_digest(text.encode("utf-8", "replace"), token)

        def work(parts: Parts, _: Positions) -> Any:
            return answer(parts, query, is_token)

        return await self._told(request, work, positions=False, write=_compact, refused=refused)

    # --- how

    def _service(self) -> Service:
        service = self._hub()._tubemq
        if service is None:
            raise web.HTTPNotFound(reason="this hub is not a master of TubeMQ: start it with tubemq_port")
        return service

    async def _told(
        self,
        request: web.Request,
        work: _Work,
        *,
        positions: bool = True,
        only: str | None = None,
        write: Callable[[Any], str] = json_text,
        refused: Callable[[str], Any] | None = None,
    ) -> web.StreamResponse:
        """Answer with what ``work`` returns on the thread of the master; what is not there is 404.

        It gets the positions of all groups, or of one.  ``refused`` makes the answer where a change is not this hub's.
        """
        service = self._service()

        def make() -> bytes:
            from dataproxy.hub.tubemq.admin.parts import AbsentError, read_positions

            parts = service.parts
            found = read_positions(parts.registrations, only) if positions else {}
            try:
                return write(service.administer(lambda: work(parts, found))).encode()
            except AbsentError as error:
                raise web.HTTPNotFound(reason=str(error.args[0])) from None
            except LookupError as error:  # the caller of this one takes it for a mistake in the request
                raise RuntimeError("administration has failed") from error
            except HubError as error:
                if refused is None:
                    raise
                return write(refused(str(error.args[0]))).encode()
            except TimeoutError as error:
                raise ClosedError(str(error), hint="look what there is, and try again") from None

        return await self._page(request, make)

    async def _read(self, request: web.Request, *known: str) -> dict[str, Any]:
        """Return the object in a request's body, which has known names alone.  Raises ConfigError."""
        try:
            async with asyncio.timeout(self._body_seconds):
                value = json.loads(await request.read())
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"the body is not JSON: {error}", hint=f"names are {', '.join(known)}") from None
        if not isinstance(value, dict) or not value.keys() <= set(known):
            raise ConfigError(f"the body {shown(value)} is not that of this request", hint=f"names: {', '.join(known)}")
        return value


def _then(tell: Callable[[Parts], Any], change: Callable[..., None], *values: Any, **more: Any) -> _Work:
    """Return work that changes something, and then tells what there is."""

    def work(parts: Parts, _: Positions) -> Any:
        change(parts, *values, **more)
        return tell(parts)

    return work


def _compact(value: Any) -> str:
    """Return JSON without blanks, as TubeMQ writes it: scripts look for parts of it, such as ``"errCode":0``."""
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


def _given(request: web.Request, name: str) -> str:
    if not request.query.get(name):
        raise ValueError(f"the parameter {name} is missing")
    return request.query[name]


def _limit(request: web.Request) -> int:
    text = request.query.get("limit", "") or str(_USUAL)
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not 0 < int(text) <= _MOST:
        raise ValueError(f"the parameter limit={shown(text)} must be a number from 1 to {_MOST}")
    return int(text)


def _text(value: Mapping[str, Any], name: str, default: str | None = None) -> str:
    given = value.get(name)
    if given is None and default is not None:
        return default
    if not isinstance(given, str) or not given:
        raise ConfigError(f"{name}={shown(given)} is no name", hint=f"give {name} as a text")
    return given


def _number(value: Mapping[str, Any], name: str, *, required: bool = False) -> int | None:
    given = value.get(name)
    if given is None and not required:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= _LARGEST:
        raise ConfigError(f"{name}={shown(given)} is no number of one", hint=f"give a number from 0 to {_LARGEST}")
    return given


def _flag(value: Mapping[str, Any], name: str, *, default: bool | None = None) -> bool:
    given = value.get(name, default)
    if not isinstance(given, bool):
        raise ConfigError(f"{name}={shown(given)} is neither true nor false", hint="give one of both")
    return given
