// The flags of the logging library (glog), which Caffe's programs take everywhere.
#pragma once

#include <map>
#include <string>

namespace hearth::program {

enum class FlagKind { kUnknown, kSwitch, kValue };

// kUnknown for a flag that is not one of the library's.
FlagKind LoggingFlagKind(const std::string& name);

// Does what the flags say; where one is not given, what GLOG_name in the environment says.
//   log_dir: also write files there, named after the program of Caffe's that has the command
//   minloglevel: 1 leaves information out, 2 and above warnings, too
//   logtostderr: no files
//   alsologtostderr (on unless it is turned off): with files, everything on stderr, too;
//     else what is at least stderrthreshold, 2 (errors) if not given
// The library's other flags are taken and have no effect. Throws kInvalidArgument for values that
// are no numbers, and what log::WriteFiles throws.
void ApplyLoggingFlags(const std::map<std::string, std::string>& given, const std::string& command);

}  // namespace hearth::program
