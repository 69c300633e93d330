// Subcommands of the `hearth` program, one file each. Every function adds its subcommand and flags
// to the app; the subcommand's callback does the work and throws hearth::Error. To add a command,
// add its file, a line here, and an entry in the table of commands.cc.
#pragma once

#include <CLI/CLI.hpp>

namespace hearth::program {

void AddTrain(CLI::App* app);
void AddTest(CLI::App* app);
void AddTime(CLI::App* app);
void AddDeviceQuery(CLI::App* app);
void AddUpgrades(CLI::App* app);      // upgrade_{net_proto_text,net_proto_binary,solver_proto_text}
void AddDatasetTools(CLI::App* app);  // Caffe's converters and tools on data sets
void AddPythonTools(CLI::App* app);   // draw, plot, parse_log
void AddSparkTools(CLI::App* app);    // doctor, pack, report and others
void AddTrainer(CLI::App* app);

// Adds the commands of all functions above.
void AddCommands(CLI::App* app);

}  // namespace hearth::program
