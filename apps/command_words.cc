#include "apps/command_words.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>
#include <utility>

#include "apps/flag_values.h"
#include "apps/logging_flags.h"
#include "hearth/base/error.h"
#include "hearth/caffe/proto/nearest.h"
#include "hearth/storage/file.h"

namespace hearth::program {
namespace {

using Words = std::vector<std::string>;

constexpr int kMaxNestedFiles = 16;

struct Flag {
  std::string name;
  std::optional<std::string> value;  // of "name=value"
};

// Parses a word as a flag; negative numbers and "-" are not flags.
std::optional<Flag> FlagIn(const std::string& word) {
  const size_t dashes = word.starts_with("--") ? 2 : word.starts_with("-") ? 1 : 0;
  if (dashes == 0 || word.size() == dashes) return std::nullopt;
  if (!std::isalpha(static_cast<unsigned char>(word[dashes]))) return std::nullopt;
  const size_t equals = word.find('=');
  if (equals == word.npos) return Flag{word.substr(dashes), std::nullopt};
  return Flag{word.substr(dashes, equals - dashes), word.substr(equals + 1)};
}

// CLI11's spelling of the flag: one dash for single letters.
std::string Dashes(const std::string& name) { return (name.size() > 1 ? "--" : "-") + name; }

Words ExpandFlagFiles(const Words& words, int depth);

// Returns the flags in a file named by -flagfile.
Words FlagsOfFile(const std::string& path, int depth) {
  Require(depth < kMaxNestedFiles, ErrorCode::kInvalidArgument,
          "-flagfile {} includes itself through another file", path);
  Words flags;
  std::istringstream lines(storage::ReadFile(path));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos || line[begin] == '#') continue;
    const std::string word = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    Require(FlagIn(word).has_value(), ErrorCode::kInvalidArgument,
            "{}:{}: '{}' is not a flag: write one per line, as -name=value", path, number, word);
    flags.push_back(word);
  }
  return ExpandFlagFiles(flags, depth + 1);
}

Words ExpandFlagFiles(const Words& words, int depth = 0) {
  Words all;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::optional<Flag> flag = FlagIn(words[i]);
    if (words[i] == "--") {
      all.insert(all.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    if (!flag || flag->name != "flagfile") {
      all.push_back(words[i]);
      continue;
    }
    Require(flag->value || i + 1 < words.size(), ErrorCode::kInvalidArgument,
            "-flagfile needs the name of a file");
    std::istringstream paths(flag->value ? *flag->value : words[++i]);
    for (std::string path; std::getline(paths, path, ',');) {
      const Words more = FlagsOfFile(path, depth);
      all.insert(all.end(), more.begin(), more.end());
    }
  }
  return all;
}

// The flags of all commands, and whether each flag takes a value.
class KnownFlags {
 public:
  explicit KnownFlags(const CLI::App& app) {
    Add(app);
    for (const CLI::App* command : app.get_subcommands({})) Add(*command);
  }

  FlagKind KindOf(const std::string& name) const {
    const auto found = kinds_.find(name);
    return found == kinds_.end() ? LoggingFlagKind(name) : found->second;
  }

  [[noreturn]] void ThrowUnknown(const std::string& name) const {
    Words names;
    for (const auto& [known, kind] : kinds_) names.push_back("--" + known);
    Throw(ErrorCode::kInvalidArgument, "there is no flag --{}{}", name,
          caffe::DidYouMean("--" + name, names));
  }

 private:
  void Add(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
      const auto kind =
          option->get_items_expected_max() == 0 ? FlagKind::kSwitch : FlagKind::kValue;
      for (const std::string& name : option->get_lnames()) kinds_[name] = kind;
      for (const std::string& name : option->get_snames()) kinds_[name] = kind;
    }
  }

  std::map<std::string, FlagKind> kinds_;
};

class Reader {
 public:
  Reader(const CLI::App& app, Words words) : app_(app), known_(app), words_(std::move(words)) {}

  CommandWords Read() {
    for (; next_ < words_.size(); ++next_) {
      const std::optional<Flag> flag = FlagIn(words_[next_]);
      if (words_[next_] == "--") {
        rest_.insert(rest_.end(), words_.begin() + static_cast<std::ptrdiff_t>(next_) + 1,
                     words_.end());
        break;
      }
      if (flag) {
        TakeFlag(*flag);
      } else if (read_.command.empty()) {
        read_.command = words_[next_];
      } else {
        rest_.push_back(words_[next_]);
      }
    }
    return Joined();
  }

 private:
  // draw, plot, parse_log and pack parse their own flags.
  bool command_reads_itself() const {
    const auto commands = app_.get_subcommands(
        [&](const CLI::App* command) { return command->get_name() == read_.command; });
    return !commands.empty() && commands.front()->get_prefix_command();
  }

  FlagKind KindOf(const std::string& name) const {
    return command_reads_itself() ? LoggingFlagKind(name) : known_.KindOf(name);
  }

  void TakeFlag(Flag flag) {
    const FlagKind kind = KindOf(flag.name);
    if (kind == FlagKind::kUnknown) return TakeUnknown(flag);
    if (kind == FlagKind::kSwitch) {
      const std::optional<bool> truth = TruthOf(flag.value.value_or("true"));
      Require(truth.has_value(), ErrorCode::kInvalidArgument, "--{} takes true or false, not '{}'",
              flag.name, flag.value.value_or(""));
      return Set(flag.name, *truth ? "true" : "false");
    }
    const bool follows = next_ + 1 < words_.size() && !FlagIn(words_[next_ + 1]);
    if (!flag.value && follows) flag.value = words_[++next_];
    Require(flag.value.has_value(), ErrorCode::kInvalidArgument, "--{} needs a value", flag.name);
    Set(flag.name, *flag.value);
  }

  // Handles "noNAME" and flags that the command parses itself.
  void TakeUnknown(const Flag& flag) {
    const std::string positive = flag.name.starts_with("no") ? flag.name.substr(2) : "";
    if (!flag.value && KindOf(positive) == FlagKind::kSwitch) return Set(positive, "false");
    if (!command_reads_itself()) known_.ThrowUnknown(flag.name);
    rest_.push_back(Dashes(flag.name) + (flag.value ? "=" + *flag.value : ""));
  }

  void Set(const std::string& name, const std::string& value) {
    auto& flags = LoggingFlagKind(name) == FlagKind::kUnknown ? flags_ : read_.logging;
    flags[name] = value;
  }

  CommandWords Joined() {
    Words& words = read_.words;
    if (!read_.command.empty()) words.push_back(read_.command);
    for (const auto& [name, value] : flags_) {
      if (known_.KindOf(name) == FlagKind::kSwitch) {
        if (value == "true") words.push_back(Dashes(name));
      } else if (value.empty()) {
        words.insert(words.end(), {Dashes(name), ""});
      } else {
        words.push_back(Dashes(name) + "=" + value);
      }
    }
    const auto looks_like_flag = [](const std::string& word) { return word.starts_with("-"); };
    if (!command_reads_itself() && std::any_of(rest_.begin(), rest_.end(), looks_like_flag)) {
      words.emplace_back("--");
    }
    words.insert(words.end(), rest_.begin(), rest_.end());
    return std::move(read_);
  }

  const CLI::App& app_;
  const KnownFlags known_;
  const Words words_;
  size_t next_ = 0;
  std::map<std::string, std::string> flags_;
  Words rest_;
  CommandWords read_;
};

}  // namespace

CommandWords ReadCommandLine(const std::vector<std::string>& arguments, const CLI::App& app) {
  return Reader(app, ExpandFlagFiles(arguments)).Read();
}

}  // namespace hearth::program
