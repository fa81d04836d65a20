// Fields of every wire type, packed numbers, and bytes that lie.
#include "emu/net/model/onnx/wire.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::wire_test {
namespace {

using numemu::test::message_of;

const std::string kPath = "f";

TEST_CASE("fields of each wire type come in order with their offsets", "[fast]") {
  const std::string file = test::integer(1, 300) + test::fixed(2, 1.5) + test::bytes(3, "abc") +
                           test::fixed(536'870'911, 2.5f) + test::integer(4, -1);
  WireReader reader(kPath, file);
  WireField field;
  REQUIRE(reader.next(field));
  CHECK(field.number == 1);
  CHECK(reader.integer(field, "x") == 300);
  CHECK(field.offset == 0);
  REQUIRE(reader.next(field));
  CHECK(field.wire == Wire::fixed64);
  CHECK(field.word == 0x3ff8'0000'0000'0000);
  CHECK(field.offset == 3);
  REQUIRE(reader.next(field));
  CHECK(reader.text(field, "x") == "abc");
  CHECK(reader.message(field, "x").offset() == 14);
  REQUIRE(reader.next(field));
  CHECK(field.number == 536'870'911);
  CHECK(reader.float32(field, "x") == 2.5f);
  REQUIRE(reader.next(field));
  CHECK(reader.integer(field, "x") == -1);
  CHECK(!reader.next(field));
  CHECK(!WireReader(kPath, "").next(field));
}

TEST_CASE("repeated numbers are packed or not", "[fast]") {
  const std::string file =
      test::integer(1, 7) + test::bytes(1, test::varint(300) + test::varint(0)) +
      test::fixed(2, 1.0f) + test::bytes(2, test::words(2.0f, 3.0f)) + test::bytes(1, "");
  std::vector<std::uint64_t> integers, floats;
  std::int64_t counted = 0;
  WireReader reader(kPath, file);
  for (WireField field; reader.next(field);) {
    const Wire wire = field.number == 1 ? Wire::varint : Wire::fixed32;
    counted += reader.count(field, wire, "x");
    WireReader::for_each(field, wire, [&](std::uint64_t word) {
      (field.number == 1 ? integers : floats).push_back(word);
    });
  }
  CHECK(counted == 6);
  CHECK(integers == std::vector<std::uint64_t>{7, 300, 0});
  CHECK(floats == std::vector<std::uint64_t>{0x3f80'0000, 0x4000'0000, 0x4040'0000});
}

TEST_CASE("bytes that are no protobuf", "[fast]") {
  const auto message = [](const std::string& file) {
    return message_of([&] {
      WireReader reader(kPath, file);
      for (WireField field; reader.next(field);) {
      }
    });
  };
  CHECK(message("\x80") ==
        "f: byte 0: expected the tag of a field as a varint of 64 bits, found the end of the "
        "message");
  CHECK(message("\x08" + std::string(10, '\xff')) ==
        "f: byte 1: expected a value as a varint of 64 bits, found more bits");
  CHECK(message("\x08" + std::string(9, '\xff') + "\x01").empty());
  CHECK(message("\x08" + std::string(9, '\xff') + "\x02") ==
        "f: byte 1: expected a value as a varint of 64 bits, found more bits");
  CHECK(message(std::string(2, '\0')) ==
        "f: byte 0: expected a field number of 1..2^29-1, found 0");
  CHECK(message(test::varint(std::uint64_t{1} << 32) + "x") ==
        "f: byte 0: expected a field number of 1..2^29-1, found 536870912");
  for (const int wire : {3, 4, 6, 7}) {
    CHECK(message(std::string(1, static_cast<char>(8 | wire))) ==
          "f: byte 0: expected a wire type of 0, 1, 2 or 5, found " + std::to_string(wire));
  }
  CHECK(message("\x0a\x03xy") == "f: byte 2: expected 3 bytes of field 1, found 2");
  CHECK(message("\x0a" + test::varint(~std::uint64_t{0}) + "xy") ==
        "f: byte 11: expected 18446744073709551615 bytes of field 1, found 2");
  CHECK(message("\x09" + std::string(7, 'x')) ==
        "f: byte 1: expected 8 fixed bytes, found 7 bytes");
  CHECK(message("\x0dxyz") == "f: byte 1: expected 4 fixed bytes, found 3 bytes");
}

TEST_CASE("a field of another wire type than the schema's is named", "[fast]") {
  const std::string file = test::integer(1, 5) + test::bytes(2, "abc");
  WireReader reader(kPath, file);
  WireField number, text;
  REQUIRE(reader.next(number));
  REQUIRE(reader.next(text));
  CHECK(message_of([&] { reader.text(number, "the name"); }) ==
        "f: byte 0: expected the name as bytes with a length, found a varint");
  CHECK(message_of([&] { reader.integer(text, "a size"); }) ==
        "f: byte 2: expected a size as a varint, found bytes with a length");
  CHECK(message_of([&] { reader.float32(number, "f"); }) ==
        "f: byte 0: expected f as 4 fixed bytes, found a varint");
  CHECK(message_of([&] { reader.count(text, Wire::fixed32, "floats"); }) ==
        "f: byte 2: expected floats in whole elements of 4 bytes, found 3 bytes");
  CHECK(message_of([&] { reader.count(number, Wire::fixed64, "doubles"); }) ==
        "f: byte 0: expected doubles as bytes with a length, found a varint");
  const std::string open = test::bytes(1, "\x01\x80");
  WireReader packed(kPath, open);
  REQUIRE(packed.next(text));
  CHECK(message_of([&] { packed.count(text, Wire::varint, "ints"); }) ==
        "f: byte 3: expected ints as a varint of 64 bits, found the end of the message");
}

}  // namespace
}  // namespace numemu::net::wire_test
