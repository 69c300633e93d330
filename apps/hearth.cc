// The hearth program: loads the engine and runs a command. The engine is the Python module _caffe
// next to the program, so that wheels and archives contain it once.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// Possible file names of the module: with the suffix of the build's Python, or of the limited API.
constexpr const char* kNames[] = {HEARTH_ENGINE_MODULE, "_caffe.abi3.so"};

// By default libgomp's threads spin for milliseconds at every barrier, which slows training down 5
// to 10 times if another trainer uses the same cores. Sleeping at once makes small nets a third
// slower on free cores. Spinning for a fraction of a millisecond costs little in both cases.
// libgomp reads its settings when it is loaded, together with the engine. A user's setting takes
// precedence.
void BoundSpinning() {
  if (getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "10000", /*replace=*/0);
}

// Searches the folder of the program's file. If the dynamic loader was started with the program as
// its argument, only the loader knows that folder, as $ORIGIN.
void* LoadEngine() {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof path - NAME_MAX - 1) > 0) {
    char* name = strrchr(path, '/') + 1;
    for (const char* module : kNames) {
      strcpy(name, module);
      if (access(path, F_OK) == 0) return dlopen(path, RTLD_LAZY);
    }
  }
  void* engine = nullptr;
  for (const char* module : kNames) {
    snprintf(path, sizeof path, "$ORIGIN/%s", module);
    if (engine == nullptr) engine = dlopen(path, RTLD_LAZY);
  }
  return engine;
}

}  // namespace

int main(int argc, char** argv) {
  BoundSpinning();
  // A write beyond the file size limit fails instead of ending the process.
  signal(SIGXFSZ, SIG_IGN);
  void* engine = LoadEngine();
  void* run = engine == nullptr ? nullptr : dlsym(engine, "hearth_run_program");
  if (run == nullptr) {
    fprintf(
        stderr,
        "hearth: the engine, the module _caffe next to the program, cannot be loaded (%s); install "
        "the wheel with its [caffe] extra, or run `make build` in the checkout\n",
        dlerror());
    return 1;
  }
  return reinterpret_cast<int (*)(int, char**)>(run)(argc, argv);
}
