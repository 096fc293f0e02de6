# The commands of this project. CMake and Ninja do the work; everything they make is in build/.

PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build
CTEST_FLAGS ?= --output-on-failure
STRESS_FLAGS ?= --operations 100000000 --seeds 20 --threads 1,2,8,64
TRY_FLAGS ?=
CONFIGURE := cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
LINTED = $(wildcard core/*/*.c)
SOURCES = $(shell find core include tests lab -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp')

.DEFAULT_GOAL := library
.PHONY: library all try check stress install format format-check lint clean help

# Builds libhakmem.so, libhakmem.a and hakmem.o.
library:
	@sh cmake/install-tools.sh build
	@test -f $(BUILD)/build.ninja || $(CONFIGURE)
	@cmake --build $(BUILD) --target library

# Builds the library and all tests, with warnings as errors.
all:
	@sh cmake/install-tools.sh check
	@$(CONFIGURE) -DHAKMEM_WERROR=1
	@cmake --build $(BUILD)

# Shows real programs under hakmem beside the system's malloc.
try:
	@sh cmake/install-tools.sh try
	@$(MAKE) --no-print-directory library
	@cmake --build $(BUILD) --target measure
	@/usr/bin/python3 lab/try/try.py --build $(BUILD) $(TRY_FLAGS)

# Runs every check of a commit: format, lint, layers and all tests but the long ones.
check: all format-check lint
	@cd $(BUILD) && ctest -LE long $(CTEST_FLAGS)

# Runs the shadow-model stress in the form it has to pass before a release.
stress: all
	$(BUILD)/tests/stress/stress $(STRESS_FLAGS)

install: library
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

format:
	@sh cmake/install-tools.sh check
	@clang-format -i $(SOURCES)

format-check:
	@clang-format --dry-run -Werror --ferror-limit=1 $(SOURCES) || \
		{ echo 'The format differs: run make format.' >&2; exit 1; }

# The analyzer; .clang-tidy says what is left out.
lint:
	@clang-tidy --quiet $(LINTED) -- -std=gnu17 -D_GNU_SOURCE -DHAKMEM_DEBUG=1 -Icore -Iinclude \
		2>/dev/null

clean:
	@rm -rf $(BUILD)

help:
	@echo 'make            build libhakmem.so, libhakmem.a and hakmem.o in $(BUILD)/'
	@echo 'make try        run real programs under hakmem and under the system malloc'
	@echo 'make check      build everything, check format and lint, run the tests'
	@echo 'make stress     the long stress test, for a release'
	@echo 'make install    install into PREFIX ($(PREFIX)), below DESTDIR if set'
	@echo 'make format     format the C and C++ sources'
	@echo 'make clean      remove $(BUILD)/'
