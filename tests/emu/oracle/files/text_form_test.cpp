// csv and JSON lines read as the text that they stand for, in pieces of any size.
#include <algorithm>

#include "emu/oracle/files/text.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::oracle {
namespace {

std::string turned(std::string file, std::size_t piece) {
  const ByteReader reader =
      as_text("v.csv", [&, at = std::size_t{0}](char* to, std::size_t most) mutable {
        const std::size_t part = std::min({most, piece, file.size() - at});
        std::copy_n(file.data() + at, part, to);
        at += part;
        return part;
      });
  std::string text;
  char some[5];
  while (const std::size_t got = reader(some, sizeof some)) text.append(some, got);
  return text;
}

TEST_CASE("csv and JSON lines become text", "[fast]") {
  const std::string header = "# numemu-vectors 1 op=mul from=float16 rounding=sr(8,a)\n";
  for (const std::size_t piece : {1u, 3u, 1000u}) {
    INFO(piece);
    CHECK(turned(header + "3C00 4000 # mixed\n\n// end", piece) ==
          header + "3C00 4000 # mixed\n\n// end");
    CHECK(turned(header + "a,b,out,flags,class\n3C00,4000,4000,00,mixed\r\n1,2,3,4,\n", piece) ==
          header + "\n3C00 4000 4000 00 # mixed\n1 2 3 4\n");
    CHECK(turned("{\"numemu_vectors\":\"# numemu-vectors 1 op=mul\"}\n"
                 "{\"a\" : [\"01\", \"02\"],\"d\":\"3C00\",\"class\": \"ties\"}\n"
                 "{\"a\":[\"01\",\"02\"],\"d\":\"3C00\",\"class\":\"\"}",
                 piece) == "# numemu-vectors 1 op=mul \n01 02 3C00 # ties \n01 02 3C00 ");
    CHECK(turned("{\"numemu_vectors\":\"# x={\\\"y\\\":\\\\}\"}", piece) == "# x={\"y\":\\} ");
    CHECK(turned("", piece).empty());
  }
  CHECK(test::message_of([] { turned("1,2\n{\"a\":\"0\n", 3); }) ==
        "v.csv: line 2: expected the end of a text, found that of the line");
  CHECK_THAT(test::message_of([] { turned(std::string(5 << 20, '0'), 1 << 16); }),
             Catch::Contains("v.csv: line 1: expected at most"));
}

}  // namespace
}  // namespace numemu::oracle
