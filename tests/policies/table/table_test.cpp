// The key `table`: a layer reads what the rule makes of its table, in training and frozen; bits and
// contradictions.
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/lookup.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/table/base/row_codebook.hpp"
#include "policies/table/base/row_range.hpp"
#include "policies/table/base/table_rule.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/one_layer.hpp"

namespace table_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

namespace {

constexpr std::int64_t kRows = 6, kWidth = 40;

net::Tensor all_rows() {
  net::Tensor x({1, kRows});
  for (std::int64_t r = 0; r < kRows; ++r) x.data[r] = static_cast<float>(r);
  return x;
}

/// An embedding under `"table": RULE`.
struct Table : policies::test::OneLayer {
  explicit Table(const std::string& rule)
      : OneLayer("\"table\": " + rule, std::make_unique<net::Embedding>(kRows, kWidth), {kRows}) {
    net::Tensor& t = op().parameters()[0].value;
    for (std::size_t i = 0; i < t.data.size(); ++i)
      t.data[i] =
          static_cast<float>(RandomSource{}.uniform(i) - 0.3) * static_cast<float>(1 + i / kWidth);
  }
  const net::Tensor& parameter() { return op().parameters()[0].value; }
  std::span<const float> row(std::int64_t r) {
    return {parameter().data.data() + r * kWidth, static_cast<std::size_t>(kWidth)};
  }
  std::vector<float> read() { return net::forward(graph(), all_rows(), numerics()).data; }
};

double bits_of(const std::string& rule) {
  const Table table(rule);
  const Recipe recipe = Recipe::parse_text(R"({"numemu_recipe": 1, "table": )" + rule + "}", "r");
  return effective_bits({recipe, table.graph()}, float_reference(table.graph(), all_rows())).weight;
}

}  // namespace

TEST_CASE("table: rows are read as the rule makes them, frozen too", "[fast]") {
  Table table(R"({"rule": "range", "range": "greedy", "bits": 3, "bins": 50, "share": 0.3})");
  std::vector<float> expected;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const RowCodes codes(greedy_range(table.row(r), 3, {50, 0.3}), 3);
    for (const float x : table.row(r)) expected.push_back(codes.value(codes.code(x)));
  }
  CHECK(table.read() == expected);
  table.numerics().freeze(table.graph(), float_reference(table.graph(), all_rows()));
  CHECK(table.read() == expected);
  CHECK(table.read() != std::vector<float>(table.parameter().data));
  // Frozen, the table is made once.
  table.op().parameters()[0].value.data[0] += 1;
  CHECK(table.read() == expected);
}

TEST_CASE("table: one range for a table, one codebook for each row or cluster", "[fast]") {
  Table whole("\"range(asymmetric,4,table)\"");
  const RowCodes codes(asymmetric_range(whole.parameter().data), 4);
  for (std::size_t i = 0; const float y : whole.read())
    CHECK(y == codes.value(codes.code(whole.parameter().data[i++])));

  Table books("\"kmeans\"");
  std::vector<float> expected;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const std::vector<float> book = lloyd_codebook(books.row(r), 4);
    for (const float x : books.row(r)) expected.push_back(nearest_entry(book, x));
  }
  CHECK(books.read() == expected);

  Table shared("\"kmeans(4,1)\"");
  expected.clear();
  const std::vector<float> book = lloyd_codebook(shared.parameter().data, 4);
  for (const float x : shared.parameter().data) expected.push_back(nearest_entry(book, x));
  CHECK(shared.read() == expected);
}

TEST_CASE("table: stored bits are those of codes and parameters", "[fast]") {
  CHECK(bits_of("null") == 32);
  CHECK(bits_of("\"range\"") == Approx(4 + 32.0 / kWidth));
  CHECK(bits_of("\"range(symmetric,8)\"") == Approx(8 + 32.0 / kWidth));
  CHECK(bits_of("\"range(asymmetric,4,table)\"") == Approx(4 + 32.0 / (kRows * kWidth)));
  CHECK(bits_of("\"kmeans\"") == Approx(4 + 256.0 / kWidth));
  CHECK(bits_of("\"kmeans(4,2)\"") == Approx(4 + 1.0 / kWidth + 2 * 256.0 / (kRows * kWidth)));
}

TEST_CASE("table: the canonical form, and what is refused", "[fast]") {
  const auto parse = [](const std::string& keys) {
    return Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + keys + "}", "r.json");
  };
  const Json json = parse(R"j("table": "range(greedy,4,row,1000,0.5)")j").json();
  CHECK(json["table"]["range"] == "greedy");
  CHECK(json["table"]["bins"] == 1000);
  CHECK(Recipe::parse(json, "again").json() == json);
  const net::Graph graph = net::build_net("mlp", {8, 8, 1}, 10);
  CHECK(table_rule_of({parse(R"j("seed": 1)j"), graph}, "fc1") == nullptr);
  CHECK(table_rule_of({parse(R"j("table": "kmeans")j"), graph}, "fc1") != nullptr);
  CHECK_THAT(numemu::test::message_of([&] { parse(R"j("table": "kmean")j"); }),
             Contains("did you mean 'kmeans'"));
  CHECK_THAT(numemu::test::message_of([&] { parse(R"j("table": "range(greed)")j"); }),
             Contains("greedy"));
  CHECK_THAT(numemu::test::message_of(
                 [&] { Table(R"j("range", "roles": {"embedding": {"format": "int8"}})j"); }),
             Contains("contradicts roles.embedding of layer layer"));
}

}  // namespace table_test
