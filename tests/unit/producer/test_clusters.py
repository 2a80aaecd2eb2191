"""Answers become clusters with numbers: shared where the Manager says so, and new where clients have to move."""

from dataproxy.producer.discovery.clusters import Answer, ClusterMap, Picture
from dataproxy.types import Endpoint, ProxyList, ResolvedEndpoint


def answer(cluster_id, *hosts, switch=0, ids=()):
    found = ProxyList(cluster_id, tuple(Endpoint(host, 1) for host in hosts), 20, switch)
    named = zip(hosts, ids or ("",) * len(hosts), strict=True)
    return Answer(found, tuple(ResolvedEndpoint(host, 1, 2, host, f"{host}:1", "", node) for host, node in named))


def shape(picture):
    """Return number -> hosts, and where the groups go."""
    return {c.number: [proxy.host for proxy in c.proxies] for c in picture.clusters}, picture.groups


def test_groups_of_one_cluster_share_it_and_the_newest_answer_counts():
    known = {"a": answer(1, "h1"), "b": answer(2, "h2"), "c": answer(1, "h1", "h3")}
    picture = ClusterMap().picture(known, ["a", "b", "c", "unknown"])
    assert shape(picture) == ({1: ["h1", "h3"], 2: ["h2"]}, (1, 2, 1, -1))


def test_numbers_stay_while_a_cluster_stays_and_are_never_used_again():
    numbers = ClusterMap()
    first = numbers.picture({"a": answer(1, "h1"), "b": answer(2, "h2")}, ["a", "b"])
    again = numbers.picture({"a": answer(1, "h9"), "b": answer(2, "h2")}, ["a", "b"])
    assert [c.number for c in again.clusters] == [c.number for c in first.clusters]
    assert shape(numbers.picture({"a": answer(1, "h1")}, ["a", "b"])) == ({1: ["h1"]}, (1, -1))
    assert shape(numbers.picture({"a": answer(1, "h1"), "b": answer(2, "h2")}, ["a", "b"]))[1] == (1, 3)


def test_another_cluster_id_and_another_switch_have_new_numbers():
    numbers = ClusterMap()
    one = numbers.picture({"a": answer(1, "h1")}, ["a"])
    moved = numbers.picture({"a": answer(5, "h1")}, ["a"])
    switched = numbers.picture({"a": answer(5, "h1", switch=1)}, ["a"])
    assert [p.groups for p in (one, moved, switched)] == [(1,), (2,), (3,)]


def test_without_a_cluster_id_each_group_has_its_own():
    picture = ClusterMap().picture({"a": answer(None, "h1"), "b": answer(None, "h1")}, ["a", "b"])
    assert picture.groups == (1, 2)


def test_a_single_list_keeps_its_number_until_clients_have_to_move():
    numbers = ClusterMap()
    assert numbers.single(None) == Picture()
    assert shape(numbers.single(answer(None, "h1"))) == ({0: ["h1"]}, None)
    assert shape(numbers.single(answer(1, "h1", "h2")))[0] == {0: ["h1", "h2"]}
    assert shape(numbers.single(answer(2, "h1")))[0] == {1: ["h1"]}
    assert shape(numbers.single(answer(2, "h1", switch=4)))[0] == {2: ["h1"]}
    assert shape(numbers.single(answer(2, "h3", switch=4)))[0] == {2: ["h3"]}


def test_pictures_are_compared_by_ids_addresses_and_ports():
    def drawn(*hosts, ids=()):
        return ClusterMap().picture({"a": answer(1, *hosts, ids=ids)}, ["a"])

    assert drawn("h1", "h2").same(drawn("h2", "h1"))
    assert not drawn("h1", "h2").same(drawn("h1", "h3"))
    assert not drawn("h1", ids=("5",)).same(drawn("h1", ids=("6",)))
    port = answer(1, "h1")
    other = port._replace(proxies=tuple(one._replace(port=2, label="h1:2") for one in port.proxies))
    assert not ClusterMap().picture({"a": port}, ["a"]).same(ClusterMap().picture({"a": other}, ["a"]))
    moved = Picture(drawn("h1").clusters, (-1,))
    assert not drawn("h1").same(moved)
    assert drawn("h1").same_proxies(moved)
