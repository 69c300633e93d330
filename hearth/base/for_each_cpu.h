// Compiles loops for several generations of CPUs; the loader selects the version.
#pragma once

// HEARTH_FOR_EACH_CPU, placed before a function, compiles it for three generations of CPUs.
// Disabled with sanitizers, because they start before the loader selects a version, and for clang
// tools, which reject the attribute before a template.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define HEARTH_FOR_EACH_CPU __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define HEARTH_FOR_EACH_CPU
#endif

// HEARTH_INLINE, placed before a callee of such a function, inlines it. Otherwise all versions
// would share one callee, compiled for the baseline CPU only.
#define HEARTH_INLINE __attribute__((always_inline)) inline
// HEARTH_INLINE for a lambda, placed after its parameters.
#define HEARTH_INLINE_LAMBDA __attribute__((always_inline))
