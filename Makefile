# SPDX-License-Identifier: GPL-3.0-or-later
# `make help` lists the goals.

SWIFT ?= swift
export SWIFT
# The libraries of Swift are linked statically: the programs start faster and run where no Swift is installed.
CHECKS = --explicit-target-dependency-import-check error
# The build id connects a program with the debug symbols in its own Debian package. Programs are
# optimised for size, since they stay in memory: the little that needs a fast processor is in
# libraries. All symbols are bound at the start (-znow), and no program looks for libraries beside itself.
# Each function has a section of its own, so that the linker drops those that nothing calls.
# The debug symbols have no name of the folder or of its module cache, and the programs no hash of what the compiler read,
# so that two folders make the same programs.
RELEASE = -c release -Xswiftc -Osize --static-swift-stdlib -Xlinker --build-id=sha1 -Xlinker -znow \
	--disable-local-rpath $(CHECKS) -Xswiftc -file-prefix-map -Xswiftc '$(CURDIR)=.' -Xcc '-ffile-prefix-map=$(CURDIR)=.' \
	-Xswiftc -Xfrontend -Xswiftc -no-clang-module-breadcrumbs -Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen \
	-Xswiftc -Xfrontend -Xswiftc -function-sections \
	-Xlinker "$$(packaging/version --object)"
# The debug symbols name the code of macros, which the compiler writes into TMPDIR.
BUILD_RELEASE = mkdir -p .build/tmp && TMPDIR='$(CURDIR)/.build/tmp' $(SWIFT) build $(RELEASE)
BIN = .build/release

PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
LIBEXECDIR ?= $(PREFIX)/libexec
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/badged
UNITDIR ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
APPDIR ?= $(PREFIX)/share/applications
ICONDIR ?= $(PREFIX)/share/icons/hicolor
LOCALEDIR ?= $(PREFIX)/share/locale
# The modules of badged-desktop.
DESKTOPDIR ?= $(PREFIX)/share/badged-desktop
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
UDEVDIR ?= $(PREFIX)/lib/udev/rules.d
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
# polkit and badged look for these files in one place only.
POLKITDIR ?= /usr/share/polkit-1/rules.d
CONFDIR ?= /etc/badged

FOLDERS = BINDIR LIBEXECDIR MANDIR DOCDIR UNITDIR USERUNITDIR APPDIR ICONDIR LOCALEDIR DESKTOPDIR SYSUSERSDIR UDEVDIR BASHDIR ZSHDIR FISHDIR POLKITDIR CONFDIR
# The option of install(1) that removes debug symbols from programs.
STRIP ?= -s
# Debian packages whose files are installed (packaging/files); empty for all files.
PACKAGES ?=

# Scenarios of `make system-test`; empty for all, --short for those that take few minutes.
SCENARIOS ?=

.PHONY: help setup build programs deb release docs test test-all system-test run demo bench fuzz sanitize sanitize-address \
	sanitize-thread nightly peer-test format man po lint install uninstall clean

help:
	@echo 'make demo         show it at work: build, start badged with a virtual card, change its PIN'
	@echo 'make test         run every test that needs no hardware'
	@echo 'make test-all     the same with BADGED_TEST_ALL=1: tables of FullTables run whole'
	@echo 'make system-test  run badged in a guest with Bluetooth and USB; SCENARIOS="..." for some scenarios'
	@echo 'make peer-test    let AusweisApp2 use our virtual card and our eID-Server; KEYCARD_LAB=... for a Keycard applet'
	@echo 'make bench        measure; fails when a figure is worse than its limit'
	@echo 'make fuzz         fuzz the parsers, each for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make sanitize     run the Swift tests with the address and the thread sanitizer'
	@echo 'make nightly      all of the above that takes long, in two and a half hours at most, with a table; GOALS="..." for some'
	@echo 'make setup        install missing Debian packages (other goals do so as needed)'
	@echo 'make build        build the programs into $(BIN)'
	@echo 'make run          run badged with a virtual card in the foreground; ARGS="..." for more options'
	@echo 'make format       format the sources; make lint checks them'
	@echo 'make man          write the options of the programs into the manual pages'
	@echo 'make po           write the texts of the programs into the catalogues of po, for translation'
	@echo 'make install      install with PREFIX=$(PREFIX) DESTDIR=; make uninstall removes it'
	@echo 'make docs         make the reference of the client library into .build-docs, for docc'
	@echo 'make deb          build the Debian packages into .build-deb'
	@echo 'make release      make what a release has: packages, sources, bill of materials, sums'
	@echo 'make clean        remove all build products'

setup:
	@.ci/setup build run test

build:
	@.ci/setup build
	@$(MAKE) --no-print-directory programs

# The build alone, which needs no network.
programs:
	$(BUILD_RELEASE)

# The packages, the source archive, the bill of materials and their sums: .build-release.
release: build
	@.ci/setup package
	@BIN='$(BIN)' packaging/release

deb: build
	@.ci/setup package
	@BIN='$(BIN)' packaging/deb

test:
	@.ci/setup build run test
	$(BUILD_RELEASE)
	Tests/swift.sh
	Tests/System/run.sh

# Full tables keep the processors busy for long; a board in software answers in time only if it gets its share of them.
test-all: export BADGED_TEST_ALL = 1
test-all: export BADGED_TEST_WIDTH = 8
test-all: test

# The exit code 77 says that this machine cannot run a guest; then the last line is "not run: ...".
system-test: export DPKG_DEB_COMPRESSOR_LEVEL = 0
system-test: deb
	@.ci/setup run guest
	@Tests/Guest/run.sh $(SCENARIOS) || [ $$? = 77 ]

# The flags are those of Tests/System/examples.sh, so that one build serves both.
docs:
	@.ci/setup build
	$(SWIFT) build --package-path docs/examples --scratch-path .build-examples \
		-Xswiftc -emit-symbol-graph -Xswiftc -emit-symbol-graph-dir -Xswiftc '$(CURDIR)/.build-examples/symbols'
	Sources/Client/reference.sh .build-examples/symbols .build-docs
	@echo 'The reference is .build-docs/badged.doccarchive. To read it: docc preview, or a web server.'

RUN_SOCKET = $${XDG_RUNTIME_DIR:-/tmp}/badged-run.sock
RUN_STATE = $${XDG_STATE_HOME:-$$HOME/.local/state}/badged-run

run: build
	@mkdir -p "$(RUN_STATE)" && chmod 700 "$(RUN_STATE)"
	@echo "badged listens at $(RUN_SOCKET), and keeps its state in $(RUN_STATE)."
	@echo "In another terminal: $(BIN)/badgectl --socket $(RUN_SOCKET) status; the PIN of the virtual card is 123456."
	@STATE_DIRECTORY="$(RUN_STATE)" exec $(BIN)/badged --virtual --socket "$(RUN_SOCKET)" $(ARGS)

demo:
	@.ci/setup build
	@Tests/System/demo.sh --build

bench: build
	@.ci/setup run bench
	Tests/Benchmarks/run.sh

# Seconds for each fuzz target.
FUZZ_SECONDS ?= 300

fuzz:
	@.ci/setup build
	Tests/Fuzz/run.sh $(FUZZ_SECONDS)

sanitize: sanitize-address sanitize-thread

# Few at once, because the sanitizers need much memory.
sanitize-address sanitize-thread: export BADGED_TEST_WIDTH = 4
# A sanitizer changes the time that the tests of growth measure.
SANITIZED = --skip /growth
sanitize-address:
	@.ci/setup build run test
	@# Tasks that wait at the end of a test are not leaks.
	ASAN_OPTIONS=detect_leaks=0 Tests/swift.sh --sanitize=address --scratch-path .build-address $(SANITIZED)

# The runtime of the thread sanitizer fails in programs that have given up their rights.
CONFINED = activation bluetooth mqtt network nfc osdp remote

sanitize-thread:
	@.ci/setup build run test
	Tests/swift.sh --only-build
	Tests/swift.sh --only-build --build-tests --sanitize=thread --scratch-path .build-thread
	cp --remove-destination $(CONFINED:%=.build/debug/badged-%) .build-thread/debug/
	@# The suppressions need the symbolizer, and programs that tests start have no PATH. 25 dialogues at once take more
	@# time than a test has.
	TSAN_OPTIONS=suppressions=$(CURDIR)/Tests/tsan.suppressions:external_symbolizer_path=$$(command -v llvm-symbolizer) \
		Tests/swift.sh --sanitize=thread --scratch-path .build-thread --skip-build $(SANITIZED) \
		--skip UserShareTests

# Everything that takes long, with one table of results.
nightly:
	@Tests/nightly.sh $(GOALS)

peer-test: build
	Tests/System/peer/run.sh

format:
	$(SWIFT) format -i -r Sources Tests Package.swift
	@.ci/setup lint
	.build-tools/bin/ruff format -q clients

# The options in the manual pages, from --help of the programs.
man: build
	@BIN='$(BIN)' packaging/manual

po:
	@.ci/setup build
	po/update

lint:
	@.ci/lint

# What packaging/install reads.
INSTALL = BIN='$(BIN)' DESTDIR='$(DESTDIR)' STRIP='$(STRIP)' \
	$(foreach v,$(FOLDERS),$(v)='$($(v))') packaging/install

install:
	@$(INSTALL) $(PACKAGES)
	@test -n '$(DESTDIR)' || printf '%s\n' 'Now: systemd-sysusers && systemctl daemon-reload && udevadm control --reload' \
		'     systemctl enable --now badged.socket, and for each user: adduser NAME badged'

uninstall:
	@$(INSTALL) --remove
	@echo 'kept: $(CONFDIR), /var/lib/badged, user and group badged'

clean:
	rm -rf .build .build-*
