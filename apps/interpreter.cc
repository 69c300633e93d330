#include "apps/interpreter.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/python_layer.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/storage/file.h"
#include "hearth/trainer/rows/reader_process.h"

namespace hearth::program {
namespace {

bool MayHavePythonLayer(const trainer::LocalOptions& options) {
  if (!options.model.empty()) return caffe::MayHavePythonLayer(storage::ReadFile(options.model));
  const std::string text = storage::ReadFile(options.solver);
  // Old formats are not upgraded here, because the command upgrades them later and logs the
  // upgrade.
  caffe::SolverParameter solver;
  caffe::ParseText(text, options.solver, &solver);
  std::vector<std::string> files = solver.test_net();
  files.push_back(solver.net());
  files.push_back(solver.train_net());
  return caffe::MayHavePythonLayer(text) ||
         std::any_of(files.begin(), files.end(), [](const std::string& file) {
           return !file.empty() && caffe::MayHavePythonLayer(storage::ReadFile(file));
         });
}

// The arguments after the program's name.
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
  if (caffe::PythonLayersRun()) return;
  try {
    if (!MayHavePythonLayer(options)) return;
  } catch (const Error&) {
    return;
  }
  RunModule("hearth.caffe.program", OwnArguments());
}

}  // namespace hearth::program
