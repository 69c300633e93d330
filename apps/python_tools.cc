// hearth draw, plot, parse_log, report, timeline, pack and build-device: tools written in Python
// that parse their own flags.
#include <string>

#include "apps/commands.h"
#include "apps/interpreter.h"

namespace hearth::program {
namespace {

void AddPythonTool(CLI::App* app, const char* name, const std::string& module, const char* help) {
  CLI::App* command = app->add_subcommand(name, help);
  command->prefix_command();
  command->set_help_flag();
  command->callback(
      [command, module] { RunModule("hearth.tools." + module, command->remaining()); });
}

}  // namespace

void AddPythonTools(CLI::App* app) {
  AddPythonTool(app, "draw", "draw_net", "draw a net prototxt as an image");
  AddPythonTool(app, "plot", "plot", "draw the loss and accuracy of training logs");
  AddPythonTool(app, "parse_log", "parse_log", "convert training logs to CSV files");
  AddPythonTool(app, "report", "report", "write the curves of a training as an HTML file");
  AddPythonTool(app, "timeline", "timeline", "merge the timelines of all ranks by one clock");
  AddPythonTool(app, "pack", "pack", "make an archive of hearth for a cluster's nodes");
  AddPythonTool(app, "build-device", "build_device",
                "compile the library for GPUs for the installed torch");
}

}  // namespace hearth::program
