# The two commands of a newcomer are `make demo` and `make test`; both set everything up themselves.
PYTHON := .venv/bin/python
JOBS ?= $(shell nproc)
BUILD ?= build
DIST ?= dist

SPARK_TESTS := tests/spark/test_training.py tests/spark/test_recovery.py tests/spark/test_connect.py
CLUSTER_TESTS := tests/tensorflow/test_cluster.py tests/tensorflow/test_restart.py \
  tests/tensorflow/test_feed_attempts.py

.PHONY: demo jar test test-long test-quick test-hadoop test-rdma test-spark-versions test-tables test-stores test-platforms test-torch-frameworks test-torch-versions test-mlflow build setup lint format docs bench wheel wheel-test abi3-modules \
  hadoop-shell soak soak-hadoop soak-rdma sanitize sanitize-changed asan tsan fuzz clean

# `make demo` needs a part of it all: no torch, no TensorFlow, no tests.
demo: SETUP := --demo
demo: CONFIGURE := -DHEARTH_TESTS=OFF
CONFIGURE ?= -DHEARTH_TESTS=ON

setup:
	@tools/setup.sh $(SETUP)

# Rewritten by setup after it has installed other packages.
.venv/requirements.sha256: setup
	@:

$(BUILD)/build.ninja: .venv/requirements.sha256
	@$(PYTHON) -m cmake --preset release -B $(BUILD) $(CONFIGURE) >$(BUILD).log 2>&1 || { tail -n 20 $(BUILD).log; exit 1; }
	@mv $(BUILD).log $(BUILD)/configure.log

# With PYTHONDONTWRITEBYTECODE set, each process would compile the package again.
COMPILE_PYTHON = $(PYTHON) -m compileall -q python

build: setup $(BUILD)/build.ninja
	@.venv/bin/ninja -C $(BUILD) -j $(JOBS)
	@$(COMPILE_PYTHON)

# Compiles the parts of the demo; `make build` adds the rest.
demo: setup $(BUILD)/build.ninja
	@.venv/bin/ninja -C $(BUILD) -j $(JOBS) hearth _core _caffe hearth_feed_c
	@$(COMPILE_PYTHON)
	@$(PYTHON) python/hearth/demo/run.py

# The jar of Scala and Java programs, and those of its tests. Maven fetches compilers and Spark once.
JAR := jvm/target/hearth-spark_2.13.jar

$(JAR): jvm/pom.xml $(shell find jvm/src -type f)
	@rm -rf jvm/target
	@tools/maven.sh -q -B -Dstyle.color=never -f jvm/pom.xml package

jar:
	@tools/setup.sh maven openjdk-17-jdk-headless
	@$(MAKE) -s $(JAR)

# Two files at a time: a test with Spark waits most of its time, for its JVM or for a deadline
# (1,009 of them on 2 cores: 19 min 42 s).
WITHOUT_SPARK := tests/golden tests/project tests/python
WITH_SPARK := tests $(WITHOUT_SPARK:%=--ignore=%) --ignore=tests/wheel --ignore=tests/hadoop

# For the JVMs of the Spark tests: saves a third of their time; optional.
TEST_JAVA := build/java/bin/java

$(TEST_JAVA): tests/quick_java.py tools/requirements.txt | build
	-@$(PYTHON) tests/quick_java.py

# Maven waits for the network while the compilers work.
test: setup
	@tools/setup.sh maven openjdk-17-jdk-headless
	@$(MAKE) -s -j2 build jar $(TEST_JAVA)
	@.venv/bin/ctest --test-dir $(BUILD) --output-on-failure -j$(JOBS)
	@$(PYTHON) -m pytest $(WITHOUT_SPARK) -n 2 --dist loadfile -m "not long"
	@$(PYTHON) -m pytest $(WITH_SPARK) -n 2 --dist loadfile -m "not long"

# Whole programs whose parts `make test` covers: the demo, the recipes, estimators and Keras' backup
# under kills, elastic ranks, randomized fault tests. Fifteen minutes.
test-long: build
	@$(PYTHON) -m pytest $(WITHOUT_SPARK) -n 2 --dist loadfile -m long
	@$(PYTHON) -m pytest $(WITH_SPARK) -n 2 --dist loadfile -m long

# Three minutes on a built tree: no Spark, no TensorFlow, no processes of PyTorch, none of the slow files.
# Compiles what these tests use: `make build` compiles the large modules' tests as well.
test-quick: setup $(BUILD)/build.ninja
	@.venv/bin/ninja -C $(BUILD) -j $(JOBS) hearth_quick
	@$(COMPILE_PYTHON)
	@.venv/bin/ctest --test-dir $(BUILD) --output-on-failure -j$(JOBS) -E '^(caffe|collective|trainer)$$'
	@$(PYTHON) -m pytest $(WITHOUT_SPARK) -n 2 --dist loadfile -m "not (slow or long or tensorflow or torch)"

# The digits, recovery, Connect and a cluster's feed on other minor versions of Spark, in separate
# environments.
SPARK_VERSIONS ?= 3.5 4.0
test-spark-versions: build
	@for version in $(SPARK_VERSIONS); do \
	  python=$$(tools/spark_environment.sh $$version) && echo "Spark $$version" && \
	  $$python -m pytest $(SPARK_TESTS) && $$python -m pytest $(CLUSTER_TESTS) || exit 1; done

# Delta and Iceberg tables that Spark writes, for each version of Spark that has the jars of both.
test-tables: build
	@tools/setup.sh maven
	@for version in $(SPARK_VERSIONS); do \
	  python=$$(tools/spark_environment.sh $$version) && jars=$(CURDIR)/build/tables-$$version && \
	  tools/maven.sh -q -B -f tests/tables/pom.xml -P $$version \
	    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
	    -DincludeScope=runtime -DexcludeGroupIds=org.scala-lang -DoutputDirectory=$$jars && \
	  $$python tests/tables/run.py $$jars && $$python tests/tables/catalogs.py in-memory && \
	  $$python tests/tables/catalogs.py hive || exit 1; done

# Files, sources and checkpoints in servers of object stores, which are also busy, slow and cut off;
# GCS_SERVER and AZURITE name Google's and Azure's servers (tests/stores/run.py). STORES=s3: there
# alone.
test-stores: build
	@python=$$(tools/stores_environment.sh) && $$python tests/stores/run.py $(STORES)

# Trainings on executors in emulated containers (as root): minutes.
test-platforms: build
	@$(PYTHON) -m pytest -rs tests/platforms

# Lightning and Accelerate programs with the backend "hearth", in a separate environment.
test-torch-frameworks: build
	@python=$$(tools/frameworks_environment.sh) && $$python tests/torch/frameworks/run.py

# Trainings with an active MLflow run, and the records in MLflow.
test-mlflow: build
	@python=$$(tools/mlflow_environment.sh) && $$python tests/tracked/run.py

# PyTorch programs with other versions of torch: the backend "hearth", loaders, DDP, FSDP2 (from torch
# 2.7 on with CPUs), checkpoints, and the device library compiled for it. One environment at a time,
# removed after it: 3 GB to fetch and six minutes each.
TORCH_VERSIONS ?= 2.6.0 2.8.0 2.11.0 2.13.0 2.15.0
test-torch-versions: build
	@for version in $(TORCH_VERSIONS); do \
	  tools/with_torch.sh $$version tests/torch/versions.py || exit 1; done

lint: build
	@$(PYTHON) tools/lint.py

format: setup
	@$(PYTHON) tools/lint.py --fix

# The documentation as a site, in site/; needs no network once mkdocs is installed.
docs: setup
	@python=$$(tools/docs_environment.sh) && NO_MKDOCS_2_WARNING=1 $$python -m mkdocs build

bench: build
	@tools/setup.sh openmpi-bin libopenmpi-dev
	@mkdir -p bench/results
	@for name in collective feed spark_overhead engine tf_feed tf_steps torch_ddp torch_feed torch_distributor; do \
	  $(PYTHON) bench/$$name.py --json bench/results/$$name.json || exit 1; done

# 100 kills (25 minutes), 108 of trainings on datasets (40 minutes), deliveries of datasets by tasks
# that fail (10 minutes), then 200 randomized fault tests; docs/reliability.md keeps the last
# tables.
soak: build
	@$(PYTHON) tests/soak/soak.py
	@$(PYTHON) tests/soak/kills.py
	@$(PYTHON) tests/soak/keras_points.py
	@$(PYTHON) tests/soak/elastic.py
	@$(PYTHON) tests/soak/deliveries.py
	@$(PYTHON) tests/soak/random_faults.py --cases 200

# The modules' tests under the sanitizers, each in its own build folder; under tsan those
# without libtorch, which is not instrumented. Slow: half an hour to compile, then minutes.
# SANITIZE="batch ring" takes these modules alone.
sanitize: asan tsan

# Tests that fail under sanitizers: limits of memory, and UCX (not instrumented). The last one reads a
# sum while it is computed, on purpose.
NOT_SANITIZED := FeedLoad.*:*OutOfMemoryIsFinal*:*Ucx*:*Rdma*
NOT_SANITIZED := $(NOT_SANITIZED):*ABucketIsReducedBeforeTheOthersAreReady*

# A blank, for lists.
space := $() $()

asan tsan: setup
	@$(PYTHON) -m cmake --preset $@ >/dev/null
	@.venv/bin/ninja -C build-$@ -j $(JOBS) $(or $(SANITIZE:%=hearth_%_test),hearth_module_tests)
	@GTEST_FILTER='-$(NOT_SANITIZED)' ASAN_OPTIONS=allocator_may_return_null=1 \
	  TSAN_OPTIONS="suppressions=$(CURDIR)/tools/tsan.supp" \
	  .venv/bin/ctest --test-dir build-$@ --output-on-failure -E '^fuzz_' \
	  $(if $(SANITIZE),-R '^($(subst $(space),|,$(strip $(SANITIZE))))$$')

# A part of them within SANITIZE_SECONDS: address and undefined-behaviour sanitizers over the modules
# with the most changed lines; names what it leaves out.
SANITIZE_SECONDS ?= 360
sanitize-changed: setup
	@$(PYTHON) tools/sanitize_changed.py --budget $(SANITIZE_SECONDS)

# Each format for FUZZ_SECONDS, with sanitizers, from another seed every time unless FUZZ_SEED is set.
FUZZ_SECONDS ?= 300
FUZZ_SEED ?= $(shell date +%s)
fuzz: setup
	@$(PYTHON) -m cmake --preset asan >/dev/null
	@.venv/bin/ninja -C build-asan -j $(JOBS) hearth_fuzz
	@for format in $$(ls tests/fuzz/corpus); do echo "$$format"; \
	  build-asan/tests/fuzz/fuzz_$$format tests/fuzz/corpus/$$format $(FUZZ_SECONDS) $(FUZZ_SEED) || exit 1; done

# Spark on YARN with HDFS: real daemons on this machine, from jars that Maven fetches once.
test-hadoop: build
	@tools/setup.sh maven
	@$(PYTHON) tests/hadoop/hadoop_jars.py >/dev/null
	@$(PYTHON) -m pytest tests/hadoop -m "not long"

# Longer kills of the same daemons (15 minutes); docs/reliability.md keeps the table that it prints.
# Then files and trainings with Kerberos (5 minutes), and with tokens of a minute (9 minutes), where a KDC is installed.
soak-hadoop: build
	@tools/setup.sh maven
	@$(PYTHON) tests/hadoop/hadoop_jars.py >/dev/null
	@$(PYTHON) -m pytest tests/hadoop -m long
	@$(PYTHON) -m pytest -s tests/hadoop/soak_faults.py
	@$(PYTHON) -m pytest -rs tests/hadoop/soak_driver.py
	@$(PYTHON) -m pytest -rs tests/hadoop/soak_kerberos.py
	@$(PYTHON) -m pytest -rs tests/hadoop/soak_tokens.py

# A shell against the same daemons.
hadoop-shell: build
	@tools/setup.sh maven
	@$(PYTHON) tests/hadoop/hadoop_shell.py

# The collective over rc queue pairs of a Soft-RoCE device, in an emulated machine: a minute or two.
test-rdma: build
	@tools/setup.sh qemu-system-x86 libucx0
	@$(PYTHON) tests/rdma/run_guest.py $(BUILD)

# The whole conformance suite there: twelve minutes.
soak-rdma: build
	@tools/setup.sh qemu-system-x86 libucx0
	@$(PYTHON) tests/rdma/run_guest.py $(BUILD) whole

# For any system with glibc 2.28 (cmake/HearthPortable.cmake), in a separate build folder, without
# the tests. CC and CXX as in `make build`, so that the compiler cache is shared.
wheel: setup
	@tools/setup.sh libsnappy-dev
	@mkdir -p $(DIST) && rm -rf $(DIST)/untagged
	@CC=cc CXX=c++ $(PYTHON) -m pip wheel . --disable-pip-version-check --no-deps --no-build-isolation \
	  -C build-dir=build-wheel -C cmake.define.HEARTH_PORTABLE=ON -w $(DIST)/untagged
	@if [ -n "$(ABI3_PYTHON)" ]; then $(MAKE) -s abi3-modules && \
	  $(PYTHON) tools/abi3_wheel.py $(DIST)/untagged/*.whl build-abi3/native; fi
	@for wheel in $(DIST)/untagged/*.whl; do \
	  tagged=$$($(PYTHON) tools/tag_wheel.py "$$wheel") && mv "$$tagged" $(DIST) || exit 1; done
	@rmdir $(DIST)/untagged

# Where a Python of 3.12 or newer with its headers is, `make wheel` writes a second wheel, for it and
# all later ones.
ABI3_PYTHON ?= $(shell for python in python3.13 python3.12 \
  $(wildcard $(HOME)/.pyenv/versions/3.13.*/bin/python3 $(HOME)/.pyenv/versions/3.12.*/bin/python3); \
  do $$python -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
  2>/dev/null && command -v $$python && break; done)

abi3-modules:
	@$(PYTHON) -m cmake --preset release -B build-abi3 -DHEARTH_TESTS=OFF -DHEARTH_PORTABLE=ON \
	  -DHEARTH_STABLE_ABI=ON -DPython_EXECUTABLE=$(ABI3_PYTHON) >/dev/null
	@.venv/bin/ninja -C build-abi3 -j $(JOBS) _core _caffe

# Builds the wheel, installs it into a fresh environment and uses it: minutes, so not in `make test`.
wheel-test: setup
	@$(PYTHON) -m pytest tests/wheel

clean:
	rm -rf build build-wheel build-abi3 dist jvm/target
