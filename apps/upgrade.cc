// hearth upgrade_net_proto_text, upgrade_net_proto_binary and upgrade_solver_proto_text
#include <string>

#include "apps/commands.h"
#include "hearth/base/log.h"
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/proto/text_writer.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "hearth/storage/file.h"

namespace hearth::program {
namespace {

struct Files {
  std::string input, output;
};

std::shared_ptr<Files> AddFiles(CLI::App* command) {
  auto files = std::make_shared<Files>();
  command->add_option("INPUT", files->input, "file in an old format")->required();
  command->add_option("OUTPUT", files->output, "file in the current format")->required();
  return files;
}

void SayWhetherUpgraded(bool upgraded, const Files& files) {
  if (!upgraded) log::Info("File already in latest proto format: {}", files.input);
}

void WriteTextFile(const caffe::Message& message, const char* type, const std::string& path) {
  storage::AtomicFile file(path);
  file.Append(caffe::WriteText(message));
  file.Commit();
  log::Info("Wrote upgraded {} text proto to {}", type, path);
}

void UpgradeNetText(const Files& files) {
  caffe::NetParameter net;
  caffe::ParseText(storage::ReadFile(files.input), files.input, &net);
  SayWhetherUpgraded(caffe::UpgradeNet(&net, files.input), files);
  WriteTextFile(net, "NetParameter", files.output);
}

void UpgradeSolverText(const Files& files) {
  caffe::SolverParameter solver;
  caffe::ParseText(storage::ReadFile(files.input), files.input, &solver);
  SayWhetherUpgraded(caffe::UpgradeSolver(&solver, files.input), files);
  WriteTextFile(solver, "SolverParameter", files.output);
}

void UpgradeNetBinary(const Files& files) {
  caffe::NetParameter net;
  caffe::ParseWire(storage::ReadFile(files.input), files.input, &net);
  SayWhetherUpgraded(caffe::UpgradeNet(&net, files.input), files);
  storage::AtomicFile file(files.output);
  caffe::WriteWire(net, [&](std::string_view bytes) { file.Append(bytes); });
  file.Commit();
  log::Info("Wrote upgraded NetParameter binary proto to {}", files.output);
}

void AddUpgrade(CLI::App* app, const char* name, const char* help, void (*upgrade)(const Files&)) {
  CLI::App* command = app->add_subcommand(name, help);
  const auto files = AddFiles(command);
  command->callback([files, upgrade] { upgrade(*files); });
}

}  // namespace

void AddUpgrades(CLI::App* app) {
  AddUpgrade(app, "upgrade_net_proto_text", "convert an old net prototxt to the current format",
             UpgradeNetText);
  AddUpgrade(app, "upgrade_net_proto_binary", "convert an old .caffemodel to the current format",
             UpgradeNetBinary);
  AddUpgrade(app, "upgrade_solver_proto_text",
             "convert an old solver prototxt to the current format", UpgradeSolverText);
}

}  // namespace hearth::program
