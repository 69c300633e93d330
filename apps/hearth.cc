// The hearth program: loads the engine and runs a command. The engine is the Python module _caffe,
// which lies beside the program, so that wheels and archives carry it once.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// The module's name with the Python that the build is for, and with the limited API.
constexpr const char* kNames[] = {HEARTH_ENGINE_MODULE, "_caffe.abi3.so"};

// libgomp's threads by default spin for milliseconds at every barrier: with another trainer on the
// same cores that made training 5 to 10 times slower. To sleep at once makes small nets slower by a
// third where the cores are free. A fraction of a millisecond costs little of either. The library
// reads its settings when it is loaded, with the engine. A setting of the user stays.
void BoundSpinning() {
  if (getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "10000", /*replace=*/0);
}

// From the folder of the program's file. Where the loader was started with the program as its
// argument, only the loader knows that folder, as $ORIGIN.
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
  signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes becomes the error of the write that meets it
  void* engine = LoadEngine();
  void* run = engine == nullptr ? nullptr : dlsym(engine, "hearth_run_program");
  if (run == nullptr) {
    fprintf(
        stderr,
        "hearth: the engine, the module _caffe beside the program, cannot be loaded (%s); install "
        "the wheel with its [caffe] extra, or run `make build` in the checkout\n",
        dlerror());
    return 1;
  }
  return reinterpret_cast<int (*)(int, char**)>(run)(argc, argv);
}
