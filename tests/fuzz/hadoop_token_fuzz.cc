// A file of delegation tokens in both of Hadoop's formats, and Hadoop's XML configuration.
#include <string>

#include "hearth/storage/hadoop_conf.h"
#include "hearth/storage/hadoop_token.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::Text(data, size);
  fuzz::Refusable([&] { storage::TokenIn(bytes, {"one"}); });
  fuzz::Refusable([&] {
    storage::HadoopConf conf;
    conf.AddXml(bytes, "x.xml");
    conf.GetList("a");
    storage::WebAddresses(storage::ParseRemote("hdfs://a/x"), conf);
  });
  return 0;
}
