// Driver-side state of feed jobs: which attempt sends each partition, how many rows were taken, and
// which partitions are safe.
//
// Spark may run several attempts of a task: retries, speculation, a late one on an executor that
// was abandoned. They may reach different nodes, and rows that a program has received cannot be
// taken back. Therefore only one attempt at a time, the owner, sends the rows of a partition; the
// others wait. If the owner finishes, the others have nothing to send. If the owner dies, the next
// attempt continues after the last delivered row, once its node has checked that the earlier rows
// are the same.
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

namespace hearth::feed {

// Tracks all feed jobs between Open() and Close(). Thread-safe.
class Ledger {
 public:
  using Json = nlohmann::json;

  // Allows attempts of this job to send rows.
  void Open(const std::string& feed);
  // Removes the job; rejects attempts that arrive later.
  void Close(const std::string& feed);

  // Applies an event of a feed from node `rank` (`claim`, `claim_end`, `rows` or `safe`); returns
  // messages for nodes. Throws kInvalidArgument for an event that lacks a required field.
  std::vector<Json> Note(int rank, const Json& event);

  // Number of the job's rows that programs have taken, possibly slightly out of date.
  int64_t Taken(const std::string& feed) const;
  // Partitions of the job whose rows are safe, so that a restart does not send them again.
  std::set<int> Safe(const std::string& feed) const;
  // Partitions of the job that an attempt has started to send, but that no attempt has finished.
  std::vector<int> Unfinished(const std::string& feed) const;

  // Resets for new nodes: partitions that are not safe are sent again from their first row. If a
  // safe partition is sent again, its rows are only compared with the earlier ones.
  void Restart();

 private:
  // An attempt of a Spark task, at the node to which it is connected.
  struct Attempt {
    int rank;
    int64_t claim;  // number that the node gave to the attempt
    bool operator==(const Attempt&) const = default;
    bool operator<(const Attempt& other) const {
      return std::pair(rank, claim) < std::pair(other.rank, other.claim);
    }
  };

  // State of the delivery of one partition.
  struct Part {
    std::optional<Attempt> owner;
    std::deque<Attempt> waiting;
    std::string end;  // "taken" or "terminated", once no more rows are needed
    // Delivered so far: number of batches, their hash, number of rows.
    int64_t batches = 0;
    uint64_t hash = 0;
    int64_t rows = 0;
    bool whole = false;        // all rows were delivered before a restart; only compare
    std::set<Attempt> unsafe;  // attempts with rows that no commit covers yet
    bool safe = false;
  };

  // A feed job, between Open() and Close().
  struct Job {
    std::map<int, Part> parts;
    std::map<int, int64_t> rows;  // rows taken, by partition; a negative key is a node's replay
  };

  std::vector<Json> NoteUnlocked(int rank, const Json& event);
  static std::vector<Json> Claim(Job& job, const Json& event, Attempt attempt);
  static std::vector<Json> EndClaim(Job& job, const Json& event, Attempt attempt);
  static std::vector<Json> NoteRows(Job& job, int rank, const Json& event);
  static void NoteSafe(Job& job, int rank, const Json& event);
  static std::vector<Json> NextOwner(Part& part, const Json& event);
  static void UpdateSafe(Part& part);
  static Json Answer(Attempt attempt, const std::string& answer);

  mutable std::mutex mutex_;
  std::map<std::string, Job> jobs_;
};

}  // namespace hearth::feed
