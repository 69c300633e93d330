#include "hearth/settings/settings.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace hearth::settings {
namespace {

// Settings of a rank's computation; OfRunning() returns those of a run's behaviour.
std::vector<Setting> OfComputing() {
  return {
      {.name = "devices",
       .flag = "devices",
       .field = &Settings::devices,
       .help = "solver threads or GPUs per executor",
       .most = 1024},
      {.name = "transform_threads",
       .flag = "",
       .field = &Settings::transform_threads,
       .help = "threads that decode and transform rows, per device",
       .most = 1024},
      {.name = "resize",
       .flag = "resize",
       .field = &Settings::resize,
       .help = "resize decoded images to the layer's height and width"},
      {.name = "precision",
       .flag = "precision",
       .field = &Settings::precision,
       .help = "precision of convolutions and, on GPUs, of inner products: float32, bf16 with "
               "float32 weights, or int8 for tests and features on CPUs (of inner products, too)",
       .values = {"float32", "bf16", "int8"},
       .in_program = true},
      {.name = "algorithms",
       .flag = "algorithms",
       .field = &Settings::algorithms,
       .help = "cuDNN's algorithms on GPUs: deterministic, or fastest, which measures all of them "
               "first; two runs may then differ in the last bits",
       .values = {"deterministic", "fastest"},
       .in_program = true},
  };
}

std::vector<Setting> OfRunning() {
  return {
      {.name = "on_nan",
       .flag = "onNaN",
       .field = &Settings::on_nan,
       // Continues by default, as Caffe does.
       .help = "a loss that is not a number: stop, or continue with a warning",
       .values = {"stop", "continue"}},
      {.name = "on_other_rows",
       .flag = "onOtherRows",
       .field = &Settings::on_other_rows,
       .help = "if a resumed rank reads other rows than before: restartEpoch, or fail",
       .values = {"restartEpoch", "fail"}},
      {.name = "connection",
       .flag = "connection",
       .field = &Settings::connection,
       // These are CaffeOnSpark's two values; HEARTH_TRANSPORT selects other transports.
       .help = "transport between hosts: infiniband uses RDMA if every host has an active device, "
               "else tcp; ethernet uses tcp",
       .values = {"ethernet", "infiniband"}},
      {.name = "timeline",
       .flag = "timeline",
       .field = &Settings::timeline,
       .help = "folder for the timelines of all processes, for Perfetto; a path on the hosts that "
               "train",
       .in_program = true},
      {.name = "sync_every",
       .flag = "syncEvery",
       .field = &Settings::sync_every,
       .help = "iterations between synchronizations of the ranks' weights: 1 sums gradients in "
               "each, more is local SGD",
       .most = 1'000'000},
      {.name = "log_histograms",
       .flag = "logHistograms",
       .field = &Settings::log_histograms,
       .help = "iterations between histograms of weights and gradients in -logDir's file; 0: none",
       .most = 1'000'000'000,
       .least = 0},
      {.name = "max_bad_records",
       .flag = "maxBadRecords",
       .field = &Settings::max_bad_records,
       .help = "invalid rows allowed: 10, or a fraction: 0.01",
       .must_be = "a number of rows (10) or a fraction of them (0.01)",
       .allows = [](const std::string& text) { return ParseInvalidRowLimit(text).has_value(); }},
  };
}

// Parses a number; returns nothing unless `text` is a number as a whole.
template <typename Number>
std::optional<Number> ParseNumber(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  // Ignores the locale and accepts neither blanks nor a leading '+', so that other languages accept
  // the same texts.
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

}  // namespace

std::optional<InvalidRowLimit> ParseInvalidRowLimit(const std::string& text) {
  if (text.empty()) return InvalidRowLimit{};
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // A text of digits only is a number of rows: "1" is one row, "1.0" is all rows.
  if (std::all_of(text.begin(), text.end(), is_digit)) {
    const auto rows = ParseNumber<int64_t>(text);
    return rows ? std::optional(InvalidRowLimit{.rows = *rows}) : std::nullopt;
  }
  const auto fraction = ParseNumber<double>(text);
  // The comparison is false for NaN, too, which from_chars accepts.
  if (!fraction || !(*fraction >= 0 && *fraction <= 1)) return std::nullopt;
  return InvalidRowLimit{.fraction = *fraction};
}

const std::vector<Setting>& Table() {
  static const std::vector<Setting> table = [] {
    std::vector<Setting> all = OfComputing();
    for (Setting& setting : OfRunning()) all.push_back(std::move(setting));
    return all;
  }();
  return table;
}

}  // namespace hearth::settings
