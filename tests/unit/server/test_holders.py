"""Who pays for the memory of a server loop: the address that holds the most.

There it is the one longest without progress, of those that never made any unless those that did hold more.
"""

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.native.probe_hub import HolderAccounts

ADDRESSES = ("10.0.0.1", "10.0.0.2", "127.0.0.1", "2001:db8::1", "2001:db8:0:1::1", "2001:db8::99", "::ffff:10.0.0.1")
#: IPv6 counts by network, and an IPv4 address is itself in either form.
SAME = {"2001:db8::99": "2001:db8::1", "::ffff:10.0.0.1": "10.0.0.1"}


class Model:
    """The rules as plain Python: sessions in order of progress."""

    def __init__(self) -> None:
        self.address: dict[int, str] = {}
        self.held: dict[int, int] = {}  # by progress; who holds nothing is not in it
        self.proven: set[int] = set()  # who has made progress

    def set(self, session: int, held: int, progress: bool) -> None:
        """Enter what a session holds."""
        if progress:
            self.proven.add(session)
        if progress or not held:
            self.held.pop(session, None)
        if held:
            self.held[session] = held

    def fair(self, session: int | None) -> bool:
        """Tell whether this session may be told to pay."""
        sums: dict[str, list[int]] = {}
        for one, held in self.held.items():
            sums.setdefault(self.address[one], []).append(held)
        if not sums:
            return session is None
        most = max(sum(held) for held in sums.values())
        mine = sums.get(self.address.get(session, ""))
        if mine is None or sum(mine) != most:
            return False
        theirs = [one for one in self.held if self.address[one] == self.address[session]]
        proven = [one for one in theirs if one in self.proven]
        if 2 * sum(self.held[one] for one in proven) > most:
            paying = proven
        else:
            paying = [one for one in theirs if one not in self.proven]
        mean = sum(self.held[one] for one in paying) / len(paying)
        return next(one for one in paying if 2 * self.held[one] >= mean) == session


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("join", "leave", "set", "set", "set")),
            st.integers(0, 12),
            st.sampled_from(ADDRESSES),
            st.integers(0, 5) | st.integers(0, 1 << 40),
            st.booleans(),
        ),
        max_size=60,
    )
)
def test_accounts_agree_with_a_list(steps):
    accounts, model = HolderAccounts(), Model()
    for kind, session, address, held, progress in steps:
        known = session in model.address
        if kind == "join" and not known:
            accounts.join(session, address)
            model.address[session] = SAME.get(address, address)
        elif kind == "leave" and known:
            accounts.leave(session)
            model.set(session, 0, True)
            model.proven.discard(session)
            del model.address[session]
        elif kind == "set" and known:
            accounts.set(session, held, progress)
            model.set(session, held, progress)
        assert accounts.total() == sum(model.held.values())
        assert accounts.addresses() == len(set(model.address.values()))
        assert model.fair(accounts.payer())
        assert accounts.payer(1) is None, "the other kind is another account"


def test_many_addresses_are_told_apart():
    accounts = HolderAccounts()
    names = [f"10.{a}.{b}.{c}" for a in range(4) for b in range(8) for c in range(64)]
    for number, name in enumerate(names):
        accounts.join(number, name)
        accounts.set(number, 10, True)
    assert accounts.addresses() == len(names)
    accounts.set(1234, 11, False)
    assert accounts.payer() == 1234
    order = list(range(len(names)))
    random.Random(2).shuffle(order)
    for number in order:
        accounts.leave(number)
    assert accounts.addresses() == accounts.total() == 0
    assert accounts.payer() is None


def test_who_holds_little_does_not_pay_for_who_holds_much():
    accounts = HolderAccounts()
    for small in range(100):
        accounts.join(small, "10.0.0.1")
        accounts.set(small, 20, True)
    accounts.join(100, "10.0.0.1")
    accounts.set(100, 500_000, True)
    assert accounts.payer() == 100, "the newest, and the only one that holds much"
    accounts.join(101, "10.0.0.1")
    accounts.set(101, 500_000, True)
    assert accounts.payer() == 100
    accounts.set(100, 400_000, True)
    assert accounts.payer() == 101, "a frame was completed in between"


def test_one_that_holds_more_than_most_does_not_pay_before_those_that_came_earlier():
    accounts = HolderAccounts()
    for early in range(34):
        accounts.join(early, "10.0.0.1")
        accounts.set(early, 30_000, True)
    accounts.join(34, "10.0.0.1")
    accounts.set(34, 400_000, True)
    assert accounts.payer() == 0


def test_a_new_address_does_not_pay_for_one_that_holds_more():
    accounts = HolderAccounts()
    accounts.join(1, "10.0.0.9")
    accounts.set(1, 700_000, True)
    for other in range(2, 6):
        accounts.join(other, "10.0.0.1")
        accounts.set(other, 200_000, True)
    assert accounts.payer() == 2
