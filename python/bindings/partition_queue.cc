// hearth.native._core: the node's side of a cluster's feed (FeedQueue, FeedLink, FeedReader).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "batch.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/feed/partition_queue.h"
#include "hearth/feed/row_reader.h"
#include "hearth/feed/task_link.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using feed::PartitionQueue;
using feed::RowReader;
using feed::TaskLink;
using feed::TaskPartition;
using Json = nlohmann::json;

// A Python function that any thread may call, copy and destroy, with or without the GIL.
class PythonFunction {
 public:
  explicit PythonFunction(nb::object function)
      : function_(new nb::object(std::move(function)), [](nb::object* held) {
          const AcquiredGil acquired;
          delete held;
        }) {}

  std::string Ask() const {
    const AcquiredGil acquired;
    return nb::cast<std::string>((*function_)());
  }
  // Calls the function with the message as a dict.
  void operator()(const Json& message) const {
    // The JSON text is written before the GIL is acquired, because this does not need Python.
    const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
    const AcquiredGil acquired;
    (*function_)(nb::module_::import_("json").attr("loads")(text));
  }

 private:
  std::shared_ptr<nb::object> function_;
};

Json ParseMessage(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  Require(value.is_object(), ErrorCode::kInvalidArgument, "a feed message is not a JSON object: {}",
          text.substr(0, 80));
  return value;
}

void MakeLink(TaskLink* self, std::pair<int, int> rows, std::pair<int, int> results, bool remote,
              nb::object tell) {
  new (self) TaskLink({Fd(rows.first), Fd(rows.second)}, {Fd(results.first), Fd(results.second)},
                      remote, PythonFunction(std::move(tell)));
}

void MakeQueue(PartitionQueue* self, nb::object report, nb::object spill_folder) {
  new (self)
      PartitionQueue(PythonFunction(std::move(report)),
                     [folder = PythonFunction(std::move(spill_folder))] { return folder.Ask(); });
}

void DefineTasks(nb::module_& m) {
  nb::class_<TaskLink>(m, "FeedLink", R"(Node's end of a feed task's connection.

Args:
    rows, results: the two descriptors of each ring, owned by this object afterwards.
    from_remote: whether the task is on another host.
    tell: sends the task a message; must not raise.)")
      .def("__init__", &MakeLink, "rows"_a, "results"_a, "from_remote"_a, "tell"_a)
      .def("close", &TaskLink::Close, ReleaseGil(),
           "Ends all waits of both sides; the connection is unusable afterwards.");
  nb::class_<TaskPartition>(m, "FeedPartition", "A partition that a feed task sends.")
      .def("set_total", &TaskPartition::SetTotal, "rows"_a, ReleaseGil(),
           "The feed task has written its last row.");
}

void DefineQueue(nb::module_& m) {
  nb::class_<PartitionQueue>(m, "FeedQueue", R"(The partitions of one feed of a node. Thread-safe.

Args:
    report: sends an event to the driver.
    spill_folder: returns the folder for spooled rows.)")
      .def("__init__", &MakeQueue, "report"_a, "spill_folder"_a)
      .def(
          "announce",
          [](PartitionQueue& queue, std::shared_ptr<TaskLink> link, const std::string& message) {
            return queue.Announce(std::move(link), ParseMessage(message));
          },
          "link"_a, "message"_a, ReleaseGil(),
          "Adds the partition that a feed task announces (JSON text), or refuses it. "
          "Raises ValueError for an invalid message.")
      .def(
          "answer",
          [](PartitionQueue& queue, const std::string& message) {
            return queue.Answer(ParseMessage(message));
          },
          "message"_a, ReleaseGil(),
          "Applies the driver's answer to a partition's claim; returns whether this queue has the "
          "partition.")
      .def("lose", &PartitionQueue::Lose, "partition"_a, ReleaseGil(),
           "The partition's feed task is gone.")
      .def("replay", &PartitionQueue::AddReplay, "feed"_a, "kept"_a, "times"_a, ReleaseGil(),
           "Queues the spooled rows of feed job `kept` again, `times` over, as rows of `feed`.")
      .def("end", &PartitionQueue::End, ReleaseGil(),
           "Ends the feed after the partitions already queued.")
      .def("fail", &PartitionQueue::Fail, "reason"_a, ReleaseGil(),
           "Ends all waits and all partitions.")
      .def("terminate", &PartitionQueue::Terminate, ReleaseGil(),
           "Skips all rows, current and future.")
      .def("close", &PartitionQueue::Close, "reason"_a, ReleaseGil(),
           "The reader is gone: remaining rows are an error, unless the feed was terminated.")
      .def(
          "commit",
          [](PartitionQueue& queue, std::optional<int64_t> rows) {
            rows ? queue.rows().Commit(*rows) : queue.rows().Commit();
          },
          "rows"_a = nb::none(), ReleaseGil(),
          "Marks the first `rows` of the rows taken so far as safe; None: all.")
      .def_prop_ro(
          "taken", [](PartitionQueue& queue) { return queue.rows().taken(); },
          "Number of rows taken so far.")
      .def_prop_ro("failure", &PartitionQueue::failure, ReleaseGil(),
                   "Reason of the cluster's failure; empty if it has not failed.")
      .def_prop_ro("terminated", &PartitionQueue::terminated, ReleaseGil());
}

nb::object NextBatch(RowReader& reader) {
  auto batch = WithoutGil([&] { return reader.Next(); });
  if (!batch) return nb::none();
  // The format is copied first, because the next statement moves from the batch.
  const feed::RowFormat format = batch->format;
  return nb::make_tuple(nb::cast(PythonBatch(std::move(batch->view), batch->image)), format.pickled,
                        format.batched, format.remote);
}

bool WriteResults(RowReader& reader, const PythonChunks& results) {
  const batch::ChunksImage image = results.image();
  const ReleasedGil released;
  return reader.WriteResults(image);
}

void DefineReader(nb::module_& m) {
  nb::class_<RowReader>(
      m, "FeedReader",
      "Delivers batches of a feed to the program, which reports the rows it has used of "
      "them. Not thread-safe.")
      .def(nb::init<std::shared_ptr<PartitionQueue>>(), "queue"_a)
      .def("next", &NextBatch,
           "Waits for the next batch: (FeedBatch, pickled, batched, from_remote), valid until "
           "opened(); None at the end of a partition and of the feed. Raises HearthError if the "
           "cluster failed.")
      .def_prop_ro("ended", &RowReader::ended, "Whether next() has reached the end of the feed.")
      .def("opened", &RowReader::Opened, "rows"_a, "within_row"_a, ReleaseGil(),
           "`rows` rows end in the batch; `within_row`: the last one continues in the next batch.")
      .def("give", &RowReader::Give, "rows"_a, ReleaseGil(),
           "Counts `rows` more of these rows as delivered.")
      .def_prop_ro("owed", &RowReader::pending_results, "Rows with pending results.")
      .def_prop_ro("owed_first", &RowReader::pending_in_first,
                   "Rows with pending results of the first partition.")
      .def("write_results", &WriteResults, "pieces"_a,
           "Sends results of the first partition; returns whether its feed task still runs.")
      .def("answered", &RowReader::Answered, "rows"_a, ReleaseGil(),
           "Counts `rows` results as sent.");
}

}  // namespace

void RegisterPartitionQueue(nb::module_& m) {
  DefineTasks(m);
  DefineQueue(m);
  DefineReader(m);
}

}  // namespace hearth::bindings
