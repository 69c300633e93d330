// Flags of the logging library (glog), which all of Caffe's programs accept.
#pragma once

#include <map>
#include <string>

namespace hearth::program {

enum class FlagKind { kUnknown, kSwitch, kValue };

// Returns kUnknown for a flag that is not a flag of the library.
FlagKind LoggingFlagKind(const std::string& name);

// Applies the flags; a flag that is not given defaults to the environment variable GLOG_name.
//   log_dir: also write files there, named after Caffe's program for the command
//   minloglevel: 1 omits information, 2 and above also warnings
//   logtostderr: write no files
//   alsologtostderr (default on): with files, log everything to stderr too;
//     otherwise only from stderrthreshold on, which defaults to 2 (errors)
// The library's other flags are accepted and ignored. Throws kInvalidArgument for invalid numbers,
// and what log::WriteFiles throws.
void ApplyLoggingFlags(const std::map<std::string, std::string>& given, const std::string& command);

}  // namespace hearth::program
