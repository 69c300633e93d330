// Checks that docs/caffe.md has the layer table of the registry and of the tests' layer table.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "hearth/caffe/layers/testing/layer_testing.h"
#include "hearth/caffe/net/layer_registry.h"
#include "hearth/caffe/proto/text_reader.h"

namespace hearth::caffe {
namespace {

const std::string kFile = HEARTH_TEST_DATA "/../../docs/caffe.md";
const std::string kBegin = "<!-- layer table: begin -->\n", kEnd = "<!-- layer table: end -->";

struct TypeFacts {
  std::set<std::string> params;  // fields of LayerParameter
  Arity arity = {Arity::kNoLimit, 0, Arity::kNoLimit, 0};
  bool in_place = false;
  size_t bottoms = 0;             // of the row with most bottoms
  std::vector<size_t> gradients;  // its bottoms that have one
};

void AddArity(const Arity& of_row, Arity* arity) {
  arity->min_bottoms = std::min(arity->min_bottoms, of_row.min_bottoms);
  arity->max_bottoms = std::max({arity->max_bottoms, of_row.min_bottoms, of_row.max_bottoms});
  arity->min_tops = std::min(arity->min_tops, of_row.min_tops);
  arity->max_tops = std::max({arity->max_tops, of_row.min_tops, of_row.max_tops});
  arity->equal_bottoms_and_tops = of_row.equal_bottoms_and_tops;
}

void AddRow(const LayerCase& row, const LayerParameter& param, TypeFacts* facts) {
  for (const FieldDescriptor& field : param.descriptor().fields) {
    const std::string name = field.name;
    if (name.ends_with("_param") && field.Count(param) > 0) facts->params.insert(name);
  }
  LayerRun run(row);
  AddArity(run.layer().traits().arity, &facts->arity);
  facts->in_place |= run.layer().traits().allows_in_place;
  if (row.bottoms.size() < facts->bottoms) return;
  const bool more = row.bottoms.size() > facts->bottoms;
  facts->bottoms = row.bottoms.size();
  if (more) facts->gradients.clear();
  if (!row.has_gradient || !facts->gradients.empty()) return;
  for (size_t i = 0; i < row.bottoms.size(); ++i) {
    const auto& without = row.without_gradient;
    const bool has = std::find(without.begin(), without.end(), i) == without.end();
    if (has && run.layer().traits().AllowsForceBackward(static_cast<int>(i)))
      facts->gradients.push_back(i);
  }
}

std::string Range(int least, int most) {
  if (most >= Arity::kNoLimit) return fmt::format("≥ {}", least);
  return least == most ? std::to_string(least) : fmt::format("{}–{}", least, most);
}

std::string Line(const std::string& type, const TypeFacts& facts) {
  const std::string gradient = facts.gradients.empty() ? "no"
                               : facts.gradients.size() == facts.bottoms
                                   ? "all"
                                   : fmt::format("{}", fmt::join(facts.gradients, ", "));
  if (type == "Python") return "| Python | python_param | as the user's class | | | |\n";
  const Arity& arity = facts.arity;
  return fmt::format(
      "| {} | {} | {} | {} | {} | {} |\n", type, fmt::join(facts.params, ", "),
      Range(arity.min_bottoms, arity.max_bottoms),
      arity.equal_bottoms_and_tops ? "as bottoms" : Range(arity.min_tops, arity.max_tops),
      facts.in_place ? "yes" : "", gradient);
}

std::string Table() {
  std::map<std::string, TypeFacts> facts;
  for (const LayerCase& row : AllLayerCases()) {
    LayerParameter param;
    ParseText(row.layer, row.name, &param);
    AddRow(row, param, &facts[param.type()]);
  }
  std::string table =
      "| type | parameters | bottoms | tops | in place | gradient for bottoms |\n"
      "|---|---|---|---|---|---|\n";
  for (const std::string& type : LayerRegistry::Default().types()) table += Line(type, facts[type]);
  return table;
}

std::string ReadDocs() {
  std::ostringstream text;
  text << std::ifstream(kFile).rdbuf();
  return text.str();
}

TEST(LayerDocs, HaveTheCurrentLayerTable) {
  const std::string docs = ReadDocs();
  const size_t begin = docs.find(kBegin), end = docs.find(kEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << kFile;
  const std::string before = docs.substr(0, begin + kBegin.size()), after = docs.substr(end);
  const std::string table = Table();
  if (std::getenv("HEARTH_UPDATE_DOCS") != nullptr) {
    std::ofstream(kFile) << before << table << after;
  }
  EXPECT_EQ(ReadDocs(), before + table + after)
      << "docs/caffe.md is stale; this writes its table: "
         "HEARTH_UPDATE_DOCS=1 build/hearth/caffe/hearth_caffe_test --gtest_filter=LayerDocs.*";
}

}  // namespace
}  // namespace hearth::caffe
