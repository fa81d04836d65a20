// Records of arrays: every field of its type and shape, and what is refused by name.
#include "emu/oracle/files/array_reader.hpp"

#include <cstring>

#include "emu/oracle/record.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::oracle::array_reader_test {
namespace {

using Arrays = std::map<std::string, Array>;

template <class T>
Array array(ArrayType type, const ArrayShape& shape, const std::vector<T>& values) {
  Array made(type, shape);
  REQUIRE(made.data.size() == static_cast<std::int64_t>(values.size() * sizeof(T)));
  std::memcpy(made.data.data(), values.data(), values.size() * sizeof(T));
  return made;
}

Array text(const std::string& bytes, ArrayShape shape) {
  return array(ArrayType::uint8, shape, std::vector<char>(bytes.begin(), bytes.end()));
}

const std::string kLine = "# numemu-vectors 1 unit=intel.emr.vpdpbusds.u8xs8.s32 k=2";

/// Three records of two products.
Arrays integers() {
  Arrays all;
  all["a"] = array<std::uint8_t>(ArrayType::uint8, {3, 2}, {1, 2, 3, 4, 5, 255});
  all["b"] = array<std::int8_t>(ArrayType::int8, {3, 2}, {-1, 2, -3, 4, 5, -128});
  all["c"] = array<std::int32_t>(ArrayType::int32, {3}, {0, -7, 1 << 30});
  all["d"] = array<std::int32_t>(ArrayType::int32, {3, 1}, {3, -1, -9});
  all["class"] = text(std::string("ties\0edges\x01", 11) + '\0', {3, 4});
  all["numemu_vectors"] = text(kLine, {static_cast<std::int64_t>(kLine.size())});
  return all;
}

TEST_CASE("arrays are read as records, in pieces", "[fast]") {
  ArrayReader reader("v.npz", integers());
  CHECK(reader.header() == kLine);
  CHECK(reader.depth() == 2);
  CHECK_FALSE(reader.has_optional());
  const Layout layout = layout_of(parse_header(reader.header()));
  Records records;
  REQUIRE(reader.read(layout, 2, records));
  CHECK(records.columns[0] == std::vector<std::uint64_t>{1, 2, 3, 4});
  CHECK(records.columns[1] == std::vector<std::uint64_t>{0xff, 2, 0xfd, 4});
  CHECK(records.columns[2] == std::vector<std::uint64_t>{0, 0xfffffff9});
  CHECK(records.columns[3] == std::vector<std::uint64_t>{3, 0xffffffff});
  CHECK(records.class_name(0) == "ties");
  CHECK(records.class_name(1) == "");
  CHECK(records.line == std::vector<std::int64_t>{0, 1});
  REQUIRE(reader.read(layout, 2, records));
  CHECK(records.size == 1);
  CHECK(records.code(3, 0) == 0xfffffff7);
  CHECK(records.line == std::vector<std::int64_t>{2});
  CHECK_FALSE(reader.read(layout, 2, records));
}

TEST_CASE("arrays that are no records are refused by name", "[fast]") {
  const Layout layout = layout_of(parse_header(kLine));
  const auto refusal = [&](const std::string& name, Array changed) {
    Arrays all = integers();
    all[name] = std::move(changed);
    return test::message_of([&] {
      ArrayReader reader("v.npz", std::move(all));
      Records records;
      reader.read(layout, 2, records);
    });
  };
  const auto bytes = [](const ArrayShape& shape) {
    Array all(ArrayType::uint8, shape);
    std::memset(all.data.data(), 0, static_cast<std::size_t>(all.data.size()));
    return all;
  };
  CHECK(refusal("a", bytes({3, 4})) == "v.npz: a: shape: expected [records, 2], found [3, 4]");
  CHECK(refusal("a", bytes({3})) == "v.npz: a: shape: expected [records, 2], found [3]");
  CHECK(refusal("b", bytes({2, 2})) == "v.npz: b: shape: expected 3 records, as a has, found 2");
  CHECK(refusal("d", bytes({3})) == "v.npz: d: dtype: expected int32, found uint8");
  CHECK_THAT(refusal("a", array<float>(ArrayType::float32, {3, 2}, {0, 0, 0, 0, 0, 0})),
             Catch::StartsWith("v.npz: a: dtype: expected uint8 codes of uint8, found float32"));
  CHECK_THAT(refusal("D", bytes({3})), Catch::StartsWith("v.npz: unknown array 'D'"));
  CHECK_THAT(refusal("class", bytes({3})),
             Catch::StartsWith("v.npz: class: expected byte strings, one for each of 3 records"));
  CHECK_THAT(refusal("numemu_vectors", text("numemu", {6})),
             Catch::StartsWith("v.npz: numemu_vectors: expected the text '# numemu-vectors 1"));
  Arrays none = integers();
  none.erase("d");
  CHECK(test::message_of([&] {
          ArrayReader reader("v.npz", std::move(none));
          Records records;
          reader.read(layout, 2, records);
        }) == "v.npz: expected an array 'd', found none");
}

TEST_CASE("numbers that are no codes keep within their bits", "[fast]") {
  const Layout layout = {{.name = "in", .bits = 8, .format = &find_format("int8")},
                         {.name = "random", .bits = 5},
                         {.name = "d", .bits = 12}};
  const auto read = [&](std::uint8_t random, std::int16_t d) {
    Arrays all;
    all["in"] = array<std::uint8_t>(ArrayType::uint8, {1}, {7});
    all["random"] = array<std::uint8_t>(ArrayType::uint8, {1}, {random});
    all["d"] = array<std::int16_t>(ArrayType::int16, {1}, {d});
    Records records;
    const std::string message = test::message_of([&] {
      ArrayReader reader("v.npz", std::move(all));
      reader.read(layout, 2, records);
    });
    return message.empty() ? std::to_string(records.code(2, 0)) : message;
  };
  CHECK(read(31, 2047) == "2047");
  CHECK(read(31, -2048) == "2048");
  CHECK(read(32, 0) == "v.npz: random: element 0: expected a number of 5 bits, found 0x20");
  CHECK(read(0, 2048) == "v.npz: d: element 0: expected a number of 12 bits, found 0x800");
  CHECK(read(0, -2049) == "v.npz: d: element 0: expected a number of 12 bits, found 0xf7ff");
}

}  // namespace
}  // namespace numemu::oracle::array_reader_test
