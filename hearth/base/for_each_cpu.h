// Loops compiled for several generations of CPUs; the loader picks the version.
#pragma once

// Put before a function: compiles it three times. Sanitizers start before the loader can pick.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define HEARTH_FOR_EACH_CPU __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define HEARTH_FOR_EACH_CPU
#endif

// Put before what such a function calls, to inline it: code shared by all clones would not be
// compiled for the clone's CPU.
#define HEARTH_INLINE __attribute__((always_inline)) inline
// The same, put after the parameters of a lambda.
#define HEARTH_INLINE_LAMBDA __attribute__((always_inline))
