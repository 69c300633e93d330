// Own loops run with the widest vectors of the machine: the compiler makes a version of the
// function for each instruction set, and the loader picks one. What the function calls must be
// inlined.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HEARTH_SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HEARTH_SIMD
#endif
#define HEARTH_INLINE __attribute__((always_inline))
