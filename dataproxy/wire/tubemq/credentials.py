"""What proves to masters and brokers who a client is."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import NamedTuple, Self
from urllib.parse import quote_plus

__all__ = ["Signature"]


class Signature(NamedTuple):
    """A user's proof: a hash of name, time and a random number under the password."""

    user: str
    time_ms: int
    nonce: int  #: 0 to 2**31 - 1
    signature: str

    @classmethod
    def make(cls, user: str, password: str, time_ms: int, nonce: int) -> Self:
        """Sign: Base64 of HMAC-SHA1 under the password, escaped as in a form of HTML (TubeMQ's own scheme)."""
        digest = hmac.new(password.encode(), f"{user}{time_ms}{nonce}".encode(), hashlib.sha1).digest()
        return cls(user, time_ms, nonce, quote_plus(base64.b64encode(digest)))

    @property
    def token(self) -> str:
        """Return the text that brokers take; masters take its parts in a message."""
        return f"{self.user} {self.time_ms} {self.nonce} {self.signature}"
