# SPDX-License-Identifier: GPL-3.0-or-later
# `make help` lists the goals.

SWIFT ?= swift
export SWIFT
# The libraries of Swift are linked statically: the programs start faster and run where no Swift is installed.
CHECKS = --explicit-target-dependency-import-check error
RELEASE = -c release --static-swift-stdlib $(CHECKS)
BIN = .build/release
PROGRAMS = badged badgectl badged-virtual-card
# Programs that only badged starts.
PARTS = badged-activation badged-nfc

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
# polkit and badged look for these files in one place only.
POLKITDIR ?= /usr/share/polkit-1/rules.d
CONFDIR ?= /etc/badged

VERSION = $(shell sed -n 's/.*static let current = "\(.*\)"/\1/p' Sources/Base/Host/Version.swift)
MANUALS = badged.8 badgectl.1 badged-virtual-card.1 badged.conf.5
FILL = sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@BINDIR@|$(BINDIR)|g'

# Scenarios of `make system-test`; empty for all, --short for those that take few minutes.
SCENARIOS ?=

.PHONY: help setup build test test-all system-test run demo bench fuzz sanitize peer-test format lint install uninstall clean

help:
	@echo 'make demo         show it at work: build, start badged with a virtual card, change its PIN'
	@echo 'make test         run every test that needs no hardware'
	@echo 'make test-all     the same with BADGED_TEST_ALL=1: tables of FullTables run whole'
	@echo 'make system-test  run badged in a guest with Bluetooth and USB; SCENARIOS="..." for some scenarios'
	@echo 'make peer-test    let AusweisApp2 use our virtual card and our eID-Server'
	@echo 'make bench        measure; fails when a figure is worse than its limit'
	@echo 'make fuzz         fuzz the parsers, each for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make sanitize     run the Swift tests with the address and the thread sanitizer'
	@echo 'make setup        install missing Debian packages (other goals do so as needed)'
	@echo 'make build        build the programs into $(BIN)'
	@echo 'make run          run badged with a virtual card in the foreground; ARGS="..." for more options'
	@echo 'make format       format the sources; make lint checks them'
	@echo 'make install      install with PREFIX=$(PREFIX) DESTDIR=; make uninstall removes it'
	@echo 'make clean        remove all build products'

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

test-all: export BADGED_TEST_ALL = 1
test-all: test

# The exit code 77 says that this machine cannot run a guest.
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

# Seconds for each fuzz target.
FUZZ_SECONDS ?= 300

fuzz:
	@.ci/setup build
	Tests/Fuzz/run.sh $(FUZZ_SECONDS)

sanitize:
	@.ci/setup build run test
	@# In sequence, because the sanitizers need much memory. Tasks that wait at the end of a test are not leaks.
	ASAN_OPTIONS=detect_leaks=0 Tests/swift.sh --no-parallel --sanitize=address --scratch-path .build-address
	@# The suppressions need the symbolizer, and programs that tests start have no PATH.
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
		echo 'make install: error: $(BIN)/'$$program' is missing' >&2; \
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
	@# The configuration of the administrator is kept.
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
