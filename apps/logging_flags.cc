#include "apps/logging_flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "apps/flag_values.h"
#include "hearth/base/error.h"
#include "hearth/base/log_files.h"
#include "hearth/base/log_level.h"

namespace hearth::program {
namespace {

using Flags = std::map<std::string, std::string>;

constexpr std::array<std::string_view, 7> kSwitches = {
    "alsologtostderr", "colorlogtostderr",     "drop_log_memory",          "log_prefix",
    "logtostderr",     "symbolize_stacktrace", "stop_logging_if_full_disk"};
constexpr std::array<std::string_view, 14> kValues = {"alsologtoemail",
                                                      "log_backtrace_at",
                                                      "log_dir",
                                                      "log_link",
                                                      "logbuflevel",
                                                      "logbufsecs",
                                                      "logemaillevel",
                                                      "logfile_mode",
                                                      "logmailer",
                                                      "max_log_size",
                                                      "minloglevel",
                                                      "stderrthreshold",
                                                      "v",
                                                      "vmodule"};

// Value of a flag, or of its environment variable if the command line does not set it.
std::string TextOf(const Flags& given, const std::string& name) {
  const auto found = given.find(name);
  if (found != given.end()) return found->second;
  const char* set = std::getenv(("GLOG_" + name).c_str());
  return set ? set : "";
}

int NumberOf(const Flags& given, const std::string& name, int otherwise) {
  const std::string text = TextOf(given, name);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  // Ignores unparsable environment variables, as the library does.
  Require(!given.contains(name), ErrorCode::kInvalidArgument, "--{} takes a number, not '{}'", name,
          text);
  return otherwise;
}

bool SwitchOf(const Flags& given, const std::string& name, bool otherwise) {
  return TruthOf(TextOf(given, name)).value_or(otherwise);
}

log::Level LevelOf(int severity) {
  if (severity <= 0) return log::Level::kInfo;
  return severity == 1 ? log::Level::kWarning : log::Level::kError;
}

// Caffe has one program for these four commands, and one program for each of the others.
std::string ProgramOf(const std::string& command) {
  constexpr std::array<std::string_view, 4> kOfCaffe = {"train", "test", "time", "device_query"};
  const bool caffe = std::find(kOfCaffe.begin(), kOfCaffe.end(), command) != kOfCaffe.end();
  return caffe || command.empty() ? "caffe" : command;
}

}  // namespace

FlagKind LoggingFlagKind(const std::string& name) {
  const auto is_name = [&](std::string_view known) { return known == name; };
  if (std::any_of(kSwitches.begin(), kSwitches.end(), is_name)) return FlagKind::kSwitch;
  if (std::any_of(kValues.begin(), kValues.end(), is_name)) return FlagKind::kValue;
  return FlagKind::kUnknown;
}

void ApplyLoggingFlags(const Flags& given, const std::string& command) {
  log::SetLeastLevel(LevelOf(NumberOf(given, "minloglevel", 0)));
  const std::string folder = TextOf(given, "log_dir");
  if (folder.empty() || SwitchOf(given, "logtostderr", false)) return;
  log::WriteFiles(folder, ProgramOf(command));
  if (SwitchOf(given, "alsologtostderr", true)) return;
  log::SetLeastTerminalLevel(LevelOf(NumberOf(given, "stderrthreshold", 2)));
}

}  // namespace hearth::program
