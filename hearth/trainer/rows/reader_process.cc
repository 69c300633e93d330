#include "hearth/trainer/rows/reader_process.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

namespace fs = std::filesystem;

// Finds the Python environment of the program. A wheel installs the program as
// ENV/lib/pythonX.Y/site-packages/hearth/native/hearth. A build creates
// CHECKOUT/build/native/hearth; its environment is CHECKOUT/.venv.
std::string InterpreterBeside(const fs::path& program) {
  for (fs::path folder = program.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    for (const fs::path& environment : {folder, folder / ".venv"}) {
      const fs::path python = environment / "bin" / "python3";
      if (access(python.c_str(), X_OK) == 0 && fs::exists(environment / "pyvenv.cfg"))
        return python;
    }
  }
  return "";
}

}  // namespace

std::string PythonInterpreter() {
  if (const char* chosen = std::getenv("HEARTH_PYTHON")) return chosen;
  std::error_code error;
  const std::string beside = InterpreterBeside(fs::read_symlink("/proc/self/exe", error));
  return beside.empty() ? "python3" : beside;
}

ReaderProcess::ReaderProcess(const Options& options, const ring::RingEnd& writer) {
  const int ring_fd = writer.memory.get();
  const int signal_fd = writer.signal.get();
  const std::string python = PythonInterpreter();
  std::vector<std::string> words{python,
                                 "-m",
                                 "hearth.rows.file_reader",
                                 "--source",
                                 options.source,
                                 "--format",
                                 options.format,
                                 "--columns",
                                 fmt::format("{}", fmt::join(options.columns, ",")),
                                 "--rank",
                                 "0",
                                 "--world",
                                 "1",
                                 "--ring-fd",
                                 std::to_string(ring_fd),
                                 "--signal-fd",
                                 std::to_string(signal_fd)};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // All descriptors are close-on-exec. A dup2 of the ring's descriptors onto themselves clears the
  // flag in the child alone, so only these are inherited.
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ring_fd, ring_fd);
  posix_spawn_file_actions_adddup2(&actions, signal_fd, signal_fd);
  // Uses a separate process group, so that Ctrl-C does not end the reader, because the training
  // needs rows until it has stopped.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int result =
      posix_spawnp(&pid_, python.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (result != 0) {
    pid_ = -1;
    ThrowErrno(result, fmt::format("cannot start {} to read {} (HEARTH_PYTHON selects another "
                                   "interpreter)",
                                   python, options.source));
  }
}

ReaderProcess::~ReaderProcess() {
  if (pid_ < 0) return;
  // Kills the reader because it may wait for space in a ring that nothing reads any more, and reaps
  // it to leave no zombie.
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

}  // namespace hearth::trainer
