#include "apps/interpreter.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/python_layer.h"
#include "hearth/caffe/net_file.h"
#include "hearth/caffe/solver_nets.h"
#include "hearth/trainer/reader_process.h"

namespace hearth::program {
namespace {

// The nets that a command with these options builds.
std::vector<caffe::NetParameter> NetsOf(const trainer::LocalOptions& options) {
  if (!options.model.empty()) return {caffe::ReadNet(options.model)};
  const caffe::SolverParameter solver = caffe::ReadSolver(options.solver);
  std::vector<caffe::NetParameter> nets = caffe::TestNetsOf(solver);
  nets.push_back(caffe::TrainNetOf(solver));
  return nets;
}

bool HavePythonLayers(const trainer::LocalOptions& options) {
  try {
    const auto nets = NetsOf(options);
    return std::any_of(nets.begin(), nets.end(), caffe::HasPythonLayer);
  } catch (const Error&) {
    return false;
  }
}

// The words after the program's name.
std::vector<std::string> OwnArguments() {
  std::ifstream words("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  std::string word;
  std::getline(words, word, '\0');
  while (std::getline(words, word, '\0')) arguments.push_back(word);
  return arguments;
}

}  // namespace

void RunModule(const std::string& module, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{trainer::PythonInterpreter(), "-m", module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  ThrowErrno(errno, "cannot start " + words[0] + " (HEARTH_PYTHON chooses another interpreter)");
}

void EnterInterpreterFor(const trainer::LocalOptions& options) {
  if (caffe::PythonLayersRun() || !HavePythonLayers(options)) return;
  RunModule("hearth.caffe.program", OwnArguments());
}

}  // namespace hearth::program
