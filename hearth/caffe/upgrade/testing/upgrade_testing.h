// Test helper that compares upgraded nets as text.
#pragma once

#include <string>

#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/proto/text_writer.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {

// The text of the net after it was read and upgraded.
inline std::string Upgraded(const std::string& text) { return WriteText(ParseNet(text, "old")); }

// The text of a net that is already in the current format.
inline std::string Plain(const std::string& text) {
  NetParameter net;
  ParseText(text, "new", &net);
  return WriteText(net);
}

}  // namespace hearth::caffe
