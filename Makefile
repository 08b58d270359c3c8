# Everything builds with one profile into one target folder outside the clone, so that a second clone, or `make test`
# after `make demo`, does not build the dependencies again.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/oncall/target
# Dependencies that are tried for nothing cost minutes: what is locked is what is built.
CARGO = cargo
BIN = $(CARGO_TARGET_DIR)/debug/oncall
DEMO_DATA = $(CARGO_TARGET_DIR)/demo-data

.PHONY: demo test test-servers ci fmt clippy build eval bench man install-man

# Installs what is missing, builds, indexes docs-kb and diagnoses the example incident.
demo: build
	$(BIN) --data-dir $(DEMO_DATA) index docs-kb
	$(BIN) --data-dir $(DEMO_DATA) diagnose --incident examples/order-service

# `--tests` makes the features of the dependencies the same as in `make test`.
build:
	.ci/install build
	$(CARGO) build --locked --workspace --bin oncall --tests

# Everything the tests need, then the tests, then the examples: every diagnosis has to be right.
test:
	.ci/install test
	python3 examples/check.py
	$(CARGO) test --locked --workspace
	ONCALL_AGENT_TOOL_TIMEOUT=2m $(BIN) --data-dir $(DEMO_DATA) eval examples

# What needs servers that are no part of a distribution: the API server of Kubernetes and VictoriaLogs, which are compiled
# (half an hour, once), MCP servers from npm and PyPI, which are installed (those of Prometheus, Alertmanager, Grafana and
# Kubernetes among them), and a real small model behind llama.cpp's server, which LLAMA_SERVER and LLAMA_MODEL name.
# They fail, and say what is missing, where it is.
test-servers:
	.ci/install test
	.ci/install servers
	$(CARGO) test --locked --workspace --test it live::compiled -- --ignored
	$(CARGO) test --locked --workspace --test it mcp_others -- --ignored
	$(CARGO) test --locked --workspace --test it real_model -- --ignored

# What the build server runs: formatting, lints and the tests. The last lines say what that leaves out.
ci: fmt clippy test
	@echo "ci: passed. Not run: 'make test-servers' (Kubernetes, VictoriaLogs and llama.cpp's server, which have to be compiled first,"
	@echo "    and MCP servers from npm and PyPI; Kubernetes, VictoriaLogs and Loki are answered by hand in the tests above),"
	@echo "    'make eval' (public data beside the clone), 'make bench'."

fmt:
	$(CARGO) fmt --check

clippy:
	.ci/install build
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# Scores on public data that lies beside the clone; see benches/README.md.
eval: build
	python3 ../shared/eval/score_logs.py $(BIN)
	python3 ../shared/eval/score_retrieval.py $(BIN)

# LOGHUB names a folder with the HDFS and OpenSSH samples, for the comparison with Drain3.
bench:
	$(CARGO) build --locked --release --workspace --bin oncall --bench tui --bench embedding --bench mining
	benches/run $(CARGO_TARGET_DIR)/release/oncall $(LOGHUB)

# The manual page, for `man -l oncall.1`.
man: build
	$(BIN) man > oncall.1

# The manual page where `man oncall` finds it; MANDIR=/usr/local/share/man for all users.
MANDIR ?= $(HOME)/.local/share/man
install-man: man
	install -D -m 644 oncall.1 $(MANDIR)/man1/oncall.1
