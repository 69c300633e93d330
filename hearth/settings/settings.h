// Settings of a training or a test, besides its prototxts. This one table defines the flags of
// CaffeOnSpark and of the program `hearth`, the attributes of Python's Config, and a trainer's job:
// a new setting is a field and a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hearth::settings {

// The values of one run, with the defaults of all interfaces.
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

// Limit on an epoch's invalid rows: at most `rows`, and at most that `fraction`; -1: any number.
struct InvalidRowLimit {
  int64_t rows = -1;
  double fraction = -1;
};

// The limit of max_bad_records: a whole number of rows, or with a point or an exponent a fraction
// of all rows, from 0 to 1; empty: no limit. Nothing for any other text.
std::optional<InvalidRowLimit> ParseInvalidRowLimit(const std::string& text);

// A row of the table: a field of Settings and its names, help and allowed values.
struct Setting {
  std::string name;  // in a job, and as an attribute of Config
  std::string flag;  // of CaffeOnSpark; empty: none
  std::variant<bool Settings::*, int Settings::*, std::string Settings::*> field;
  std::string help;                      // empty: not shown, as the setting has no effect yet
  std::vector<std::string> values = {};  // allowed values of a text; empty: any
  int most = 0;                          // of a number
  int least = 1;                         // of a number
  std::string must_be = {};              // what a text must be if `allows` checks it
  bool (*allows)(const std::string& text) = nullptr;
  bool in_program = false;  // it is also a flag of `hearth`
};

const std::vector<Setting>& Table();

}  // namespace hearth::settings
