# The commands of the project. `make run` starts a host, `make test` proves it.

.PHONY: run peers test test-nfs test-slurm inett-bench faces-bench limits mail-kills mail-figures test-long spec lint interop conformance serial-figures soak freeze hostile fuzz instructions bench turmoil memory million mutations \
  figures-kernel figures-response figures-fairness figures-flood figures-speed figures-overload figures-layers figures-files structures-bench explain-bench history-bench dashboard-bench scripts scripts-kernel differ differ-mutations mutants oracle oracle-base deny \
  docs man deb static package package-test semver

run: ## Build and start a host: no configuration, no root, no device
	cargo run --release -p inhost-cli -- serve

peers: ## The programs of others that the tests run against: installed on Debian as root, else named
	lab/interop/peers

test: peers ## Every test, interop included, by cargo-nextest with a limit for each; TEST="NAME …" for some of them
	lab/interop/nextest
	# Started in the background the interrupt would be ignored, and so it would be in every terminal under test.
	env --default-signal cargo run --quiet -p inhost-audit -- tests $(TEST)
	cargo run --quiet -p inhost-audit -- arrows
	cargo run --quiet -p inhost-audit -- measures --quiet
	cargo run --quiet -p inhost-audit -- spec --quiet
	cargo run --quiet -p inhost-audit -- links
	cargo run --quiet -p inhost-audit -- tokio

limits: ## Tests that misbehave: each is ended, named, and nothing of it is left
	lab/interop/nextest
	cargo run --quiet -p inhost-audit -- limits

test-long: ## The tests that take minutes
	cargo test --release -p inhost-tcp --lib -- --ignored
	cargo test --release -p inhost-sim --test it -- --ignored response::

spec: ## Every requirement of docs/spec with its branch and its test, or a reason
	cargo run --quiet -p inhost-audit -- spec

lint: ## Formatting, clippy and docs, with warnings denied; the lock files of packages outside the workspace
	for lock in fuzz/Cargo.lock lab/bare/Cargo.lock lab/bench/peers/*/Cargo.lock; do \
	  cargo update --quiet --workspace --locked --manifest-path $${lock%lock}toml || exit 1; \
	done
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	RUSTDOCFLAGS="-D warnings" cargo doc -p inhost --all-features --no-deps --quiet

docs: ## The documentation as a book in target/book, to be read from target/book/index.html
	@command -v mdbook >/dev/null || cargo install mdbook --locked
	cargo run --quiet -p inhost-audit -- links
	cargo run --quiet -p inhost-audit -- book
	mdbook build

PACKAGING = target/packaging
man: ## Manual pages and completions into target/packaging, from the command's own grammar
	cargo build --release --quiet -p inhost-cli
	rm -rf $(PACKAGING) && mkdir -p $(PACKAGING)
	target/release/inhost man $(PACKAGING)/man
	for shell in bash zsh fish; do target/release/inhost completions $$shell > $(PACKAGING)/inhost.$$shell || exit 1; done

deb: man ## A Debian package in target/debian: command, pages, completions, a hardened systemd unit, /etc/inhost/host.toml
	@command -v cargo-deb >/dev/null || cargo install cargo-deb --locked
	rm -rf target/debian
	cargo deb --quiet -p inhost-cli --no-build --strip
	@ls -l target/debian/*.deb

TRIPLE = $(shell rustc -vV | sed -n 's/^host: //p')
static: ## The command as one file without a library of the system, and the proof: it serves from a root that is empty
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --quiet -p inhost-cli --target $(TRIPLE)
	lab/interop/static target/$(TRIPLE)/release/inhost

package-test: deb ## Install the package on a clean Debian that is booted, start, use, remove and purge it (needs root)
	lab/interop/package target/debian/*.deb

package: ## Each library crate packed, and built from its package alone; nothing is uploaded (docs/publishing.md)
	cargo run --quiet -p inhost-audit -- package

# The crates that have public items: all that would be published but the macros and the command.
LIBRARIES = $(shell cargo run --quiet -p inhost-audit -- publish-order | awk '{print $$2}' | grep -v -x -e inhost-macros -e inhost-cli)
CRATES ?= $(LIBRARIES)
semver: ## Public items of each library crate beside those of another revision: make semver BASE=REVISION
	@test -n "$(BASE)" || { echo "make semver: with which revision? make semver BASE=REVISION" >&2; exit 2; }
	command -v cargo-semver-checks >/dev/null || cargo install cargo-semver-checks --locked
	cargo semver-checks --baseline-rev $(BASE) $(addprefix --package ,$(CRATES))

deny: ## Licences, duplicate crates and sources; advisories where cargo-deny has their database (it fetches it with NET=1)
	command -v cargo-deny >/dev/null || cargo install cargo-deny --locked
	cargo deny check licenses bans sources
	@if ls "$${CARGO_HOME:-$$HOME/.cargo}"/advisory-dbs/*/crates >/dev/null 2>&1 || [ -n "$(NET)" ]; then \
	  cargo deny $(if $(NET),,--offline) check advisories; \
	else echo "make deny: advisories left out, there is no database; NET=1 fetches it"; fi

interop: peers ## The interop tests with a gigabyte each way (needs root)
	INHOST_BULK_BYTES=1000000000 cargo test --release -p inhost-cli --test it -- --nocapture kernel::

test-nfs: ## NFS: 1 GB and 10,000 files each way, beside libnfs; the Linux kernel's client in QEMU (needs the peers, and qemu-system-x86 and cpio)
	lab/interop/nfs-kernel --fetch
	cargo build -p inhost-cli
	cargo nextest run -p inhost-nfs --run-ignored only

test-slurm: ## Jobs at a real Slurm on this machine (root; Debian's slurmctld slurmd slurmdbd slurm-client munge mariadb-server)
	cargo nextest run -p inhost-jobs -p inhost-cli --run-ignored only -E 'test(slurm)'

SEEDS ?= 10000
soak: ## Simulated networks with faults over SEEDS seeds; a failing one is printed with the command that replays it
	cargo run --release --quiet -p inhost-sim -- soak --seeds $(SEEDS)

mail-figures: ## Durable messages a second beside Postfix and OpenSMTPD (needs root and the peers)
	cargo build --release --quiet -p inhost-cli
	lab/bench/mail

inett-bench: ## inett beside iperf3, both roles, at 100 Mbit/s and without a limit (root, ip, tc, iperf3)
	cargo build --release --quiet -p inhost-cli
	lab/bench/inett-beside-iperf3

FACES ?= 10 400
faces-bench: ## The interfaces of a host beside each other and the system's: bulk, small writes, echo, connect; FACES="ROUNDS MILLISECONDS"
	cargo build --release --quiet -p inhost-inett --example faces
	target/release/examples/faces $(FACES)

mail-kills: ## A host killed 20 times while 10,000 messages come in and go out loses none; duplicates are counted
	INHOST_MAIL_KILLS=20 INHOST_MAIL_MESSAGES=10000 cargo test -p inhost-cli --test it mail_kill -- --nocapture

freeze: ## SEEDS seeds with hosts that are frozen and thawed at random moments: not a frame and not an event changes
	cargo run --release --quiet -p inhost-sim --features freeze -- soak --freeze --seeds $(SEEDS)

conformance: ## The verdicts of docs/conformance.md, from a checkout of google/packetdrill: make conformance SUITE=PATH (needs root)
	lab/interop/conformance $(SUITE)

serial-figures: ## Echo at 9600 baud beside the line's own time, and 400 KB through noise, by SLIP and by LLP
	lab/interop/peers
	INHOST_NOISY_BYTES=200000 cargo test --release -p inhost-cli --test it -- --nocapture serial::

FUZZ_SECONDS ?= 60
# Sanitizers want a nightly compiler, or one that is told to take it that it is one: then the release that everything
# else is built with does, and none has to be installed.
FUZZ = RUSTC_BOOTSTRAP=1 cargo fuzz
fuzz: ## Each fuzz target for FUZZ_SECONDS, from fuzz/corpus into fuzz/found; needs cargo-fuzz, and no nightly compiler
	@cargo fuzz --version >/dev/null 2>&1 || \
	  { echo "make fuzz: cargo-fuzz is missing; cargo install cargo-fuzz --locked" >&2; exit 1; }
	$(FUZZ) build
	for target in $$($(FUZZ) list); do \
	  mkdir -p fuzz/found/$$target; \
	  $(FUZZ) run $$target fuzz/found/$$target fuzz/corpus/$$target -- -max_total_time=$(FUZZ_SECONDS) || \
	    { echo "make fuzz: $$target found something; the input lies in fuzz/artifacts/$$target" >&2; exit 1; }; done

instructions: ## Instruction counts of the main paths under callgrind; a rise over 5 % fails (15 % of connect)
	cargo build --release --quiet -p inhost-bench
	target/release/inhost-bench instructions

bench: ## Ours beside smoltcp, gVisor, lwIP and the kernel, interleaved; BENCH="--quick --only memory-1500 --json …"
	cargo build --release --quiet -p inhost-bench
	target/release/inhost-bench compare $(BENCH)

turmoil: ## The simulator beside turmoil-net: three mistakes that only a TCP shows, and segments a second (docs/simulator.md)
	cargo run --release --quiet --locked --manifest-path lab/bench/peers/turmoil/Cargo.toml --target-dir target/turmoil

memory: ## Bytes of an idle connection, counted at the allocator, beside the kernel's
	cargo run --release --quiet -p inhost-bench -- memory

million: ## A million established connections in each of two hosts: bytes of an end and of a host, and an echo among them
	cargo run --release --quiet -p inhost-bench -- memory 1000000

ORACLE_SEEDS ?= 10000
oracle-base: ## What the stack of this checkout does, as digests, for `make oracle` to compare with
	$(MAKE) --no-print-directory target/oracle/now.txt && mv target/oracle/now.txt target/oracle/base.txt

oracle: ## Whether the stack does what it did at `make oracle-base`: each frame and event of 10,000 networks, each script
	$(MAKE) --no-print-directory target/oracle/now.txt
	@diff target/oracle/base.txt target/oracle/now.txt > target/oracle/differences.txt && \
	  echo "oracle: $$(wc -l < target/oracle/now.txt) runs, all as before" || \
	  { grep '^>' target/oracle/differences.txt | head -20; \
	    echo "oracle: $$(grep -c '^>' target/oracle/differences.txt) runs differ; target/oracle/differences.txt lists them" >&2; \
	    exit 1; }

.PHONY: target/oracle/now.txt
target/oracle/now.txt:
	mkdir -p target/oracle
	cargo build --release --quiet -p inhost-sim -p inhost-script
	target/release/inhost-sim digest --seeds $(ORACLE_SEEDS) --worlds 100 > $@
	target/release/inhost-script digest --exchanges 2000 lab/script/scripts >> $@

FRAMES ?= 10000000
hostile: ## FRAMES random, spoilt and forged frames into a host in the middle of transfers
	cargo run --release --quiet -p inhost-sim -- hostile --frames $(FRAMES)

FIGURES = cargo run --release --quiet -p inhost-bench -- figures

figures-kernel: ## Transfers beside the kernel's CUBIC through an emulated link: table and pictures (root; about an hour)
	$(FIGURES) kernel --subject ours --again
	-$(FIGURES) kernel --subject bbr --pairs 5
	$(FIGURES) kernel

figures-response: ## One connection at 1 and 10 Gbit/s in simulation, beside RFC 9438's response function
	$(FIGURES) response

figures-fairness: ## Ten of ours on one bottleneck in simulation; five beside five of the kernel's (root)
	$(FIGURES) fairness

figures-flood: ## Transfers beside 100,000 SYNs a second from random addresses, in simulation
	$(FIGURES) flood

figures-speed: ## Segments that the simulator carries in a second of one core
	$(FIGURES) speed

figures-overload: ## Datagrams worked off when up to 32 times too many come, in virtual time with declared costs
	$(FIGURES) overload

figures-layers: ## Nanoseconds of a segment by layer, by size and at both ends, beside VPI's figures: table and pictures
	$(FIGURES) layers

figures-files: ## FTP beside vsftpd and lftp, TFTP beside tftpd-hpa and atftpd, both ways: writes the table (root)
	lab/interop/peers
	cargo build --release --quiet -p inhost-cli -p inhost-bench
	target/release/inhost-bench figures files

structures-bench: ## Control structures compared: processes, procedures, tasks and the round, beside MIT's and UCLA's figures; STRUCTURES="--json …"
	cargo build --release --quiet -p inhost-structures
	target/release/inhost-structures --instructions $(STRUCTURES)

explain-bench: ## Verdicts of `inhost explain` against known truth: ours and the kernel's TCP, every vantage, a fresh seed (root)
	cargo run --release --quiet -p inhost-bench -- explain $(EXPLAIN)

history-bench: ## Questions to a million records of closed connections
	cargo run --release --quiet -p inhost-history --example million

dashboard-bench: ## Frames a second of the dashboard in headless Chromium; what it costs a busy host to be looked at (root)
	lab/interop/peers
	cargo test --release -p inhost-dashboard --test it -- --ignored --nocapture --test-threads 1

scripts: ## Every script of lab/script against our stack, in virtual time
	cargo run --quiet -p inhost-script -- run lab/script/scripts

scripts-kernel: ## Every script against the kernel too, in real time (needs root); writes the table of docs/scripts.md
	cargo build --quiet -p inhost-script
	nice target/debug/inhost-script table

DIFFER ?= 20000
FROM ?= 0
differ: ## Exchanges of DIFFER seeds (from FROM on) on the kernel and on our `linux` profile, compared (needs root)
	cargo build --quiet -p inhost-script
	target/debug/inhost-script differ --seeds $(DIFFER) --from $(FROM)

SHARD ?= 0/12
# Memory that a mutant may take, in KiB of address space.
MUTANT_KIB ?= 8388608
mutants: ## cargo-mutants over TCP, congestion control and the stack: some 500 of 6,000 mutants, SHARD=k/12 for others
	command -v cargo-mutants || cargo install cargo-mutants --locked
	@# First by the tests of the mutant's own crate; what these miss, by the scripts. A mutant that fills memory without end
	@# fails at the limit, which the compiler and the tests as they are stay far below.
	ulimit -v $(MUTANT_KIB); CARGO_PROFILE_DEV_DEBUG=0 cargo mutants --output target/mutants --shard $(SHARD) --sharding round-robin; \
	  test $$? -ne 1 && sed 's/[^a-zA-Z0-9]/./g; s/^/--re=^/; s/$$/$$/' target/mutants/mutants.out/missed.txt \
	    | xargs -r env CARGO_PROFILE_DEV_DEBUG=0 cargo mutants --output target/mutants-scripts \
	      --test-package inhost-script --cargo-test-arg=--test=it --cargo-test-arg=ours::

differ-mutations: ## Mistakes put into the stack, one at a time; the judge must find each within 400 seeds (needs root)
	cargo test -p inhost-script --test it -- --ignored mutations:: --nocapture

mutations: ## Eleven mistakes put into the stack, one at a time; the checker must find each within a thousand seeds
	cargo test -p inhost-sim --test it -- --ignored mutations:: --nocapture
