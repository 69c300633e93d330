// Starts a program with a glibc older than 2.34, where the program itself must call its
// constructors; the loader calls the destructors. Linked with --wrap=__libc_start_main.
extern "C" {

using Initializer = void (*)(int, char**, char**);
using Finalizer = void (*)();
using Main = int (*)(int, char**, char**);

extern Initializer __init_array_start[], __init_array_end[];

static void Construct(int count, char** arguments, char** environment) {
  for (auto* call = __init_array_start; call != __init_array_end; ++call) {
    (*call)(count, arguments, environment);
  }
}

int __real___libc_start_main(Main, int, char**, Initializer, Finalizer, Finalizer, void*);

int __wrap___libc_start_main(Main main, int count, char** arguments, Initializer, Finalizer,
                             Finalizer loader_end, void* stack_end) {
  return __real___libc_start_main(main, count, arguments, Construct, nullptr, loader_end,
                                  stack_end);
}

}  // extern "C"
