// The names under which copies of static libraries know stderr and stdout (HearthPortable.cmake).
#include <cstdio>

extern "C" {

__attribute__((visibility("hidden"))) FILE* hearth_stderr = stderr;
__attribute__((visibility("hidden"))) FILE* hearth_stdout = stdout;

}  // extern "C"
