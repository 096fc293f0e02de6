# The commands of this project. CMake, Ninja and Cargo do the work; everything they make is in
# build/.

PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build
CTEST_FLAGS ?= --output-on-failure --parallel $(shell nproc)
FUZZ_SECONDS ?= 60
PROGRAMS_FLAGS ?=
GUIDES_FLAGS ?=
PLATFORMS ?=
TRY_FLAGS ?=
SCALE_FLAGS ?=
RESULTS ?= $(BUILD)/results
# Ubuntu has a Rust that is new enough there (cmake/install-tools.sh). Any other comes first.
export PATH := $(PATH):/usr/lib/rust-1.85/bin
CONFIGURE := cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
CONFIGURE_MUSL := cmake -S . -B $(BUILD)/musl -G Ninja --log-level=WARNING \
	-DCMAKE_C_COMPILER=musl-gcc -DCMAKE_INSTALL_LIBDIR=lib/$(shell uname -m)-linux-musl
CONFIGURE_HARDENED := cmake -S . -B $(BUILD)/hardened -G Ninja --log-level=WARNING \
	-DHAKMEM_HARDENED=1 -DHAKMEM_WERROR=1 -DHAKMEM_COMMAND="$(CURDIR)/$(BUILD)/bin/hakmem"
CONFIGURE_FUZZ := cmake -S . -G Ninja --log-level=WARNING
# The profile of the command, so that its dependencies are compiled once.
CARGO_FLAGS := --release --locked --workspace --target-dir $(BUILD)/cargo
CARGO_ALLOC_FLAGS := --release --locked --package hakmem-alloc
# With signals as in a terminal, for tests that send some; where `nohup` or a shell's `&` ignores them.
SIGNALS := $(shell env --default-signal true 2>/dev/null && echo env --default-signal)
# The quick tests in a directory: ends with the list of what they skipped, and fails as CTest does.
# What failed runs once more, alone, as some tests measure; what fails again fails the run.
define RUN_TESTS
cd $(1) && { rm -f skips.xml; $(2) ctest -LE 'long|scale' $(CTEST_FLAGS) --output-junit skips.xml \
	--test-output-size-passed 1000000; status=$$?; \
	[ $$status -ne 8 ] || { echo 'Once more, alone, what failed:'; \
	$(2) ctest --rerun-failed -j 1 --output-on-failure; status=$$?; }; \
	python3 -B "$(CURDIR)/tests/source/list_skipped.py" skips.xml $(3) || status=1; exit $$status; }
endef
LINTED = $(wildcard core/*/*.c)
SOURCES = $(shell find core include tests lab crates/peers crates/hakmem-sys/src -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp')

.DEFAULT_GOAL := build
.PHONY: build library library-musl deps all peers try scale check check-hardened \
	test-crates fuzz coverage programs guides platforms results pictures install uninstall dist packages \
	debian-source docs files format format-check lint clean help

# Builds the libraries and the command.
build:
	@sh cmake/install-tools.sh build
	@test -f $(BUILD)/build.ninja || $(CONFIGURE)
	@cmake --build $(BUILD) --target library command

# Builds libhakmem.so, libhakmem.a and hakmem.o alone, for which no Rust is needed.
library:
	@sh cmake/install-tools.sh library
	@test -f $(BUILD)/build.ninja || $(CONFIGURE)
	@cmake --build $(BUILD) --target library

# Builds the library for programs that are linked with musl.
library-musl:
	@sh cmake/install-tools.sh musl
	@$(CONFIGURE_MUSL)
	@cmake --build $(BUILD)/musl --target library

# Installs what the three above need, which install nothing themselves: on Debian and Ubuntu, as root.
# Elsewhere it says what the packages are called.
deps:
	@sh cmake/install-tools.sh deps

# Builds everything but the peers, with warnings as errors.
all:
	@sh cmake/install-tools.sh check
	@$(CONFIGURE) -DHAKMEM_WERROR=1
	@cmake --build $(BUILD)
	@$(CONFIGURE_MUSL) -DHAKMEM_WERROR=1
	@cmake --build $(BUILD)/musl --target library

# Builds other allocators to compare with.
peers:
	@sh cmake/install-tools.sh peers
	@sh crates/peers/build.sh $(BUILD)

# Shows workloads and real programs under hakmem and other allocators: some minutes, and a verdict.
try:
	@sh cmake/install-tools.sh try
	@sh cmake/build-to-try.sh $(BUILD)
	@$(BUILD)/bin/hakmem bench --quick --html=$(BUILD)/try.html --json=$(BUILD)/try.json \
		$(TRY_FLAGS); status=$$?; [ $$status -gt 1 ] || echo \
		'The page with plots and all figures: $(BUILD)/try.html. More allocators: make peers.'; \
		exit $$status

# Shows what each lock does under the workloads, and at how many cores it would be half busy.
scale:
	@sh cmake/install-tools.sh build
	@$(CONFIGURE)
	@cmake --build $(BUILD) --target hakmem_profile measure workloads
	@cargo run --quiet --release --locked --package hakmem-scale --target-dir $(BUILD)/cargo -- \
		--build $(BUILD) $(SCALE_FLAGS)

# Checks the format, and runs the tests: all but the long ones and the cliffs. Ends with the list of
# what was skipped, and why.
check: all format-check test-crates
	@$(call RUN_TESTS,$(BUILD),,skipped-by-crates)

# The tests of the crates, which use the programs and libraries in build/. Those of the allocator
# for Rust also with malloc replaced, and in the form that it has under Miri.
test-crates: all
	@rm -f $(BUILD)/skipped-by-crates
	@LAB_TEST_BUILD="$(CURDIR)/$(BUILD)" $(SIGNALS) cargo test $(CARGO_FLAGS)
	@cargo test $(CARGO_ALLOC_FLAGS) --target-dir $(BUILD)/cargo --features override,allocator-api2
	@RUSTFLAGS='--cfg miri' cargo test $(CARGO_ALLOC_FLAGS) --tests --target-dir $(BUILD)/cargo/miri

# Runs the test suite on the hardened library, in a build of its own.
check-hardened:
	@sh cmake/install-tools.sh check
	@$(MAKE) --no-print-directory build
	@$(CONFIGURE_HARDENED)
	@cmake --build $(BUILD)/hardened
	@$(call RUN_TESTS,$(BUILD)/hardened,HAKMEM_PRESET=hardened,)

# Fuzzes the calls, the options and the text, with libFuzzer and AFL++, and what the command reads.
fuzz:
	@sh cmake/install-tools.sh fuzz
	@$(CONFIGURE_FUZZ) -B $(BUILD)/fuzz -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
		-DHAKMEM_SANITIZE=undefined
	@$(CONFIGURE_FUZZ) -B $(BUILD)/fuzz-afl -DCMAKE_C_COMPILER=afl-clang-fast \
		-DCMAKE_CXX_COMPILER=afl-clang-fast++
	@cmake --build $(BUILD)/fuzz --target fuzz
	@AFL_QUIET=1 cmake --build $(BUILD)/fuzz-afl --target fuzz
	@python3 tests/fuzz/fuzz.py $(BUILD)/fuzz --afl $(BUILD)/fuzz-afl --seconds $(FUZZ_SECONDS)
	@$(MAKE) --no-print-directory library
	@LAB_TEST_BUILD="$(CURDIR)/$(BUILD)" FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$$(date +%s) \
		cargo test $(filter-out --workspace,$(CARGO_FLAGS)) --package hakmem-cli --test fuzz

# Runs real programs under the C library's malloc, under hakmem in each preset, and recorded.
programs:
	@sh cmake/install-tools.sh programs
	@$(MAKE) --no-print-directory build
	@python3 tests/programs/run_programs.py --library $(BUILD)/libhakmem.so --install \
		$(PROGRAMS_FLAGS)

# Runs the commands of the guides and compares what they print.
guides:
	@sh cmake/install-tools.sh guides
	@$(MAKE) --no-print-directory build
	@python3 tests/guides/run_guides.py --build $(BUILD) --install $(GUIDES_FLAGS)

# Builds and tests hakmem for each platform, or for PLATFORMS=NAME,... alone.
platforms:
	@sh cmake/install-tools.sh platforms
	@$(if $(PLATFORMS),,python3 -B tests/packaging/check_targets.py $(BUILD) || test $$? = 77)
	@python3 tests/platforms/run_platforms.py --build $(BUILD)/platforms \
		$(if $(PLATFORMS),--only $(PLATFORMS))

# Puts what `hakmem bench` has written into RESULTS into docs/benchmarks.md and the README: tables and
# picture.
results:
	@sh cmake/install-tools.sh pictures
	@$(MAKE) --no-print-directory build
	@python3 tests/source/readme_results.py --write . $(RESULTS)
	@test ! -f $(RESULTS)/workloads.json || sh docs/screenshots.sh $(BUILD) comparison $(RESULTS)

# Takes the pictures of docs/ anew.
pictures:
	@sh cmake/install-tools.sh pictures
	@$(MAKE) --no-print-directory build
	@sh docs/screenshots.sh $(BUILD)

# Says which lines of the core the tests run, and which ways to abort they reach.
coverage:
	@sh cmake/install-tools.sh coverage
	@python3 tests/coverage/coverage.py --build $(BUILD)/coverage

# Builds only if nothing is built: under sudo, a user's Cargo is not found, and root's begins anew.
install uninstall: $(BUILD)/bin/hakmem

$(BUILD)/bin/hakmem:
	@$(MAKE) --no-print-directory build

install:
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

# Removes what `make install` with the same PREFIX and DESTDIR has put there.
uninstall:
	@DESTDIR=$(DESTDIR) sh cmake/uninstall.sh $(BUILD) $(PREFIX)

# What a release consists of, of the commit that is checked out: sources, bill of materials, sums.
dist:
	@sh cmake/install-tools.sh dist
	@python3 -B packaging/dist.py $(BUILD)/dist

# Makes the packages of that commit for all systems, and tries each in a bare one.
packages:
	@sh cmake/install-tools.sh packages
	@python3 -B packaging/packages.py $(BUILD)/packages

# Makes Debian's source package of that commit, builds the library of it without a network, and runs
# lintian and autopkgtest.
debian-source:
	@sh cmake/install-tools.sh packages
	@python3 -B packaging/source_package.py $(BUILD)/packages

# Makes the pages of the interfaces for C, C++ and Rust.
docs:
	@sh cmake/install-tools.sh docs
	@python3 -B packaging/docs.py $(BUILD)

# Prints what each file of the core is for, or of FOLDERS.
files:
	@python3 tests/source/list_files.py . $(FOLDERS)

format:
	@sh cmake/install-tools.sh check
	@clang-format -i $(SOURCES)
	@cargo fmt --all

# Other versions of clang-format than that of CONTRIBUTING.md have a format of their own.
format-check:
	@if clang-format --version | grep -q 'version 14\.'; then \
		clang-format --dry-run -Werror --ferror-limit=1 $(SOURCES); \
	else echo 'Not checked, as that takes clang-format 14: the format of C.'; fi && \
		cargo fmt --all --check || { echo 'The format differs: run make format.' >&2; exit 1; }

# The analyzers; .clang-tidy says what is left out. And whether the interfaces are documented.
lint:
	@sh cmake/install-tools.sh check
	@cargo clippy --quiet $(CARGO_FLAGS) --all-targets -- -D warnings
	@clang-tidy --quiet $(LINTED) -- -std=gnu17 -D_GNU_SOURCE -DHAKMEM_DEBUG=1 -DHAKMEM_HARDENED=0 \
		-DHAKMEM_FAULTS=0 -DHAKMEM_MEASURING=0 -DHAKMEM_SANITIZE_ADDRESS=0 \
		-DHAKMEM_SANITIZE_THREAD=0 -DHAKMEM_DEFAULT_PRESET=1 '-DHAKMEM_CONF="/etc/hakmem.conf"' -Icore -Iinclude \
		2>/dev/null
	@$(MAKE) --no-print-directory docs

clean:
	@rm -rf $(BUILD)

help:
	@echo 'make            build the libraries and the command hakmem in $(BUILD)/'
	@echo 'make library    build libhakmem.so, libhakmem.a and hakmem.o alone, without Rust'
	@echo 'make library-musl   build them for programs that are linked with musl'
	@echo 'make deps       install what these need (Debian and Ubuntu, as root), or name it'
	@echo 'make all        build everything with warnings as errors, tests included'
	@echo 'make peers      build other allocators to compare with'
	@echo 'make try        some workloads and programs under hakmem and other allocators: a verdict'
	@echo 'make scale      what each lock does, and on how many cores it stops them'
	@echo 'make check      build everything, check the format, run the tests'
	@echo 'make test-crates   run the tests of the crates'
	@echo 'make lint       run clippy and clang-tidy, and make the docs'
	@echo 'make check-hardened   run the tests on the hardened library'
	@echo 'make fuzz       look for inputs that break it, FUZZ_SECONDS ($(FUZZ_SECONDS)) a target'
	@echo 'make programs   real programs under the C library and under hakmem'
	@echo 'make guides     the commands of docs/guides, and what they print'
	@echo 'make platforms  other compilers, processors, page sizes and C libraries, sanitizers'
	@echo 'make coverage   what the tests reach of the core'
	@echo 'make results    tables and picture of README.md and docs/benchmarks.md, from $(RESULTS)/'
	@echo 'make pictures   the pictures of docs/'
	@echo 'make install    install into PREFIX ($(PREFIX)), below DESTDIR if set'
	@echo 'make uninstall  remove what make install has put there'
	@echo 'make dist       the sources of a release, with bill of materials and checksums'
	@echo 'make packages   Debian packages, RPMs, tarballs and wheels, each tried in a bare system'
	@echo 'make debian-source  the source package for Debian, built and tried in a bare one'
	@echo 'make docs       pages of the interfaces for C, C++ and Rust, in $(BUILD)/docs/'
	@echo 'make files      the first sentence of each file of the core, or of FOLDERS'
	@echo 'make format     format the sources'
	@echo 'make clean      remove $(BUILD)/'
