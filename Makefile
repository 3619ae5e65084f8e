# SPDX-License-Identifier: GPL-3.0-or-later
# `make help` lists the verbs.

SWIFT ?= swift
export SWIFT
# Swift's own libraries go into the programs: they start faster, need less memory, and no Swift where they run.
CHECKS = --explicit-target-dependency-import-check error
RELEASE = -c release --static-swift-stdlib $(CHECKS)
BIN = .build/release
PROGRAMS = badged badgectl badged-virtual-card
# Started by badged alone.
PARTS = badged-activation

PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
LIBEXECDIR ?= $(PREFIX)/libexec
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/badged
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
UDEVDIR ?= $(PREFIX)/lib/udev/rules.d
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
# These two are looked for in one place only.
POLKITDIR ?= /usr/share/polkit-1/rules.d
CONFDIR ?= /etc/badged

VERSION = $(shell sed -n 's/.*static let current = "\(.*\)"/\1/p' Sources/Base/Host/Version.swift)
MANUALS = badged.8 badgectl.1 badged-virtual-card.1 badged.conf.5
FILL = sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@BINDIR@|$(BINDIR)|g'

# The scenarios of `make system-test` to run; without any: all. --short: some, in a few minutes.
SCENARIOS ?=

.PHONY: help setup build test system-test run demo bench fuzz sanitize peer-test format lint install uninstall clean

help:
	@echo 'make demo       see it work: builds, starts badged with a virtual card, changes its PIN'
	@echo 'make test       everything that can be tested without hardware'
	@echo 'make system-test  more of it, in a guest with Bluetooth of its own; SCENARIOS="..." for some'
	@echo 'make setup      install the Debian packages that are missing (the others do it as needed)'
	@echo 'make build      the programs, in $(BIN)'
	@echo 'make run        badged with a virtual card in the foreground; ARGS="..." for more options'
	@echo 'make bench      measure; fails when a figure is worse than its limit'
	@echo 'make fuzz       feed the parsers with nonsense; FUZZ_SECONDS=$(FUZZ_SECONDS) for each'
	@echo 'make sanitize   the Swift tests with the address and the thread sanitizer'
	@echo 'make peer-test  let AusweisApp2 change the PIN of our virtual card and authenticate with it'
	@echo 'make format     format the source; make lint: check it'
	@echo 'make install    PREFIX=$(PREFIX) DESTDIR=; make uninstall takes it away again'
	@echo 'make clean      remove what was built'

setup:
	@.ci/setup build run test

build:
	@.ci/setup build
	$(SWIFT) build $(RELEASE)

test:
	@.ci/setup build run test
	$(SWIFT) build $(RELEASE)
	Tests/swift.sh
	Tests/System/run.sh

# 77: this machine cannot run a guest; it has said why.
system-test: build
	@.ci/setup run guest
	@Tests/Guest/run.sh $(SCENARIOS) || [ $$? = 77 ]

run: build
	exec $(BIN)/badged --virtual --socket "$${XDG_RUNTIME_DIR:-/tmp}/badged-run.sock" $(ARGS)

demo:
	@.ci/setup build
	$(SWIFT) build $(RELEASE)
	@Tests/System/demo.sh

bench: build
	@.ci/setup run bench
	Tests/Benchmarks/run.sh

# Seconds for each target.
FUZZ_SECONDS ?= 300

fuzz:
	@.ci/setup build
	Tests/Fuzz/run.sh $(FUZZ_SECONDS)

sanitize:
	@.ci/setup build run test
	@# One test after the other: they are slow enough. What waits at the tests' end is no leak.
	ASAN_OPTIONS=detect_leaks=0 Tests/swift.sh --no-parallel --sanitize=address --scratch-path .build-address
	@# The programs that tests start have no PATH in which to look for the symbolizer that the suppressions need.
	TSAN_OPTIONS=suppressions=$(CURDIR)/Tests/tsan.suppressions:external_symbolizer_path=$$(command -v llvm-symbolizer) \
		Tests/swift.sh --no-parallel --sanitize=thread --scratch-path .build-thread

peer-test: build
	Tests/System/peer/run.sh

format:
	$(SWIFT) format -i -r Sources Tests Package.swift

lint:
	@.ci/lint

install:
	@for program in $(PROGRAMS) $(PARTS); do test -x $(BIN)/$$program || { \
		echo 'make install: error: $(BIN)/'$$program' is not there' >&2; \
		echo 'hint: make build, then make install' >&2; exit 1; }; done
	install -d '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(LIBEXECDIR)' '$(DESTDIR)$(UNITDIR)' '$(DESTDIR)$(SYSUSERSDIR)' '$(DESTDIR)$(UDEVDIR)' \
		'$(DESTDIR)$(POLKITDIR)' '$(DESTDIR)$(CONFDIR)' '$(DESTDIR)$(DOCDIR)/protocol' '$(DESTDIR)$(BASHDIR)' \
		'$(DESTDIR)$(ZSHDIR)' '$(DESTDIR)$(FISHDIR)' $(foreach s,1 5 8,'$(DESTDIR)$(MANDIR)/man$(s)')
	install -s -m 755 $(PROGRAMS:%=$(BIN)/%) '$(DESTDIR)$(BINDIR)'
	install -s -m 755 $(PARTS:%=$(BIN)/%) '$(DESTDIR)$(LIBEXECDIR)'
	$(FILL) systemd/badged.service >'$(DESTDIR)$(UNITDIR)/badged.service'
	install -m 644 systemd/badged.socket '$(DESTDIR)$(UNITDIR)'
	install -m 644 systemd/badged-sysusers.conf '$(DESTDIR)$(SYSUSERSDIR)/badged.conf'
	install -m 644 systemd/badged-polkit.rules '$(DESTDIR)$(POLKITDIR)/50-badged.rules'
	install -m 644 udev/94-badged.rules '$(DESTDIR)$(UDEVDIR)'
	@# What the administrator wrote stays.
	test -e '$(DESTDIR)$(CONFDIR)/badged.conf' || install -m 644 systemd/badged.conf '$(DESTDIR)$(CONFDIR)'
	$(foreach m,$(MANUALS),$(FILL) docs/man/$(m) >'$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(m)))/$(m)' &&) true
	install -m 644 README.md CHANGELOG.md LICENSE LICENSES/Apache-2.0.txt docs/*.md '$(DESTDIR)$(DOCDIR)'
	install -m 644 docs/protocol/*.md '$(DESTDIR)$(DOCDIR)/protocol'
	$(BIN)/badgectl completion bash >'$(DESTDIR)$(BASHDIR)/badgectl'
	$(BIN)/badgectl completion zsh >'$(DESTDIR)$(ZSHDIR)/_badgectl'
	$(BIN)/badgectl completion fish >'$(DESTDIR)$(FISHDIR)/badgectl.fish'
	@cd '$(DESTDIR)/' && chmod 644 '.$(UNITDIR)/badged.service' $(foreach m,$(MANUALS),'.$(MANDIR)/man$(subst .,,$(suffix $(m)))/$(m)') \
		'.$(BASHDIR)/badgectl' '.$(ZSHDIR)/_badgectl' '.$(FISHDIR)/badgectl.fish'
	@test -n '$(DESTDIR)' || printf '%s\n' 'Now: systemd-sysusers && systemctl daemon-reload && udevadm control --reload' \
		'     systemctl enable --now badged.socket, and for each user: adduser NAME badged'

uninstall:
	cd '$(DESTDIR)/' && rm -f $(PROGRAMS:%='.$(BINDIR)/%') $(PARTS:%='.$(LIBEXECDIR)/%') '.$(UNITDIR)/badged.service' '.$(UNITDIR)/badged.socket' \
		'.$(SYSUSERSDIR)/badged.conf' '.$(POLKITDIR)/50-badged.rules' '.$(UDEVDIR)/94-badged.rules' \
		$(foreach m,$(MANUALS),'.$(MANDIR)/man$(subst .,,$(suffix $(m)))/$(m)') \
		'.$(BASHDIR)/badgectl' '.$(ZSHDIR)/_badgectl' '.$(FISHDIR)/badgectl.fish'
	cd '$(DESTDIR)/' && rm -rf '.$(DOCDIR)'
	@echo 'kept: $(CONFDIR), /var/lib/badged, user and group badged'

clean:
	rm -rf .build .build-*
