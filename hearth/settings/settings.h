// Settings of a training or a test that are not in its prototxts. This one table defines the flags
// of CaffeOnSpark and of the program `hearth`, the attributes of Python's Config, and the settings
// in a trainer's job, so a new setting needs only a field and a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hearth::settings {

// The values for one run, with the defaults of all interfaces.
struct Settings {
  int devices = 1;
  int transform_threads = 1;
  bool resize = false;
  std::string precision = "float32";
  std::string algorithms = "deterministic";
  std::string on_nan = "continue";
  std::string on_other_rows = "restartEpoch";
  std::string connection = "infiniband";
  std::string timeline;
  int sync_every = 1;
  int log_histograms = 0;
  std::string max_bad_records;
};

// Limit on an epoch's invalid rows: at most `rows` of them, and at most `fraction` of all rows. -1
// means no limit.
struct InvalidRowLimit {
  int64_t rows = -1;
  double fraction = -1;
};

// Parses the limit of max_bad_records. A whole number is a number of rows. A number with a point or
// an exponent, from 0 to 1, is a fraction of all rows. An empty text is no limit. Returns nothing
// for any other text.
std::optional<InvalidRowLimit> ParseInvalidRowLimit(const std::string& text);

// A row of the table: a field of Settings and its names, help and allowed values.
struct Setting {
  std::string name;  // in a job and as an attribute of Config
  std::string flag;  // CaffeOnSpark's flag; empty: none
  std::variant<bool Settings::*, int Settings::*, std::string Settings::*> field;
  std::string help;                      // empty: not shown, because the setting has no effect yet
  std::vector<std::string> values = {};  // allowed values of a text; empty: any
  int most = 0;                          // largest number
  int least = 1;                         // smallest number
  std::string must_be = {};              // describes what `allows` accepts, for errors
  bool (*allows)(const std::string& text) = nullptr;
  bool in_program = false;  // also a flag of the program `hearth`
};

const std::vector<Setting>& Table();

}  // namespace hearth::settings
