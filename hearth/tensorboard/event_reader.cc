#include "hearth/tensorboard/event_reader.h"

#include <optional>

#include "hearth/base/error.h"
#include "hearth/formats/tfrecord.h"
#include "hearth/formats/wire.h"
#include "hearth/tensorboard/event_fields.h"

namespace hearth::tensorboard {
namespace {

using formats::WireReader;

struct Event {
  double at = 0;
  int64_t step = 0;
  bool starts = false;
  std::vector<Point> points;
};

// The first string of a tensor. Hearth writes a text as a tensor of one string.
std::string TextOf(std::string_view tensor) {
  for (WireReader fields(tensor); !fields.done();) {
    fields.NextField();
    const bool is_text =
        fields.field == tensor_fields::kStringValue && fields.type == WireReader::kBytes;
    if (is_text) return std::string(fields.Bytes());
    fields.Skip();
  }
  return "";
}

// Returns nullopt if the value is neither a number nor a text.
std::optional<Point> PointOf(std::string_view value) {
  Point point;
  bool known = false;
  for (WireReader fields(value); !fields.done();) {
    fields.NextField();
    if (fields.field == value_fields::kTag && fields.type == WireReader::kBytes) {
      point.tag = fields.Bytes();
    } else if (fields.field == value_fields::kNumber && fields.type == WireReader::kFixed32) {
      point.value = fields.Float();
      known = true;
    } else if (fields.field == value_fields::kTensor && fields.type == WireReader::kBytes) {
      point.text = TextOf(fields.Bytes());
      known = known || !point.text.empty();
    } else {
      fields.Skip();
    }
  }
  return known ? std::optional(point) : std::nullopt;
}

void ReadSummary(std::string_view summary, Event* event) {
  for (WireReader fields(summary); !fields.done();) {
    fields.NextField();
    if (fields.field != 1 || fields.type != WireReader::kBytes) {
      fields.Skip();
    } else if (auto point = PointOf(fields.Bytes())) {
      event->points.push_back(std::move(*point));
    }
  }
}

bool IsStart(std::string_view session) {
  for (WireReader fields(session); !fields.done();) {
    fields.NextField();
    if (fields.field == session_fields::kStatus && fields.type == WireReader::kVarint) {
      return fields.Varint() == session_fields::kStart;
    }
    fields.Skip();
  }
  return false;
}

Event EventOf(std::string_view record) {
  Event event;
  for (WireReader fields(record); !fields.done();) {
    fields.NextField();
    if (fields.field == event_fields::kTime && fields.type == WireReader::kFixed64) {
      event.at = fields.Double();
    } else if (fields.field == event_fields::kStep && fields.type == WireReader::kVarint) {
      event.step = static_cast<int64_t>(fields.Varint());
    } else if (fields.field == event_fields::kSummary && fields.type == WireReader::kBytes) {
      ReadSummary(fields.Bytes(), &event);
    } else if (fields.field == event_fields::kSession && fields.type == WireReader::kBytes) {
      event.starts = IsStart(fields.Bytes());
    } else {
      fields.Skip();
    }
  }
  return event;
}

}  // namespace

std::vector<Point> ReadEvents(std::string_view bytes, const std::string& name) {
  std::vector<Point> points;
  formats::TfRecordReader records(formats::OpenMemorySource(bytes), name);
  bool any = false;
  try {
    while (const auto record = records.Next()) {
      Event event = EventOf(*record);
      any = true;
      // As in TensorBoard, the start of a session drops the earlier points whose step is not below
      // the session's, because they belong to a rewound attempt. Texts are kept, because they
      // explain the restart.
      if (event.starts) {
        std::erase_if(points,
                      [&](const Point& p) { return p.text.empty() && p.step >= event.step; });
      }
      for (Point& point : event.points) {
        point.at = event.at;
        point.step = event.step;
        points.push_back(std::move(point));
      }
    }
  } catch (const Error& error) {
    // A running program may have written half a record. If the first record is damaged, the file is
    // not an event file.
    if (!any || error.code() != ErrorCode::kDataLoss) throw;
  }
  return points;
}

}  // namespace hearth::tensorboard
