// Vector files as text: round trips, comments, unknown digits, and errors that name the line.
#include "emu/oracle/files/text.hpp"

#include <algorithm>
#include <cstring>

#include "emu/oracle/evaluate.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::oracle::text_test {
namespace {

/// The bytes of a text, `most` at a time.
ByteReader bytes_of(const std::string& text, std::size_t at_once = 7) {
  return [text, at_once, at = std::size_t{0}](char* to, std::size_t most) mutable {
    const std::size_t n = std::min({most, at_once, text.size() - at});
    std::memcpy(to, text.data() + at, n);
    at += n;
    return n;
  };
}

std::string refusal(const Layout& layout, const std::string& text) {
  return numemu::test::message_of([&] {
    TextReader reader("v.txt", bytes_of(text));
    Records records;
    while (reader.read(layout, 2, records)) {
    }
  });
}

Layout layout_of(const std::string& line) {
  return numemu::oracle::layout_of(parse_header("# numemu-vectors 1 " + line));
}

const std::string kConvert = "op=convert from=float16 to=float32 rounding=rne overflow=ieee";

TEST_CASE("every layout is read as it was written", "[fast]") {
  for (const std::string& line :
       {kConvert, std::string("op=convert from=tfloat32 to=int5 rounding=sr(9) overflow=saturate"),
        std::string("op=dot from=e3m2fn to=float64 rounding=rne overflow=ieee k=5"),
        std::string("unit=nvidia.b200.tcgen05.e2m1.f32.nv16"),
        std::string("unit=nvidia.a100.mma.f16.f32.sp24"),
        std::string("unit=neutral.mac.e5m10.sr8 from=float16 k=4"),
        std::string("unit=intel.emr.vpdpbusds.u8xs8.s32")}) {
    for (const bool packed : {false, true}) {
      INFO(line << " packed " << packed);
      Layout layout = layout_of(line);
      for (Field& f : layout) f.packed = packed;
      constexpr std::int64_t kRecords = 300;
      Records written(layout, kRecords);
      std::uint64_t state = 1;
      for (std::size_t f = 0; f < layout.size(); ++f) {
        for (std::uint64_t& code : written.columns[f]) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          code = state >> (64 - layout[f].bits);
        }
      }
      written.unknown[0].assign(written.columns[0].size(), 0);
      if (layout[0].bits % 4 == 0 || !packed) {
        // A whole digit is unknown or none of it.
        written.unknown[0][3] = layout[0].bits > 3 ? 15 : 1;
        written.columns[0][3] &= ~written.unknown[0][3];
      }
      for (std::int64_t i = 0; i < kRecords; ++i)
        written.class_of[static_cast<std::size_t>(i)] =
            written.class_number(i % 3 == 0   ? "ties"
                                 : i % 3 == 1 ? ""
                                              : "edges");
      std::string text = "# a comment\n\n";
      append_text(layout, written, text);
      TextReader reader("v.txt", bytes_of(text, 1000));
      CHECK(reader.header().empty());
      Records read;
      std::int64_t first = 0;
      while (reader.read(layout, 7, read)) {
        for (std::size_t f = 0; f < layout.size(); ++f) {
          const auto begin = written.columns[f].begin() + first * layout[f].count;
          REQUIRE(std::equal(read.columns[f].begin(), read.columns[f].end(), begin));
        }
        for (std::int64_t i = 0; i < read.size; ++i) {
          REQUIRE(read.class_name(i) == written.class_name(first + i));
          REQUIRE(read.line[static_cast<std::size_t>(i)] == first + i + 3);
          REQUIRE(read.has_unknown(layout, 0, i) == written.has_unknown(layout, 0, first + i));
        }
        first += read.size;
      }
      CHECK(first == kRecords);
    }
  }
}

TEST_CASE("a record as TestFloat prints it, and as users do", "[fast]") {
  const Layout layout = layout_of(kConvert);
  TextReader reader("v.txt",
                    bytes_of("# numemu-vectors 1 " + kConvert +
                             "\r\n3C00 3F800000 00\r\n  3c00\t3f80_0000 0 // mine\n// none\n"
                             "7BFF XXXXzz00 1F # edges or so\n8001 B3800000 00#tiny"));
  CHECK(header_line(parse_header(reader.header())) ==
        "# numemu-vectors 1 " + kConvert + " seed=0 level=1 style=mixed");
  Records r;
  REQUIRE(reader.read(layout, 100, r));
  REQUIRE(r.size == 4);
  CHECK(r.line == std::vector<std::int64_t>{2, 3, 5, 6});
  CHECK(r.columns[0] == std::vector<std::uint64_t>{0x3c00, 0x3c00, 0x7bff, 0x8001});
  CHECK(r.columns[1] == std::vector<std::uint64_t>{0x3f800000, 0x3f800000, 0, 0xb3800000});
  CHECK(r.unknown[1] == std::vector<std::uint64_t>{0, 0, 0xffffff00, 0});
  CHECK(r.columns[2] == std::vector<std::uint64_t>{0, 0, 0x1f, 0});
  CHECK(r.class_name(2) == "edges");
  CHECK(r.class_name(3) == "tiny");
  std::string text;
  append_text(layout, r, text);
  CHECK(text ==
        "3C00 3F800000 00\n3C00 3F800000 00\n7BFF XXXXXX00 1F # edges\n8001 B3800000 00 # tiny\n");
  CHECK_FALSE(reader.read(layout, 100, r));
}

TEST_CASE("flags may be left out, of all records alike", "[fast]") {
  const Layout layout = layout_of(kConvert);
  TextReader reader("v.txt", bytes_of("3C00 3F800000\n0000 00000000\n"));
  Records r;
  REQUIRE(reader.read(layout, 100, r));
  CHECK_FALSE(reader.has_optional());
  CHECK(r.size == 2);
  CHECK(refusal(layout, "3C00 3F800000\n0000 00000000 00\n") ==
        "v.txt: line 2: expected 2 words (in, out), found 3");
}

TEST_CASE("wrong records are refused with their line", "[fast]") {
  const Layout layout = layout_of(kConvert);
  CHECK(refusal(layout, "") == "");
  CHECK(refusal(layout, "\n\n3C00 3F800000 00 1\n") ==
        "v.txt: line 3: expected 3 words (in, out, flags), found 4");
  CHECK(refusal(layout, "13C00 3F800000 00") ==
        "v.txt: line 1: in: expected at most 4 digits, found '13C00'");
  CHECK(refusal(layout, "3G00 3F800000 00") ==
        "v.txt: line 1: in: expected hexadecimal digits, found '3G00'");
  CHECK(refusal(layout, "___ 3F800000 00") ==
        "v.txt: line 1: in: expected hexadecimal digits, found '___'");
  CHECK(refusal(layout_of("op=convert from=tfloat32 to=float32 rounding=rne overflow=ieee"),
                "80000 00000000 00") ==
        "v.txt: line 1: in: expected a code of 19 bits, found '80000'");
  CHECK(refusal(layout, "3C00 " + std::string(5000, ' ') + "3F800000 00")
            .find("v.txt: line 1: expected at most ") == 0);
  CHECK(refusal(layout, "# " + std::string(100000, 'x')).find("v.txt: line 1: expected at most ") ==
        0);
}

std::string turned(const std::string& file, std::size_t piece) {
  const ByteReader reader = as_text("v.csv", bytes_of(file, piece));
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
}  // namespace numemu::oracle::text_test
