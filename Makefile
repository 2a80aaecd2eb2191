# Everything a developer or user runs.  `make demo` and `make test` do all of their set-up themselves.
#   PYTHON=python3.12 make test      another interpreter than python3
#   make test T="tests/unit -k pack"        a part of the suite
#   make test WORKERS=1                     in one process; it takes two otherwise
PYTHON ?= python3
VENV   ?= .venv
T      ?= tests
RUNS   ?= 50
ROUNDS ?= 200
SANITIZED ?= tests/unit tests/loopback
# The part of SANITIZED that .ci/run has time for: tests of compiled code with memory, threads and sockets.
SANITIZED_SOCKETS := $(filter-out %/test_asynchronous.py %/test_asynchronous_seeds.py,$(wildcard tests/loopback/producer/test_*.py))
SANITIZED_MEMORY  := $(addprefix tests/unit/,base conn consumer encode pack producer server wire) tests/loopback/hub tests/loopback/consumer tests/loopback/rocketmq \
                     $(wildcard tests/loopback/test_*.py tests/loopback/tubemq/test_producer*.py) $(SANITIZED_SOCKETS)
SANITIZED_TUBEMQ  := $(addprefix tests/loopback/tubemq/test_,consumer_reading.py consumer_confirms.py consumer_asyncio.py \
                     producer.py producer_faults.py)
# Tests in which threads meet; those of `send_rows` need Polars, which ends under ThreadSanitizer.
SANITIZED_MEETINGS := $(addprefix tests/loopback/producer/test_,asyncbatch_turns.py asynchronous_ends.py asynchronous_freed.py \
                     asynchronous_futures.py asynchronous_results.py asynchronous_turns.py busy_poll.py callbacks.py \
                     changed_bodies.py delivery.py derived_streams.py forgotten_streams.py held_bodies.py held_hazards.py \
                     kept_results.py key_order.py left_behind.py lost_rows.py many_open.py order.py overflow.py pauses.py \
                     undelivered.py waiting_results.py waiting_seals.py waiting_threads.py) \
                     $(addprefix tests/unit/producer/test_,asynchronous.py core_outcomes.py linger_and_load.py)
SANITIZED_ROCKETMQ := $(addprefix tests/loopback/rocketmq/test_rocketmq_,consumers.py failures.py packs.py producer.py pushed.py)
SANITIZED_THREADS := $(SANITIZED_TUBEMQ) $(SANITIZED_MEETINGS) $(SANITIZED_ROCKETMQ) tests/unit/server tests/loopback/faults tests/loopback/hub
# Files of these lists that take minutes under a sanitizer and run nothing that others do not; .ci/run leaves them out.
SANITIZED_LONG    := $(addprefix tests/loopback/hub/test_,bit_rot.py bombs_read.py command.py limits.py) \
                     $(addprefix tests/unit/server/store/test_,names.py row_blocks.py) \
                     $(addprefix tests/unit/consumer/test_,chosen_group.py fetch_random.py) \
                     $(addprefix tests/loopback/producer/test_,many_open.py overflow_model.py)
FUZZ_SECONDS ?= 60
MESSAGES ?= 1000000
KILLS ?= 1000
SEEDS ?= 100000
FAULTS ?= 2000
FAILOVERS ?= 20
REFRESHES ?= 10
SECONDS ?= 60
MINUTES ?= 30
PROCESSES ?= 2
WORKERS ?= 2

PY := $(VENV)/bin/python
export PYTHON VENV WORKERS
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# What libraries would put into the user's home stays in the checkout.
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
export RUFF_CACHE_DIR := $(CURDIR)/.cache/ruff

.DEFAULT_GOAL := help
.PHONY: help setup build demo test lint types test-asan test-tsan test-crash test-crashpoints test-hubkills sim sim-cluster sim-group sim-leader sim-clients chaos siege endings forks results soak perf-selftest \
        planted test-matrix test-spark test-spark-matrix spark-chaos spark-chaos-matrix spark-backfill spark-retries \
        spark-packaging bench-spark \
        test-interop test-rocketmq test-tubemq wheel first-hour test-wheel coverage fuzz bench bench-quick tuning curve profiles instructions annotate docs lock clean distclean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-26s%s\n", $$1, $$2 }'

setup: ## system packages, virtual environment, pinned packages (a second call does nothing)
	@tools/setup.sh

build: setup ## compile the core in place (release profile)
	@$(PY) tools/build.py >/dev/null

demo: build ## 336,776 real flights through Spark, producer and hub, and out of it as TubeMQ; every row accounted for
	@$(PY) examples/flights_demo.py

test: build ## the whole test suite, in WORKERS (2) processes
	@$(PY) -m pytest -n $(WORKERS) --dist loadfile $(T)

lint: setup ## ruff, cython-lint, generated files
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check -q .
	@$(PY) tools/lint_cython.py cython_ext tests/native tests/sanitizer

types: build ## mypy --strict on the package, stubs against the compiled modules
	@$(PY) tools/check_types.py

test-asan: setup ## unit and loopback tests under AddressSanitizer and UBSan
	@LEAVE="$(LEAVE)" PART="$(PART)" tools/sanitize.sh asan tests/sanitizer $(SANITIZED)

test-tsan: setup ## unit and loopback tests under ThreadSanitizer, with a planted race to show that it is awake
	@LEAVE="$(LEAVE)" PART="$(PART)" tools/sanitize.sh tsan tests/sanitizer $(SANITIZED)

test-crash: build ## kill -9 of the hub in the middle of a million lines, restart, every line is there
	@DATAPROXY_CRASH_LINES=1000000 $(PY) -m pytest tests/process/cli/test_send.py -k killed_in_the_middle

test-crashpoints: build ## KILLS (1000) times kill -9 of the durable hub at every boundary of its commits
	@$(PY) -m tests.campaigns.crashpoints --kills $(KILLS)

test-hubkills: build ## KILLS (300) times kill -9 of durable hubs while producers send and consumer groups read: offsets and messages stay
	@$(PY) -m tests.campaigns.hubkills --kills $(if $(filter command line environment,$(origin KILLS)),$(KILLS),300) --seed $(or $(SEED),1)

test-matrix: setup ## every Python >= 3.11 found here, and every supported PySpark
	@tools/matrix.sh

test-spark: build ## the Spark tests: batch, streams, restarts, kills, executors as processes, Spark Connect
	@DATAPROXY_LOST_MASTERS="local[2,3] local-cluster[2,1,1024]" $(PY) -m pytest -q tests/unit/spark tests/loopback/spark tests/spark

test-spark-matrix: setup ## the Spark tests on PySpark 4.0, 4.1, 4.2, 4.3, and foreachPartition on 3.5
	@PYTHONS="$$(command -v $(PYTHON))" tools/matrix.sh spark

spark-chaos: build ## KILLS (100) of tasks, workers and executors under writes; sessions that end, copies, other parallelism
	@$(PY) -m tests.campaigns.spark_chaos --kills $(if $(filter command line environment,$(origin KILLS)),$(KILLS),100) --seed $(or $(SEED),1)

spark-chaos-matrix: setup ## spark-chaos with KILLS (20) kills on PySpark 4.0, 4.1, 4.2 and 4.3; SPARKS=4.0.5 for one of them
	@KILLS=$(if $(filter command line environment,$(origin KILLS)),$(KILLS),20) PYTHONS="$$(command -v $(PYTHON))" tools/matrix.sh chaos

spark-backfill: build ## ROWS (10000000) through a local cluster into a durable hub: nothing missing, workers <= 400 MB
	@$(PY) -m tests.campaigns.spark_backfill $(if $(ROWS),--rows $(ROWS))

spark-retries: build ## ROWS (10000000) in one partition whose task is lost three times, behind a hub that knows ids: 0 surplus
	@$(PY) -m tests.campaigns.spark_retries $(if $(ROWS),--rows $(ROWS))

spark-packaging: build ## wheel, --archives and --py-files, each tried with a local cluster
	@$(PY) -m tests.campaigns.spark_packaging

bench-spark: build ## the Spark sink beside an Arrow writer that counts, and the fixed costs of tasks and micro-batches
	@$(PY) -m benchmarks.spark

test-interop: build ## against InLong's released Java classes, TubeMQ's master and broker, and nginx (installs Maven, nginx)
	@tools/interop.sh

test-rocketmq: build ## every command of RocketMQ's Java client, and its client of C++, at the hub; the former at RocketMQ's own servers, too
	@$(PY) -m pytest -q tests/interop/rocketmq

test-tubemq: build ## five minutes at TubeMQ's own servers: members killed under load, servers away, flow rules, rights
	@$(PY) -m tests.campaigns.tubemq $(if $(filter command line environment,$(origin MESSAGES)),--messages $(MESSAGES))

sim: build ## SEEDS (100000) simulated runs of producer and hubs on virtual time; SEED=n shows one, made small
	@$(PY) -m tests.sim $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --processes $(PROCESSES))

sim-cluster: build ## 100 simulated proxies, some slow, dying or gone, and 200 producers: result times, resends, spread of load
	@$(PY) -m tests.simcluster --seed $(or $(SEED),1)

sim-group: build ## SEEDS (1000) runs of a TubeMQ group on virtual time: consumers, models of masters and brokers; HUB=1: the hub's own; SEED=n shows one, made small
	@$(PY) -m tests.simgroup --processes $(PROCESSES) $(if $(HUB),--hub) $(if $(SEED),--seed $(SEED),--seeds $(if $(filter command line environment,$(origin SEEDS)),$(SEEDS),1000))

sim-leader: build ## SEEDS (1000) elections of three hubs on virtual time, with a model of ZooKeeper; SEED=n shows one
	@$(PY) -m tests.simleader $(if $(SEED),--seed $(SEED),$(if $(filter command line environment,$(origin SEEDS)),$(SEEDS),1000))

sim-clients: build ## SEEDS (1000) runs of RocketMQ's clients on virtual time, from START (0) on, against the hub's registry of clients; SEED=n shows one
	@$(PY) -m tests.simclients --processes $(PROCESSES) --start $(or $(START),0) $(if $(SEED),--seed $(SEED),$(if $(filter command line environment,$(origin SEEDS)),$(SEEDS),1000))

chaos: build ## FAULTS (2000) real faults on processes and sockets, under producers and consumer groups, RocketMQ's too, then the judges; a tenth for each other dialect; FAILOVERS (20) kills at half load; REFRESHES (10) minutes of lists that change
	@$(PY) -m tests.campaigns.chaos --faults $(FAULTS) --seed $(or $(SEED),1)
	@$(PY) -m tests.campaigns.chaos --tls --faults $(FAULTS) --seed $(or $(SEED),1)
	@for dialect in "--protocol v1" "--protocol http" "--ack sink" "--ack none" "--message-type 6" "--message-type 3" "--joined-lines"; do \
	    $(PY) -m tests.campaigns.chaos $$dialect --faults $$(($(FAULTS) / 10)) --seed $(or $(SEED),1) || exit 1; \
	done
	@$(PY) -m tests.campaigns.chaos --failover $(FAILOVERS)
	@$(PY) -m tests.campaigns.chaos --refresh $(REFRESHES)

siege: build ## SECONDS (60) of a hub under all hostile clients at once, beside an honest producer and an honest reader
	@$(PY) -m tests.campaigns.siege --seconds $(SECONDS) --seed $(or $(SEED),1)

planted: build ## every patch of tests/campaigns/planted, which breaks one promise each, is noticed by the suite
	@$(PY) -m tests.campaigns.planted

results: build ## MESSAGES (1000000), one percent refused, each told once; then the time limit under every fault
	@$(PY) -m tests.campaigns.results --messages $(MESSAGES)

endings: build ## RUNS (50) of each way of ending a process, with the hub up, slow and down
	@$(PY) -m tests.campaigns.endings --runs $(RUNS)

forks: build ## ROUNDS (200) of eight children by fork, forkserver, spawn and a pre-forking server
	@$(PY) -m tests.campaigns.forks --rounds $(ROUNDS)

soak: build ## MINUTES (30) at half of the ceiling: memory, descriptors, threads; then idle processor time
	@$(PY) -m tests.campaigns.soak --minutes $(MINUTES)

perf-selftest: build ## loads of 20 s against a hub that is frozen for 1 s: p99.9 has to show it
	@$(PY) -m tests.campaigns.perf_selftest

wheel: setup ## sdist and wheels in dist/, of inlong_dataproxy too, for glibc 2.26 and newer; WHEEL=machine: as this machine has it
	@tools/wheel.sh build

first-hour: wheel ## README and introduction in an empty environment from a built wheel, as a new user plays them
	@$(PY) tools/first_hour.py dist/dataproxy_sdk-*.whl

test-wheel: build ## sdist -> wheel -> fresh environment -> README and introduction -> tests from outside the checkout
	@tools/wheel.sh

coverage: setup ## lines covered by the unit and loopback tests, compiled code included
	@tools/coverage.sh

fuzz: build ## FUZZ_SECONDS (60) of random input for each parser
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(PY) -m pytest -q --timeout=0 tests/fuzz

bench-quick: build ## the important lines of it, within a minute; writes nothing
	@$(PY) -m benchmarks.run --quick

bench: build ## every line of the table, about 20 minutes; writes benchmarks/RESULTS.md and docs/images
	@$(PY) -m benchmarks.run

tuning: build ## the figures of the tuning guide, about 7 minutes; writes them into docs/tuning.md
	@$(PY) -m benchmarks.tuning

curve: build ## rate against latency for the tuning guide, in two minutes; NAME=before or after measures, without it draws
	@$(PY) -m benchmarks.curve $(if $(NAME),--name $(NAME))

profiles: build ## where the time of lines that miss a goal goes, by perf; writes benchmarks/profiles
	@PYTHON=$(PY) benchmarks/profiles.sh

instructions: build ## instructions of one send and one ack under callgrind, against the bounds in benchmarks/
	@tools/instructions.sh

annotate: setup ## Cython's annotated HTML, in build/tree-annotate
	@$(PY) tools/build.py annotate

docs: build ## write the generated files again (CONFIGURATION.md, conf/*.toml, dataproxy/numbers.py, dataproxy/wire/tubemq/messages.*)
	@$(PY) -m dataproxy.config.render
	@$(PY) tools/numbers.py
	@$(PY) tools/protos.py

lock: setup ## resolve requirements/dev.in into dev.lock
	@tools/lock.sh

clean: ## remove what was built
	rm -rf build dist inlong_dataproxy/build .cache .pytest_cache .hypothesis demo-out *.egg-info inlong_dataproxy/*.egg-info .coverage
	find dataproxy tests inlong_dataproxy pyspark_dataproxy pyspark_tubemq examples benchmarks tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	find dataproxy tests -name '*.so' -delete

distclean: clean ## remove the virtual environments too
	rm -rf .venv .venv-*
