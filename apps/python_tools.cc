// Commands that are Python modules, which parse their own flags.
#include <string>

#include "apps/commands.h"
#include "apps/interpreter.h"

namespace hearth::program {
namespace {

CLI::App* AddPythonTool(CLI::App* app, const char* name, const std::string& module,
                        const char* help) {
  CLI::App* command = app->add_subcommand(name, help);
  command->prefix_command();
  command->set_help_flag();
  command->callback([command, module] { RunModule("hearth." + module, command->remaining()); });
  return command;
}

}  // namespace

void AddSparkTools(CLI::App* app) {
  for (CLI::App* command : {
           AddPythonTool(app, "doctor", "doctor", "examine a cluster before a training"),
           AddPythonTool(app, "pack", "tools.pack", "make an archive of hearth for its nodes"),
           AddPythonTool(app, "bench-collective", "cluster.driver.bench_collective",
                         "measure the all-reduce between its executors"),
           AddPythonTool(app, "build-device", "tools.build_device",
                         "compile the library for GPUs for the installed torch"),
       }) {
    command->group("Spark clusters");
  }
  for (CLI::App* command : {
           AddPythonTool(app, "report", "tools.report", "write a training's curves as HTML"),
           AddPythonTool(app, "timeline", "tools.timeline", "merge the timelines of all ranks"),
       }) {
    command->group("Records of any training");
  }
}

void AddPythonTools(CLI::App* app) {
  AddPythonTool(app, "draw", "tools.draw_net", "draw a net prototxt as an image");
  AddPythonTool(app, "plot", "tools.plot", "draw the loss and accuracy of training logs");
  AddPythonTool(app, "parse_log", "tools.parse_log", "convert training logs to CSV files");
}

}  // namespace hearth::program
