#include "hearth/rendezvous/event_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace hearth::rendezvous {
namespace {

std::string TakeAll(EventQueue* queue) {
  std::string all;
  while (const auto event = queue->Take()) all += event->value.get<std::string>();
  return all;
}

TEST(EventQueue, ReturnsLinesAndEventsInOrderOfArrival) {
  EventQueue queue(10);
  queue.AddLogLine({0, "a"});
  queue.AddEvent({0, "B"});
  queue.AddLogLine({1, "c"});
  queue.AddLogLine({0, "d"});
  queue.AddEvent({0, "E"});
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(TakeAll(&queue), "aBcdE");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.TakeDropped(), 0);
}

TEST(EventQueue, DropsTheOldestLinesButNoEvents) {
  EventQueue queue(2);
  for (const char* text : {"a", "b", "c"}) {
    queue.AddLogLine({0, text});
    queue.AddEvent({0, std::string(1, static_cast<char>(*text - 'a' + 'A'))});
  }
  EXPECT_EQ(TakeAll(&queue), "AbBcC");
  EXPECT_EQ(queue.TakeDropped(), 1);
  EXPECT_EQ(queue.TakeDropped(), 0);
}

}  // namespace
}  // namespace hearth::rendezvous
