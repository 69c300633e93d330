// The names by which the copies of static libraries refer to stderr and stdout
// (HearthPortable.cmake).
#include <cstdio>

extern "C" {

__attribute__((visibility("hidden"))) FILE* hearth_stderr = stderr;
__attribute__((visibility("hidden"))) FILE* hearth_stdout = stdout;

}  // extern "C"
