"""Administration of the hub as TubeMQ: what there is, and what may be changed by hand.

What lives here.  `parts`: what all functions work on, and positions of groups.  `views`: topics, groups, members,
offsets.  `resets`: groups that shall read from another place on.  `changes`: flow rules, rights, and partitions that
shall go to a member.  `tubecalls`: the calls of TubeMQ's own HTTP API that its scripts need.  Folders import one way:
this one, then `groups` and `cluster`.

Threads.  There are none here: functions are called on the thread that owns the master, but for those of `parts` that
read positions.

What it may use.  All of `dataproxy.hub.tubemq`.  Values are checked here, before anything is changed: what is not
there raises AbsentError, what is wrong raises ConfigError; both say what would do.
"""

__all__: list[str] = []
