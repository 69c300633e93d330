// Compares nets as text, for the tests of upgrades.
#pragma once

#include <string>

#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/proto/text_writer.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {

// The text of the net as read, after the upgrade.
inline std::string Upgraded(const std::string& text) { return WriteText(ParseNet(text, "old")); }

// The same for a net in the current format, which needs no upgrade.
inline std::string Plain(const std::string& text) {
  NetParameter net;
  ParseText(text, "new", &net);
  return WriteText(net);
}

}  // namespace hearth::caffe
