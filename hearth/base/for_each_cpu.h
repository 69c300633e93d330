// Compiles loops for several generations of CPUs; the loader selects the version.
#pragma once

// Placed before a function: compiles it three times. Disabled with sanitizers, which start before
// the loader's selection, and for clang's tools, which refuse it before a template.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define HEARTH_FOR_EACH_CPU __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define HEARTH_FOR_EACH_CPU
#endif

// Placed before functions that such a function calls, to inline them: code shared by all clones is
// not compiled for the clone's CPU.
#define HEARTH_INLINE __attribute__((always_inline)) inline
// The same, placed after the parameters of a lambda.
#define HEARTH_INLINE_LAMBDA __attribute__((always_inline))
