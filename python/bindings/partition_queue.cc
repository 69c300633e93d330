// hearth.native._core: a node's end of a cluster's feed (FeedQueue, FeedLink, FeedReader).
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
#include "hearth/partitions/partition_queue.h"
#include "hearth/partitions/row_reader.h"
#include "hearth/partitions/task_link.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using partitions::PartitionQueue;
using partitions::RowReader;
using partitions::TaskLink;
using partitions::TaskPartition;
using Json = nlohmann::json;

// A Python function that any thread may call, copy and drop, with or without the GIL.
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
  // With the message as a dict.
  void operator()(const Json& message) const {
    const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
    const AcquiredGil acquired;
    (*function_)(nb::module_::import_("json").attr("loads")(text));
  }

 private:
  std::shared_ptr<nb::object> function_;
};

Json ParseMessage(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  Require(value.is_object(), ErrorCode::kInvalidArgument,
          "a feed's message is not a JSON object: {}", text.substr(0, 80));
  return value;
}

void MakeLink(TaskLink* self, std::pair<int, int> rows, std::pair<int, int> results, bool from_afar,
              nb::object tell) {
  new (self) TaskLink({Fd(rows.first), Fd(rows.second)}, {Fd(results.first), Fd(results.second)},
                      from_afar, PythonFunction(std::move(tell)));
}

void MakeQueue(PartitionQueue* self, nb::object report, nb::object spill_folder) {
  new (self)
      PartitionQueue(PythonFunction(std::move(report)),
                     [folder = PythonFunction(std::move(spill_folder))] { return folder.Ask(); });
}

void DefineTasks(nb::module_& m) {
  nb::class_<TaskLink>(m, "FeedLink", R"(A node's end of one feed task's connection.

Args:
    rows, results: the two descriptors of each ring, which are taken over.
    from_afar: whether the task is on another host.
    tell: sends the task a message; must not raise.)")
      .def("__init__", &MakeLink, "rows"_a, "results"_a, "from_afar"_a, "tell"_a)
      .def("close", &TaskLink::Close, ReleaseGil(),
           "Ends all waits of both sides; the connection is unusable afterwards.");
  nb::class_<TaskPartition>(m, "FeedPartition", "A partition that a feed task sends.")
      .def("set_total", &TaskPartition::SetTotal, "rows"_a, ReleaseGil(),
           "The feed task has written its last row.");
}

void DefineQueue(nb::module_& m) {
  nb::class_<PartitionQueue>(m, "FeedQueue", R"(The partitions of one feed of a node. Any thread.

Args:
    report: sends the driver an event.
    spill_folder: names the folder for rows that are kept.)")
      .def("__init__", &MakeQueue, "report"_a, "spill_folder"_a)
      .def(
          "announce",
          [](PartitionQueue& queue, std::shared_ptr<TaskLink> link, const std::string& message) {
            return queue.Announce(std::move(link), ParseMessage(message));
          },
          "link"_a, "message"_a, ReleaseGil(),
          "Adds the partition that a feed task's message (JSON text) announces, or refuses it. "
          "Raises ValueError for a message that is not understood.")
      .def(
          "answer",
          [](PartitionQueue& queue, const std::string& message) {
            return queue.Answer(ParseMessage(message));
          },
          "message"_a, ReleaseGil(),
          "Takes the driver's answer to a partition's claim; returns whether this queue has the "
          "partition.")
      .def("lose", &PartitionQueue::Lose, "partition"_a, ReleaseGil(),
           "The partition's feed task is gone.")
      .def("replay", &PartitionQueue::AddReplay, "feed"_a, "kept"_a, "times"_a, ReleaseGil(),
           "Queues the rows kept of feed job `kept` again, `times` over, as rows of `feed`.")
      .def("end", &PartitionQueue::End, ReleaseGil(),
           "No more partitions come after those that already wait.")
      .def("fail", &PartitionQueue::Fail, "reason"_a, ReleaseGil(),
           "Ends all waits, and all partitions.")
      .def("terminate", &PartitionQueue::Terminate, ReleaseGil(),
           "No more rows are wanted: those on their way, and all to come, are skipped.")
      .def("close", &PartitionQueue::Close, "reason"_a, ReleaseGil(),
           "The reader is gone: rows that are left are an error, unless it had terminated.")
      .def(
          "commit",
          [](PartitionQueue& queue, std::optional<int64_t> rows) {
            rows ? queue.rows().Commit(*rows) : queue.rows().Commit();
          },
          "rows"_a = nb::none(), ReleaseGil(),
          "The first `rows` of the rows taken so far are safe; None: all.")
      .def_prop_ro(
          "taken", [](PartitionQueue& queue) { return queue.rows().taken(); },
          "How many rows were taken so far.")
      .def_prop_ro("failure", &PartitionQueue::failure, ReleaseGil(),
                   "Why the cluster failed; empty if it has not.")
      .def_prop_ro("terminated", &PartitionQueue::terminated, ReleaseGil());
}

nb::object NextBatch(RowReader& reader) {
  std::optional<partitions::Partition::Batch> batch;
  {
    const ReleasedGil released;
    batch = reader.Next();
  }
  if (!batch) return nb::none();
  const partitions::RowFormat format = batch->format;
  return nb::make_tuple(nb::cast(PythonBatch(std::move(batch->view), batch->image)), format.pickled,
                        format.batched, format.from_afar);
}

bool WriteResults(RowReader& reader, const PythonPieces& results) {
  const batch::PiecesImage image = results.image();
  const ReleasedGil released;
  return reader.WriteResults(image);
}

void DefineReader(nb::module_& m) {
  nb::class_<RowReader>(m, "FeedReader",
                        "Batches of a feed on their way to the program, which says what it gave of "
                        "them. One thread uses it.")
      .def(nb::init<std::shared_ptr<PartitionQueue>>(), "queue"_a)
      .def("next", &NextBatch,
           "Waits for the next batch: (FeedBatch, pickled, batched, from_afar), valid until "
           "opened(); None at a partition's end and at the feed's. Raises HearthError where the "
           "cluster failed.")
      .def_prop_ro("ended", &RowReader::ended, "Whether next() has come to the feed's end.")
      .def("opened", &RowReader::Opened, "rows"_a, "within_row"_a, ReleaseGil(),
           "So many rows end in the batch; whether one goes on in the next.")
      .def("give", &RowReader::Give, "rows"_a, ReleaseGil(),
           "The program was given so many more of them.")
      .def_prop_ro("owed", &RowReader::owed, "Rows whose results are owed.")
      .def_prop_ro("owed_first", &RowReader::owed_first, "Those of the first partition.")
      .def("write_results", &WriteResults, "pieces"_a,
           "Sends results of the first partition; returns whether its feed task is still there.")
      .def("answered", &RowReader::Answered, "rows"_a, ReleaseGil(),
           "The results of so many rows were sent.");
}

}  // namespace

void RegisterPartitionQueue(nb::module_& m) {
  DefineTasks(m);
  DefineQueue(m);
  DefineReader(m);
}

}  // namespace hearth::bindings
