// Loops compiled for several generations of CPUs, of which the loader picks one.
#pragma once

// Before a function: one source, three machine codes. Sanitizers run before the pick is possible.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define HEARTH_FOR_EACH_CPU __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define HEARTH_FOR_EACH_CPU
#endif

// Before what such a function calls: a call from a clone into shared code would lose the clone's
// instructions.
#define HEARTH_INLINE __attribute__((always_inline)) inline
// The same behind the parameters of a lambda.
#define HEARTH_INLINE_LAMBDA __attribute__((always_inline))
