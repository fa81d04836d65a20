#include "formats/storage/safetensors.hpp"

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::safetensors_header_test {
namespace {

constexpr char kFile[] = "f";
/// What checkpoints of networks hold.
const std::vector<std::string_view> kAccepted = {"F32", "F16", "BF16"};

std::string message(const std::string& text, std::int64_t data_bytes) {
  return test::message_of([&] { parse_safetensors_header(kFile, text, data_bytes, kAccepted); });
}

/// A header of one tensor "a" of 8 bytes of data.
std::string of_entry(const std::string& entry) { return message(R"({"a":)" + entry + "}", 8); }

TEST_CASE("a header as written by others", "[fast]") {
  const SafetensorsHeader header = parse_safetensors_header(
      kFile,
      R"({ "b":{"shape":[2],"data_offsets":[4,8],"dtype":"F16"}, "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]} }   )",
      8);
  REQUIRE(header.entries.size() == 2);
  CHECK(header.entries[0].name == "a");
  CHECK(header.entries[0].elements == 1);
  CHECK(header.entries[1].name == "b");
  CHECK(header.entries[1].elements == 2);
  CHECK(header.entries[1].type->format == "float16");
}

TEST_CASE("keys of an entry", "[fast]") {
  const std::string at = "f: tensor 'a': ";
  CHECK(of_entry("7") == at + "expected an object");
  CHECK(of_entry(R"({"shape":[2],"data_offsets":[0,8]})") == at + "expected a key dtype");
  CHECK(of_entry(R"({"dtype":"F32","data_offsets":[0,8]})") == at + "expected a key shape");
  CHECK(of_entry(R"({"dtype":"F32","shape":[2]})") == at + "expected a key data_offsets");
  CHECK(of_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})") ==
        at + "expected the keys dtype, shape and data_offsets, found 'x'");
  CHECK(of_entry(R"({"dtype":4,"shape":[2],"data_offsets":[0,8]})") ==
        at + "dtype: expected a string");
  CHECK(of_entry(R"({"dtype":"I64","shape":[1],"data_offsets":[0,8]})") ==
        at + "dtype: expected F32, F16 or BF16, found 'I64'");
  CHECK(of_entry(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})") ==
        at + "shape: expected a list of numbers");
  for (const char* bad :
       {"-2", "2.0", "1e3", "\"2\"", "null", "18446744073709551615", "9223372036854775808"}) {
    CHECK(of_entry(R"({"dtype":"F32","shape":[)" + std::string(bad) +
                   R"(],"data_offsets":[0,8]})") == at + "shape: expected integers of 0..2^63-1");
  }
}

TEST_CASE("offsets of an entry", "[fast]") {
  const std::string at = "f: tensor 'a': data_offsets: ";
  const auto offsets = [](const std::string& text, const std::string& shape) {
    return of_entry(R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + text + "}");
  };
  CHECK(offsets("[0,8]", "[2]").empty());
  CHECK(offsets("[0,8,9]", "[2]") == at + "expected 2 numbers, found 3");
  CHECK(offsets("[0,9]", "[2]") ==
        at + "expected an ascending range inside the 8 bytes of data, found [0, 9]");
  CHECK(offsets("[8,0]", "[2]") ==
        at + "expected an ascending range inside the 8 bytes of data, found [8, 0]");
  CHECK(offsets("[0,8]", "[3]") == at + "expected 12 bytes for F32 of shape [3], found 8");
  CHECK(offsets("[0,8]", "[0,2]") == at + "expected 0 bytes for F32 of shape [0, 2], found 8");
  CHECK(offsets("[0,8]", "[4611686018427387904,4]") ==
        at + "expected more than 2^63 bytes for F32 of shape [4611686018427387904, 4], found 8");
  CHECK(offsets("[0,0]", "[4611686018427387904,4,0]") ==
        "f: header: expected tensors that cover all 8 bytes of data, found 0");
}

TEST_CASE("holes and overlaps", "[fast]") {
  const auto two = [](const std::string& a, const std::string& b) {
    return message(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + a +
                       R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + b + "}}",
                   12);
  };
  CHECK(two("[0,4]", "[8,12]") ==
        "f: tensor 'b': data_offsets: expected to begin at 4 (no hole, no overlap), found 8");
  CHECK(two("[0,4]", "[2,6]") ==
        "f: tensor 'b': data_offsets: expected to begin at 4 (no hole, no overlap), found 2");
  CHECK(two("[4,8]", "[8,12]") ==
        "f: tensor 'a': data_offsets: expected to begin at 0 (no hole, no overlap), found 4");
  CHECK(two("[4,8]", "[0,4]") ==
        "f: header: expected tensors that cover all 12 bytes of data, found 8");
}

TEST_CASE("JSON that a lenient parser would accept", "[fast]") {
  const std::string entry = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(message(R"({"a":)" + entry + R"(,"a":)" + entry + "}", 8) ==
        "f: header: duplicate key 'a'");
  CHECK(of_entry(R"({"dtype":"F32","dtype":"F16","shape":[2],"data_offsets":[0,8]})") ==
        "f: header: duplicate key 'dtype'");
  CHECK(of_entry(R"({"dtype":"F32","shape":[[[[2]]]],"data_offsets":[0,8]})") ==
        "f: header: nested deeper than 3 levels");
  CHECK(message("{" + std::string(1'000'000, '['), 0) ==
        "f: byte 9: expected a JSON header, found a syntax error");
  CHECK(message(R"({"a":)" + std::string(1'000'000, '['), 0) ==
        "f: header: nested deeper than 3 levels");
  CHECK(of_entry(R"({"dtype":"F32","shape":[1e999],"data_offsets":[0,8]})") ==
        "f: header: expected JSON numbers in range");
  CHECK(message("{\"\xff\":1}", 0) == "f: byte 10: expected a JSON header, found a syntax error");
}

TEST_CASE("elements of less than a byte: logical shape and packed size are both checked",
          "[fast]") {
  const auto of = [](const std::string& type, const std::string& shape, int bytes) {
    return test::message_of([&] {
      parse_safetensors_header(kFile,
                               R"({"a":{"dtype":")" + type + R"(","shape":)" + shape +
                                   R"(,"data_offsets":[0,)" + std::to_string(bytes) + "]}}",
                               bytes);
    });
  };
  const std::string at = "f: tensor 'a': ";
  CHECK(of("F4", "[3,4]", 6).empty());
  CHECK(of("F4", "[3,4]", 12) ==
        at + "data_offsets: expected 6 bytes for F4 of shape [3, 4], found 12");
  CHECK(of("F4", "[3,5]", 8) == at + "shape: expected a whole number of bytes, found 15 elements "
                                     "of 4 bits for F4 of shape [3, 5]");
  CHECK(of("F6_E2M3", "[8]", 6).empty());
  CHECK(of("F6_E3M2", "[6]", 5) == at + "shape: expected a whole number of bytes, found 6 elements "
                                        "of 6 bits for F6_E3M2 of shape [6]");
  CHECK(of("F4", "[9223372036854775807,2]", 1) ==
        at + "data_offsets: expected more than 2^63 bytes for F4 of shape [9223372036854775807, "
             "2], found 1");
  CHECK(of("F8_E8M0", "[2,2]", 4).empty());
  CHECK(of("C64", "[2]", 16).empty());
  CHECK(of("F8", "[2]", 2) == at + "dtype: expected one of safetensors 0.6, found 'F8'");
}

TEST_CASE("metadata are strings", "[fast]") {
  CHECK(message(R"({"__metadata__":[]})", 0) == "f: __metadata__: expected an object of strings");
  CHECK(message(R"({"__metadata__":{"k":1}})", 0) == "f: __metadata__: 'k': expected a string");
  CHECK(message(R"({"__metadata__":{"k":"v"}})", 0).empty());
}

TEST_CASE("names in messages stay on one line", "[fast]") {
  CHECK(quote_name("a\nb\"") == "'a\\nb\\\"'");
  CHECK(quote_name(std::string(100, 'x')) == "'" + std::string(80, 'x') + "...'");
}

}  // namespace

}  // namespace numemu::safetensors_header_test
