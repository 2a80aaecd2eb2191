"""The command ``dataproxy``.  Results go to stdout, everything else to stderr.

What lives here.  `main`, `app`, `commands`: the entry, the shared options, and the commands by name, each imported when
it is called.  `ending`, `outcome`, `settings`: signals, exit codes, options.  `config`, `explain`, `optionwords`: what
options and errors mean.  `frames`, `frametext`, `calltext`: frames of InLong and of TubeMQ as text; `hexdump`: frames
that are given as hex digits.  `send`, `hub`, `doctor`, `perf` and `tubemq` (`consume`, `topics`, `administer`) have
folders, and `rocketmq`, whose frames are shown.
"""

__all__: list[str] = []
