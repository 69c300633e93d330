// hearth draw, plot and parse_log: tools that are written in Python and read their own flags.
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "hearth/base/error.h"
#include "hearth/trainer/reader_process.h"

namespace hearth::program {
namespace {

// Replaces this process by `python -m MODULE ARGUMENTS`.
[[noreturn]] void RunModule(const std::string& module, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{trainer::PythonInterpreter(), "-m", module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  ThrowErrno(errno, "cannot start " + words[0] + " (HEARTH_PYTHON chooses another interpreter)");
}

void Add(CLI::App* app, const std::string& name, const char* help) {
  CLI::App* command = app->add_subcommand(name, help);
  command->prefix_command();
  command->set_help_flag();
  command->callback([command, name] { RunModule("hearth." + name, command->remaining()); });
}

}  // namespace

void AddPythonTools(CLI::App* app) {
  Add(app, "draw", "draw a net prototxt as a picture");
  Add(app, "plot", "draw the loss and accuracy of training logs");
  Add(app, "parse_log", "write what training logs say as CSV files");
}

}  // namespace hearth::program
