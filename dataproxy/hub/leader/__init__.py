"""Hubs that name the same ZooKeeper are one cluster: who of them leads, and what all of them know.

What lives here.  `commands`: what is asked of ZooKeeper.  `seat`: one hub's part of an election, and of the document
that the leader alone writes; it decides on a given time and does nothing by itself.  `zookeeper`: the calls, by the
package `kazoo`, which only this module imports, when it is used.  `cluster`: the thread that carries them.

Threads.  ``dataproxy-hub-cluster`` alone calls a seat; `kazoo` has threads of its own.

What it may use.  Nothing of the hub's master.
"""

__all__: list[str] = []
