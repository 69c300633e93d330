// hearth draw, plot, parse_log, report, timeline, pack and build-device: tools that are written in
// Python and read their own flags.
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
  AddPythonTool(app, "draw", "draw_net", "draw a net prototxt as a picture");
  AddPythonTool(app, "plot", "plot", "draw the loss and accuracy of training logs");
  AddPythonTool(app, "parse_log", "parse_log", "write what training logs say as CSV files");
  AddPythonTool(app, "report", "report", "write the curves of a training as an HTML file");
  AddPythonTool(app, "timeline", "timeline", "bring the timelines of all ranks onto one clock");
  AddPythonTool(app, "pack", "pack", "make the archive that brings hearth to a cluster's nodes");
  AddPythonTool(app, "build-device", "build_device",
                "compile the library for GPUs for the installed torch");
}

}  // namespace hearth::program
