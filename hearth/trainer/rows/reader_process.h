// Starts a Python process that reads rows for a training without Spark and writes them to a ring.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "hearth/ring/ring.h"

namespace hearth::trainer {

// The child process, which the destructor kills. The child reports its failures through the ring.
class ReaderProcess {
 public:
  // Options of ReaderProcess.
  struct Options {
    std::string source;  // path or URI
    std::string format = "parquet";
    std::vector<std::string> columns;  // empty: all
  };

  // Starts `python3 -m hearth.rows.file_reader` with the writer's end of a ring. The caller then
  // closes its descriptors of that end. Throws kNotFound if there is no interpreter.
  ReaderProcess(const Options& options, const ring::RingEnd& writer);
  ~ReaderProcess();
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;

 private:
  pid_t pid_ = -1;
};

// Returns the Python interpreter: $HEARTH_PYTHON, else the python3 of the environment in which the
// running program is installed, else the first python3 on the PATH.
std::string PythonInterpreter();

}  // namespace hearth::trainer
