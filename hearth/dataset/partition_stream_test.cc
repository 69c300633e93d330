#include "hearth/dataset/partition_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "hearth/dataset/testing/dataset_testing.h"
#include "hearth/formats/mapped_file.h"
#include "hearth/formats/testing/mapped_file_testing.h"

namespace hearth::dataset {
namespace {

constexpr double kTimeout = 30;

void Send(PartitionSender& sender, int32_t first, int32_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  batch::BatchBuilder rows;
  rows.AddInt32("n", values);
  ArrowSchema schema;
  ArrowArray array;
  rows.Export(&schema, &array);
  sender.Write(schema, array);
}

TEST(PartitionStream, WritesRowsToAFile) {
  auto [here, there] = Connection::Pair();
  constexpr int32_t kMany = 3'000'000;  // more than one image
  uint64_t sent_hash = 0;
  std::thread task([&, to = std::move(there)]() mutable {
    PartitionSender sender(std::move(to), kTimeout);
    Send(sender, 0, 5);
    Send(sender, 5, kMany);
    sender.End();
    sent_hash = sender.hash();
  });
  DatasetRows rows({0}, kTimeout);
  Fd file = UnnamedFile();
  Fd announced = Duplicate(file);
  const ReceivedPartition received =
      ReceivePartition(here, std::move(file), kTimeout, [&](const Committed& committed) {
        rows.ApplyAnnouncement({.file = std::move(announced), .committed = committed});
      });
  task.join();
  rows.ApplyAnnouncement(
      {.committed = received.committed, .complete = true, .hash = received.hash});
  EXPECT_EQ(received.hash, sent_hash);
  EXPECT_EQ(rows.WaitRows(), kMany + 5);
  EXPECT_EQ(NumbersOf(*rows.Select(Range(0, kMany + 5))), Range(0, kMany + 5));
}

// Error that the receiver throws for these bytes, followed by the end of the connection.
ErrorCode CodeFor(const std::string& bytes) {
  auto [here, there] = Connection::Pair();
  std::thread task([&, to = std::move(there)]() mutable {
    try {
      to.Write(bytes, Deadline::After(kTimeout));
    } catch (const Error&) {  // the receiver has closed the connection
    }
  });
  Connection from = std::move(here);
  const Error error =
      Thrown([&] { ReceivePartition(from, UnnamedFile(), kTimeout, [](const Committed&) {}); });
  from.Shutdown();  // the sender may still write
  task.join();
  return error.code();
}

void WriteViews(const formats::ValuesInFile& values, ArrowSchema* schema, ArrowArray* array,
                batch::BatchBuilder* rows) {
  rows->AddBinaryViews("b", values.values());
  rows->Export(schema, array);
}

TEST(PartitionStream, CopiesValuesInAFileOfItsHost) {
  const formats::ValuesInFile values({40'000, 50'000});
  batch::BatchBuilder builder;
  ArrowSchema schema;
  ArrowArray array;
  WriteViews(values, &schema, &array, &builder);
  auto [here, there] = Connection::Pair();
  std::thread task([&, to = std::move(there)]() mutable {
    PartitionSender sender(std::move(to), kTimeout);
    sender.Write(schema, array);
    sender.End();
  });
  Fd file = UnnamedFile();
  PartitionRows rows(0, 0, Duplicate(file));
  const auto received = ReceivePartition(here, std::move(file), kTimeout, [](const Committed&) {});
  task.join();
  rows.Add(rows.ReadTo(received.committed));
  EXPECT_GT(received.committed.bytes, 90'000);
  EXPECT_TRUE(rows.batches().front().files().empty());
  EXPECT_EQ(rows.batches().front().column("b").Bytes(1), values.values()[1]);

  // The writer does not copy values of files on its host.
  Fd local = UnnamedFile();
  PartitionRows in_place(0, 0, Duplicate(local));
  PartitionWriter writer(std::move(local));
  const Committed committed = writer.Write(schema, array);
  EXPECT_LT(committed.bytes, 1000);
  EXPECT_EQ(writer.hash(), received.hash);
  in_place.Add(in_place.ReadTo(committed));
  EXPECT_EQ(in_place.batches().front().column("b").Bytes(1), values.values()[1]);
}

TEST(PartitionStream, RejectsValuesInAFileOfTheReceiversHost) {
  const formats::ValuesInFile values({40'000});
  batch::BatchBuilder builder;
  ArrowSchema schema;
  ArrowArray array;
  WriteViews(values, &schema, &array, &builder);
  std::string frame;
  ImageMaker().Make(schema, array, true, [&](std::span<const std::byte> image) {
    const uint64_t bytes = image.size();
    frame.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    frame.append(reinterpret_cast<const char*>(image.data()), image.size());
  });
  EXPECT_EQ(CodeFor(frame), ErrorCode::kDataLoss);
}

std::string FrameOfRows() {
  auto [here, there] = Connection::Pair();
  PartitionSender sender(std::move(there), kTimeout);
  Send(sender, 0, 100);
  std::string frame(1 << 20, '\0');
  frame.resize(here.ReadSome(frame.data(), frame.size(), Deadline::After(kTimeout)));
  uint64_t image = 0;
  std::memcpy(&image, frame.data(), sizeof(image));
  while (frame.size() < image + sizeof(image)) {
    std::string more(1 << 20, '\0');
    more.resize(here.ReadSome(more.data(), more.size(), Deadline::After(kTimeout)));
    frame += more;
  }
  return frame;
}

TEST(PartitionStream, EarlyEndIsAnError) {
  const std::string frame = FrameOfRows();
  for (const size_t bytes :
       {size_t{0}, size_t{3}, size_t{8}, size_t{20}, frame.size() - 1, frame.size()}) {
    EXPECT_EQ(CodeFor(frame.substr(0, bytes)), ErrorCode::kUnavailable) << bytes;
  }
}

TEST(PartitionStream, RejectsDamagedFrames) {
  const std::string frame = FrameOfRows();
  // Offsets in the length; in the image's magic, bytes and rows; in a column's type and length.
  for (const size_t at : {0, 3, 7, 8, 16, 24, 31, 40, 48}) {
    std::string damaged = frame;
    damaged[at] ^= static_cast<char>(0x81);
    EXPECT_EQ(CodeFor(damaged), ErrorCode::kDataLoss) << "byte " << at;
  }
}

TEST(PartitionStream, WaitsEndAtTheDeadline) {
  auto [here, there] = Connection::Pair();
  Connection& from = here;
  EXPECT_EQ(
      Thrown([&] { ReceivePartition(from, UnnamedFile(), 0.01, [](const Committed&) {}); }).code(),
      ErrorCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace hearth::dataset
