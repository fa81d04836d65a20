// Tables for the terminal, and their parts where they are wide.
#include "api/text/table.hpp"
#include "tests/catch.hpp"

namespace numemu::api::text_table_test {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string letters(std::size_t n) { return std::string(n, 'x'); }

TEST_CASE("a table as wide as a terminal stays whole", "[fast]") {
  const std::vector<std::string> header = {"a", "b"};
  const Rows rows = {{letters(59), letters(59)}};
  CHECK(width_of(text_table(header, rows)) == kTerminalWidth);
  CHECK(folded_table(header, rows) == text_table(header, rows));
  CHECK(folded_table({"a"}, {}) == "a\n");
}

TEST_CASE("a wide table has parts, numbered where it has several rows", "[fast]") {
  const std::vector<std::string> header = {"a", "b", "c"};
  CHECK(folded_table(header, {{letters(60), letters(59), "1"}}) ==
        "a\n" + letters(60) + "\nb" + std::string(60, ' ') + "c\n" + letters(59) + "  1\n");
  CHECK(folded_table({"a", "b"}, {{letters(80), "2"}, {"y", letters(80)}}) ==
        "#  a\n1  " + letters(80) + "\n2  y\n\n#  b\n1  2\n2  " + letters(80) + "\n");
  // A cell cannot be cut.
  const std::string wide = folded_table({"a", "b"}, {{letters(200), "2"}});
  CHECK(wide == "a\n" + letters(200) + "\nb\n2\n");
}

TEST_CASE("an interval stays with its figure, and every cell is there", "[fast]") {
  const std::string text = folded_table({"name", "top-1 %", "95 %", "loss"},
                                        {{letters(110), "95.00", "[91, 97]", "0.1"}});
  CHECK(text == "name\n" + letters(110) + "\ntop-1 %      95 %  loss\n  95.00  [91, 97]   0.1\n");
  CHECK(width_of(text) == 110);
}

}  // namespace
}  // namespace numemu::api::text_table_test
