#include "hearth/feed/ledger.h"

#include <utility>

#include "hearth/base/error.h"

namespace hearth::feed {

void Ledger::Open(const std::string& feed) {
  const std::lock_guard lock(mutex_);
  jobs_[feed] = {};
}

void Ledger::Close(const std::string& feed) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(feed);
}

std::vector<Ledger::Json> Ledger::Note(int rank, const Json& event) {
  const std::lock_guard lock(mutex_);
  try {
    return NoteUnlocked(rank, event);
  } catch (const Json::exception& error) {
    Throw(ErrorCode::kInvalidArgument, "node {} sent an invalid feed event ({}): {}", rank,
          error.what(), event.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
}

std::vector<Ledger::Json> Ledger::NoteUnlocked(int rank, const Json& event) {
  const auto& kind = event.at("event").get_ref<const std::string&>();
  const auto job = jobs_.find(event.at("feed").get<std::string>());
  if (job == jobs_.end()) {
    // A claim that arrives after the job's end needs an answer, or its task would wait forever.
    // Other events of a closed job are ignored.
    if (kind != "claim") return {};
    return {Answer({rank, event.at("claim")}, "over")};
  }
  if (kind == "claim") return Claim(job->second, event, {rank, event.at("claim")});
  if (kind == "claim_end") return EndClaim(job->second, event, {rank, event.at("claim")});
  if (kind == "rows") return NoteRows(job->second, rank, event);
  if (kind == "safe") NoteSafe(job->second, rank, event);
  return {};
}

std::vector<Ledger::Json> Ledger::Claim(Job& job, const Json& event, Attempt attempt) {
  Part& part = job.parts[event.at("partition").get<int>()];
  // Another attempt has finished, so this attempt's task ends without sending rows.
  if (!part.end.empty()) return {Answer(attempt, part.end)};
  part.waiting.push_back(attempt);
  return NextOwner(part, event);
}

std::vector<Ledger::Json> Ledger::EndClaim(Job& job, const Json& event, Attempt attempt) {
  const auto found = job.parts.find(event.at("partition").get<int>());
  // Ignores an event of an attempt that does not own the partition; it may be from before a
  // restart.
  if (found == job.parts.end() || found->second.owner != attempt) return {};
  Part& part = found->second;
  const auto state = event.at("state").get<std::string>();
  const auto rows = event.at("rows").get<int64_t>();
  // The next owner continues after these batches, even if this owner fails, because their rows were
  // delivered.
  part.batches = event.at("batches");
  part.hash = event.at("hash");
  part.owner.reset();
  if (rows == part.rows) part.unsafe.erase(attempt);  // the attempt delivered no rows
  part.rows = rows;
  if (state == "broken") return NextOwner(part, event);
  part.end = state;
  UpdateSafe(part);
  std::vector<Json> answers;
  for (const Attempt& waiting : std::exchange(part.waiting, {})) {
    answers.push_back(Answer(waiting, part.end));
  }
  return answers;
}

std::vector<Ledger::Json> Ledger::NoteRows(Job& job, int rank, const Json& event) {
  const int index = event.at("partition");
  // A replay's partition index is negative; each node's replay gets an entry numbered by its rank.
  job.rows[index >= 0 ? index : -1 - rank] = event.at("rows");
  const auto part = job.parts.find(index);
  if (part == job.parts.end()) return {};
  // Attempts that wait for a slow owner need to be notified of its progress.
  std::vector<Json> answers;
  for (const Attempt& waiting : part->second.waiting) answers.push_back(Answer(waiting, "wait"));
  return answers;
}

void Ledger::NoteSafe(Job& job, int rank, const Json& event) {
  for (const Json& entry : event.at("partitions")) {
    const auto part = job.parts.find(entry.at(0).get<int>());
    if (part == job.parts.end()) continue;
    part->second.unsafe.erase({rank, entry.at(1)});
    UpdateSafe(part->second);
  }
}

std::vector<Ledger::Json> Ledger::NextOwner(Part& part, const Json& event) {
  if (part.owner || part.waiting.empty()) return {};
  part.owner = part.waiting.front();
  part.waiting.pop_front();
  // An attempt whose rows are only compared (`whole`) delivers no rows that a commit must cover.
  if (!part.whole) part.unsafe.insert(*part.owner);
  Json answer = Answer(*part.owner, "begin");
  answer.update({{"feed", event.at("feed")},
                 {"partition", event.at("partition")},
                 {"batches", part.batches},
                 {"hash", part.hash},
                 {"rows", part.rows},
                 {"whole", part.whole}});
  return {std::move(answer)};
}

// Several attempts, at several nodes, may have delivered rows of the partition; it is safe only
// once commits cover all of them.
void Ledger::UpdateSafe(Part& part) {
  part.safe = part.safe || (part.end == "taken" && part.unsafe.empty());
}

Ledger::Json Ledger::Answer(Attempt attempt, const std::string& answer) {
  return {{"op", "claim"}, {"to", attempt.rank}, {"claim", attempt.claim}, {"answer", answer}};
}

int64_t Ledger::Taken(const std::string& feed) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(feed);
  if (job == jobs_.end()) return 0;
  int64_t taken = 0;
  for (const auto& [partition, rows] : job->second.rows) taken += rows;
  return taken;
}

std::set<int> Ledger::Safe(const std::string& feed) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(feed);
  if (job == jobs_.end()) return {};
  std::set<int> safe;
  for (const auto& [index, part] : job->second.parts) {
    if (part.safe) safe.insert(index);
  }
  return safe;
}

std::vector<int> Ledger::Unfinished(const std::string& feed) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(feed);
  if (job == jobs_.end()) return {};
  std::vector<int> unfinished;
  for (const auto& [index, part] : job->second.parts) {
    const bool begun = part.owner || part.batches > 0;
    if (begun && part.end.empty() && !part.whole) unfinished.push_back(index);
  }
  return unfinished;
}

void Ledger::Restart() {
  const std::lock_guard lock(mutex_);
  for (auto& [feed, job] : jobs_) {
    // Erases the partitions that are not safe: without an entry, a partition is sent from its first
    // row.
    std::erase_if(job.parts, [](const auto& entry) { return !entry.second.safe; });
    for (auto& [index, part] : job.parts) {
      part.owner.reset();
      part.end.clear();
      part.whole = true;
      part.waiting.clear();
    }
  }
}

}  // namespace hearth::feed
