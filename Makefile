# ksmith: `make` builds what this machine allows, `make demo` and `make test` do all the set-up themselves.
# Sources are found by folder: a new .c file needs no line here.

CC      ?= gcc
PREFIX  ?= /usr/local
DESTDIR ?=
SAN     ?=
BUILD   ?= $(if $(SAN),build-san,build)
V       ?= 0

PKGS    := libcjson inih libgit2 libcurl ncursesw
VERSION := 0.1.0

WARN    := -Wall -Wextra -Wpedantic -Werror
CFLAGS  ?= -O2 -g
KSFLAGS := -std=c17 -D_GNU_SOURCE -DKSMITH_VERSION='"$(VERSION)"' $(WARN) -fno-strict-aliasing -ffp-contract=off \
           -Iengine -Igpu -Itui -I. $(filter-out -D_XOPEN_SOURCE=600 -D_DEFAULT_SOURCE,$(shell pkg-config --cflags $(PKGS) 2>/dev/null)) \
           $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
# Where a bundle keeps its libraries; elsewhere the folder is not there and the system's are taken.
RPATH   := -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/ksmith'
LIBS     = $(RPATH) $(shell pkg-config --libs libcjson inih libgit2 libcurl ncursesw 2>/dev/null) -lm -ldl
WLIBS    = $(RPATH) $(shell pkg-config --libs libcjson inih 2>/dev/null) -lm -ldl -lpthread
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-5s %s\n' $(1) $(2))

find_c   = $(sort $(wildcard $(addsuffix /*.c,$(1))))
obj      = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

BASE_C   := $(call find_c,engine/base)
ENGINE_C := $(call find_c,engine/source engine/rules engine/session engine/evolve engine/models engine/cmd)
TUI_C    := $(call find_c,tui)
GPU_C    := $(call find_c,gpu)
CPU_C    := $(call find_c,gpu/cpu)
CUDA_C   := $(call find_c,gpu/cuda)
UNIT_C   := $(call find_c,tests/unit)

PROGRAMS := $(BUILD)/ksmith $(if $(CPU_C),$(BUILD)/ksmith-cpu) $(if $(wildcard gpu/cuda/main.c),$(BUILD)/ksmith-cuda)
UNITS    := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(UNIT_C))

.PHONY: man all deps demo test bench crash gpu-test gpu-bench test-servers test-storm test-ladder install bundle lint format clean units
all: $(PROGRAMS)

$(BUILD)/obj/%.o: %.c Makefile
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(KSFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/libbase.a: $(call obj,$(BASE_C))
	@rm -f $@
	$(Q)ar rcs $@ $^
$(BUILD)/libks.a: $(call obj,$(ENGINE_C) $(TUI_C))
	@rm -f $@
	$(Q)ar rcs $@ $^
$(BUILD)/libcpu.a: $(call obj,$(GPU_C) $(filter-out gpu/cpu/main.c,$(CPU_C)))
	@rm -f $@
	$(Q)ar rcs $@ $^

# The referee's own kernels travel in the program as text: NVRTC compiles them for the GPU that is there.
$(BUILD)/obj/gpu/cuda/trusted.cu.o: gpu/cuda/trusted.cu
	@mkdir -p $(@D)
	$(Q)ld -r -b binary -z noexecstack -o $@ $<
$(BUILD)/libcuda.a: $(call obj,$(filter-out gpu/cuda/main.c,$(CUDA_C))) $(BUILD)/obj/gpu/cuda/trusted.cu.o
	@rm -f $@
	$(Q)ar rcs $@ $^

$(BUILD)/ksmith: $(call obj,engine/main.c) $(BUILD)/libks.a $(BUILD)/libbase.a
	$(call say,LD,$@)
	$(Q)$(CC) $(KSFLAGS) $(CFLAGS) $^ -o $@ $(LIBS)
$(BUILD)/ksmith-cpu: $(call obj,gpu/cpu/main.c) $(BUILD)/libcpu.a $(BUILD)/libbase.a
	$(call say,LD,$@)
	$(Q)$(CC) $(KSFLAGS) $(CFLAGS) $^ -o $@ $(WLIBS)
$(BUILD)/ksmith-cuda: $(call obj,gpu/cuda/main.c) $(BUILD)/libcuda.a $(BUILD)/libcpu.a $(BUILD)/libbase.a
	$(call say,LD,$@)
	$(Q)$(CC) $(KSFLAGS) $(CFLAGS) $^ -o $@ $(WLIBS)

$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libks.a $(if $(CPU_C),$(BUILD)/libcpu.a) $(if $(CUDA_C),$(BUILD)/libcuda.a) $(BUILD)/libbase.a
	$(call say,UNIT,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(KSFLAGS) -Itests/unit $(CFLAGS) -MMD -MP $< -o $@ -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS) -lpthread
units: $(UNITS)

deps:
	@tests/deps.sh

demo: deps
	@$(MAKE) --no-print-directory -j2 all
	@tests/demo.sh $(BUILD)

test: deps
	@$(MAKE) --no-print-directory -j2 all units
	@BUILD=$(BUILD) tests/run

$(BUILD)/bench_replay: tests/bench_replay.c $(BUILD)/libks.a $(BUILD)/libbase.a
	$(Q)$(CC) $(KSFLAGS) $(CFLAGS) $^ -o $@ $(LIBS)
bench: all $(BUILD)/bench_replay
	@BUILD=$(BUILD) tests/bench.sh
crash: all units
	@BUILD=$(BUILD) tests/crash/run
# A minute of 64 streams with every fault; `make test` has a few seconds of it.
test-storm: all
	@BUILD=$(BUILD) KSMITH_STORM_SECONDS=60 python3 tests/cases/storm.test
# A scripted model's kernels before the real referee, and the same run again from its recording.
test-ladder: all
	@BUILD=$(BUILD) KSMITH_LADDER=1 python3 tests/cases/ladder.test
# A real model server on loopback, installed from PyPI; not part of `make test`.
$(BUILD)/models-real: tests/models/real.c $(BUILD)/libks.a $(BUILD)/libbase.a
	$(Q)$(CC) $(KSFLAGS) -Itests/unit $(CFLAGS) $< -o $@ -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS) -lpthread
test-servers: deps
	@$(MAKE) --no-print-directory $(BUILD)/models-real
	@tests/models/servers.sh $(BUILD)

# What only a GPU can show; where there is none the tests skip.
gpu-test: all
	@BUILD=$(BUILD) tests/gpu.sh
gpu-bench: all
	@python3 tests/gpu/bench.py $(BUILD)

install: all
	@tests/install.sh $(BUILD) $(DESTDIR)$(PREFIX)
bundle: all
	@tests/bundle.sh $(BUILD) dist

# The command lists of ksmith.1 come from the program's own tables.
man: $(BUILD)/ksmith
	@for page in ksmith.1 ksmith-keys.7 ksmith-theme.5; do tests/man.py $(BUILD)/ksmith man/$$page; done

lint:
	@tests/lint.sh
format:
	@clang-format -i $$(git ls-files '*.c' '*.h')
clean:
	@rm -rf build build-san dist

-include $(shell find $(BUILD)/obj $(BUILD)/unit -name '*.d' 2>/dev/null)
