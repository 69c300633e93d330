// CPU hint for spin loops.
#pragma once

namespace hearth::collective {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace hearth::collective
