// Names of patterns, their masks and their bits.
#include "emu/unit/sparse/pattern.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/sparse/patterns.hpp"

namespace pattern_test {

using namespace numemu;
using namespace numemu::unit;

TEST_CASE("sparse pattern: every N:M up to 16 reads back", "[fast]") {
  const auto all = test::patterns(1, kMostGroup);
  CHECK(all.size() == 136 + 36);
  for (const Pattern& p : all) {
    const Pattern read = parse_pattern(to_string(p));
    CHECK(read.kept == p.kept);
    CHECK(read.group == p.group);
    CHECK(read.pairwise == p.pairwise);
    CHECK_NOTHROW(require_pattern(p));
  }
  const Sparsity two_of_four = parse_pattern("2:4");
  CHECK(two_of_four.kept == 2);
  CHECK(two_of_four.group == 4);
  CHECK_FALSE(two_of_four.dense());
}

TEST_CASE("sparse pattern: anything else is refused with one line", "[fast]") {
  for (const char* text : {"",
                           ":",
                           "2",
                           "2:",
                           ":4",
                           "0:4",
                           "3:2",
                           "1:17",
                           "17:17",
                           "2x4",
                           "2:4:8",
                           "-1:4",
                           "02:4",
                           "2:04",
                           " 2:4",
                           "2:4 ",
                           "2:4.",
                           "2:4.pairs",
                           "1:4.pairwise",
                           "2:5.pairwise",
                           ".pairwise",
                           "99999999999:4",
                           "+2:4",
                           "2,4",
                           "100:4",
                           "4294967298:4"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_pattern(text), Catch::StartsWith("pattern '" + std::string(text)) &&
                                               Catch::Contains("expected N:M") &&
                                               !Catch::Contains("\n"));
  }
  CHECK_THROWS_WITH(require_pattern(Pattern{}), Catch::Contains("1 <= N <= M <= 16"));
  CHECK_THROWS_WITH(require_pattern(Pattern{{1, 4}, true}), Catch::Contains("both even"));
  CHECK_THROWS_WITH(require_whole_groups(Pattern{{2, 4}}, 10),
                    "2:4: K = 10 is not a multiple of the group, 4 elements");
  CHECK_NOTHROW(require_whole_groups(Pattern{{2, 4}}, 0));
}

TEST_CASE("sparse pattern: masks are counted", "[fast]") {
  for (const Pattern& p : test::patterns(1, kMostGroup))
    CHECK(count_masks(p) == static_cast<std::int64_t>(test::masks(p).size()));
  CHECK(count_masks(parse_pattern("8:16")) == 12870);
}

TEST_CASE("sparse pattern: bits of metadata and of an element", "[fast]") {
  const auto index = MetaLayout::index, ptx = MetaLayout::ptx;
  CHECK(index_bits(parse_pattern("1:1")) == 0);
  CHECK(index_bits(parse_pattern("1:2")) == 1);
  CHECK(index_bits(parse_pattern("2:4")) == 2);
  CHECK(index_bits(parse_pattern("2:5")) == 3);
  CHECK(index_bits(parse_pattern("4:8")) == 3);
  CHECK(index_bits(parse_pattern("8:16")) == 4);
  CHECK(metadata_bits(parse_pattern("2:4"), index) == 2);
  CHECK(metadata_bits(parse_pattern("2:4"), ptx) == 2);
  CHECK(metadata_bits(parse_pattern("1:2"), index) == 1);
  CHECK(metadata_bits(parse_pattern("1:2"), ptx) == 4);
  CHECK(metadata_bits(parse_pattern("4:8.pairwise"), index) == 1);
  CHECK(metadata_bits(parse_pattern("4:8.pairwise"), ptx) == 1);
  CHECK(effective_bits(parse_pattern("2:4"), ptx, 8) == 5);
  CHECK(effective_bits(parse_pattern("1:4"), index, 16) == 4.5);
  CHECK(effective_bits(parse_pattern("4:8.pairwise"), ptx, 4.25) == 2.625);
  CHECK_THROWS_WITH(metadata_bits(parse_pattern("4:8"), ptx),
                    "4:8 has no ptx metadata: expected 1:2, 2:4 or 4:8.pairwise");
}

TEST_CASE("sparse pattern: layouts have names", "[fast]") {
  for (const MetaLayout layout : {MetaLayout::index, MetaLayout::ptx})
    CHECK(parse_meta_layout(to_string(layout)) == layout);
  CHECK_THROWS_WITH(parse_meta_layout("indx"),
                    "unknown metadata layout 'indx'; did you mean 'index'?");
}

TEST_CASE("sparse pattern: the named rows are what their names say and stand in the guide",
          "[fast]") {
  std::ifstream file(NUMEMU_SOURCE "/docs/sparse.md");
  std::stringstream guide;
  guide << file.rdbuf();
  REQUIRE(named_patterns().size() == 6);
  for (const PatternRow& row : named_patterns()) {
    INFO(row.name);
    CHECK(to_string(row.pattern) == row.name);
    CHECK_NOTHROW(require_pattern(row.pattern));
    CHECK(has_layout(row.pattern, MetaLayout::index));
    CHECK(has_layout(row.pattern, MetaLayout::ptx) == row.ptx);
    CHECK(guide.str().find("| `" + row.name + "` | " + std::to_string(count_masks(row.pattern)) +
                           " | ") != std::string::npos);
  }
  CHECK_FALSE(has_layout(parse_pattern("2:3"), MetaLayout::ptx));
}

}  // namespace pattern_test
