// Lines of other programs: one word for each field or each code, either end first, X and Z digits.
#include "emu/oracle/files/foreign.hpp"

#include <algorithm>
#include <cstring>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::oracle::foreign_test {
namespace {

using test::message_of;

/// Gives a text in pieces of 7 bytes.
ByteReader bytes_of(std::string text) {
  return [text = std::move(text), at = std::size_t{0}](char* to, std::size_t most) mutable {
    const std::size_t part = std::min({most, std::size_t{7}, text.size() - at});
    std::memcpy(to, text.data() + at, part);
    at += part;
    return part;
  };
}

Subject four_products() { return unit_subject(unit::find_unit("nvidia.h100.wgmma.e4m3.f32"), 4); }

Records read(const std::string& fields, ElementOrder order, const std::string& text) {
  ForeignReader reader(parse_fields(fields), order, four_products(), "sim.txt", bytes_of(text));
  Records records;
  const bool any = reader.read(100, records);
  CHECK(any);
  return records;
}

constexpr const char* kFields = "a:4xe4m3fn,b:4xe4m3fn,c:f32,d:f32";
using Codes = std::vector<std::uint64_t>;

TEST_CASE("one word for each field, either end first", "[fast]") {
  const std::string text =
      "// a dump\n\n# of a simulator\n04030201 0d0c0b0a 3f800000 40000000 // time 12\n"
      "08070605 11100f0e bf800000 3f000000\n";

  const Records lsb = read(kFields, ElementOrder::lsb, text);
  CHECK(lsb.size == 2);
  CHECK(lsb.columns[0] == Codes{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(lsb.columns[1] == Codes{10, 11, 12, 13, 14, 15, 16, 17});
  CHECK(lsb.columns[2] == Codes{0x3f800000, 0xbf800000});
  CHECK(lsb.columns[3] == Codes{0x40000000, 0x3f000000});
  CHECK(lsb.line == std::vector<std::int64_t>{4, 5});
  const Records msb = read(kFields, ElementOrder::msb, text);
  CHECK(msb.columns[0] == Codes{4, 3, 2, 1, 8, 7, 6, 5});
  CHECK(msb.columns[2] == lsb.columns[2]);
}

TEST_CASE("one word for each code, fields in any order, some skipped", "[fast]") {
  const Records records = read("skip:16,d:f32,b:4xe4m3fn,a:4xe4m3fn", ElementOrder::msb,
                               "0007 40000000 0a 0b 0c 0d 01 02 03 04\n");
  CHECK(records.columns[0] == Codes{1, 2, 3, 4});
  CHECK(records.columns[1] == Codes{10, 11, 12, 13});
  CHECK(records.columns[2] == Codes{0});
  CHECK(records.columns[3] == Codes{0x40000000});
}

TEST_CASE("digits X and Z are kept apart", "[fast]") {
  const Records records = read(kFields, ElementOrder::msb, "040302x1 0d0c0b0a 3f800000 zzzzzzzz\n");
  const Layout layout = layout_of(four_products());
  CHECK(records.has_unknown(layout, 0, 0));
  CHECK(records.unknown[0] == Codes{0, 0, 0, 0xf0});
  CHECK_FALSE(records.has_unknown(layout, 1, 0));
  CHECK(records.has_unknown(layout, 3, 0));
}

TEST_CASE("wrong descriptions are refused by name", "[fast]") {
  const auto refused = [](const std::string& fields) {
    return message_of([&] {
      ForeignReader(parse_fields(fields), ElementOrder::lsb, four_products(), "sim.txt",
                    bytes_of(""));
    });
  };
  CHECK(refused("a4xe4m3fn") == "--fields: 'a4xe4m3fn': expected NAME:[COUNTx]FORMAT");
  CHECK_THAT(refused("q:f32"), Catch::StartsWith("--fields: 'q:f32': expected one of in out a"));
  CHECK_THAT(refused("a:0xe4m3fn"), Catch::Contains("expected a count of 1 to 65536"));
  CHECK_THAT(refused("a:4xe4m3fm"), Catch::Contains("unknown format 'e4m3fm'"));
  CHECK(refused("a:4xe4m3fn,a:f32") == "--fields: 'a': expected each name once");
  CHECK(refused("a:8xe4m3fn,b:8xe4m3fn,d:f32") ==
        "--fields: 'a': 8 x float8_e4m3fn contradicts 4 x float8_e4m3fn");
  CHECK(refused("a:4xe5m2,b:4xe4m3fn,d:f32") ==
        "--fields: 'a': 4 x float8_e5m2 contradicts 4 x float8_e4m3fn");
  CHECK(refused("a:4xe4m3fn,b:4xe4m3fn") ==
        "--fields: 'd': expected this field: 1 codes of float32");
  CHECK(refused("a:4xe4m3fn,b:4xe4m3fn,d:f32,out:f32") ==
        "--fields: 'out': no field of this unit or operation");
}

TEST_CASE("lines of another number of words are refused", "[fast]") {
  const auto refused = [](const std::string& text) {
    return message_of([&] { read(kFields, ElementOrder::lsb, text); });
  };
  CHECK(refused("# none\n1 2 3\n") ==
        "sim.txt: first record: expected 4 words, one for each field, or 10, one for each code; "
        "found 3");
  CHECK(refused("04030201 0d0c0b0a 0 0\n04030201 0d0c0b0a 0\n") ==
        "sim.txt: line 2: expected 4 words (a, b, c, d), found 3");
  CHECK_THAT(refused("0504030201 0d0c0b0a 0 0\n"), Catch::Contains("line 1: a: expected at most"));
}

}  // namespace
}  // namespace numemu::oracle::foreign_test
