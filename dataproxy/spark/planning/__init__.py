"""What the driver settles before a task runs: options, columns, bodies, proxies, and the name of the write.

What lives here.  `plan`: all checks of a write, and `writeplan`: what they return, which Spark pickles for the tasks.
`options`, `formats`: the options.  `columns`, `idcolumns`, `bodytypes`: the columns and their types.  `target`,
`following`: the proxies, found by the driver and refreshed by tasks.  `runs`, `places`: names of writes, and what ids
of rows depend on.

Threads.  The driver's processes, in the thread that plans.  Tasks read the plan, and use `following` and constants.

What it may use.  `reporting`, the modules beside this folder that all steps share (`wording`, `folders`, `driverlog`,
`badrecords`), ``dataproxy.config``, ``dataproxy.rows``, and of ``dataproxy.producer`` what finds proxies and checks
names.
"""

__all__: list[str] = []
