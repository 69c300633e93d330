// What a driver knows about its feed jobs: who sends which partition, what was taken, what is safe.
//
// Spark may run several attempts of a task: retries, speculation, a late one on an executor that
// was given up. They may reach different nodes, and rows that a program was given cannot be taken
// back. So one attempt at a time, the owner, sends the rows of a partition; the others wait. Once
// the owner is done, they have nothing to send. If it died, the next one continues after the last
// row that was given, once its node has checked that the rows before it are the same.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hearth::partitions {

// All feed jobs between Open() and Close(). Any thread may use it.
class Ledger {
 public:
  using Json = nlohmann::json;

  // From now on attempts of this job may send rows.
  void Open(const std::string& feed);
  // Forgets it; attempts that come late are refused.
  void Close(const std::string& feed);

  // Takes an event of a feed from node `rank` (`claim`, `claim_end`, `rows` or `safe`); returns
  // what nodes are to be told. Throws kInvalidArgument for an event without a field that it needs.
  std::vector<Json> Note(int rank, const Json& event);

  // Rows of the job that programs have taken, as of a moment ago.
  int64_t Taken(const std::string& feed) const;
  // The partitions of the job whose rows are safe: a restart does not send them again.
  std::set<int> Safe(const std::string& feed) const;
  // The partitions of the job that an attempt has begun to send and none has finished.
  std::vector<int> Unfinished(const std::string& feed) const;

  // All nodes are new: partitions that are not safe are sent again from their first row. If one
  // that is safe is sent again, its rows are only compared.
  void StartAgain();

 private:
  struct Attempt {
    int rank;
    int64_t claim;  // its number at that node
    bool operator==(const Attempt&) const = default;
    bool operator<(const Attempt& other) const {
      return std::pair(rank, claim) < std::pair(other.rank, other.claim);
    }
  };

  struct Part {
    std::optional<Attempt> owner;
    std::deque<Attempt> waiting;
    std::string end;  // "taken" or "terminated", once no more rows are wanted of it
    // What was given of it so far: batches, their hash, rows.
    int64_t batches = 0;
    uint64_t hash = 0;
    int64_t rows = 0;
    bool whole = false;        // all rows were given before a restart: they are only compared
    std::set<Attempt> unsafe;  // those whose rows no commit covers yet
    bool safe = false;
  };

  struct Job {
    std::map<int, Part> parts;
    std::map<int, int64_t> rows;  // by partition; below 0: replayed by a node
  };

  std::vector<Json> NoteUnlocked(int rank, const Json& event);
  static std::vector<Json> Claim(Job& job, const Json& event, Attempt attempt);
  static std::vector<Json> EndClaim(Job& job, const Json& event, Attempt attempt);
  static std::vector<Json> NoteRows(Job& job, int rank, const Json& event);
  static void NoteSafe(Job& job, int rank, const Json& event);
  static std::vector<Json> NextOwner(Part& part, const Json& event);
  static void SeeWhetherSafe(Part& part);
  static Json Answer(Attempt attempt, const std::string& answer);

  mutable std::mutex mutex_;
  std::map<std::string, Job> jobs_;
};

}  // namespace hearth::partitions
