// Every element type, both orders of bytes and axes, and arrays that do not fit.
#include <cmath>
#include <limits>

#include "emu/net/model/weights.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::npz_test {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;
using test::npy;
using test::packed;
using test::ZipItem;

Checkpoint read(const std::string& file) {
  const TemporaryFolder folder;
  write_file(folder / "x.npz", file);
  return read_npz(folder / "x.npz");
}

std::string message(const std::string& file) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npz";
  write_file(path, file);
  const std::string text = message_of([&] { read_npz(path); });
  return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
}

using Floats = std::vector<float>;

/// The values of one array of `data` with that type and shape.
Floats values(ArrayType type, const ArrayShape& shape, const std::string& data) {
  const Checkpoint checkpoint = read(test::zip({{"w.npy", npy(type, shape, data)}}));
  CHECK(checkpoint.tensors.at(0).value.shape == shape);
  return checkpoint.tensors.at(0).value.data;
}

/// A .npy file with that dictionary.
std::string with_header(const std::string& dictionary, const std::string& data) {
  return std::string("\x93NUMPY\x01\x00", 8) +
         packed(static_cast<std::uint16_t>(dictionary.size())) + dictionary + data;
}

TEST_CASE("tensors in the order of the archive", "[fast]") {
  const Checkpoint checkpoint =
      read(test::zip({{"b/weight.npy", npy(ArrayType::float32, {2, 1}, packed(1.5f, -2.0f)), true},
                      {"a.npy", npy(ArrayType::float32, {}, packed(3.0f))},
                      {"none.npy", npy(ArrayType::float32, {0, 4}, "")}}));
  REQUIRE(checkpoint.tensors.size() == 3);
  CHECK(checkpoint.tensors[0].name == "b/weight");
  CHECK(checkpoint.tensors[0].value.shape == Shape{2, 1});
  CHECK(checkpoint.tensors[0].value.data == Floats{1.5f, -2.0f});
  CHECK(checkpoint.tensors[1].name == "a");
  CHECK(checkpoint.tensors[1].value.shape.empty());
  CHECK(checkpoint.tensors[1].value.data == Floats{3.0f});
  CHECK(checkpoint.tensors[2].value.shape == Shape{0, 4});
  CHECK(checkpoint.metadata.empty());
  CHECK(read(test::zip({})).tensors.empty());
}

TEST_CASE("every type becomes float32 by one rounding", "[fast]") {
  CHECK(values(ArrayType::float16, {2}, packed(std::uint16_t{0x3c00}, std::uint16_t{1})) ==
        Floats{1.0f, std::ldexp(1.0f, -24)});
  // 1 + 2^-24 is a midpoint (to even: 1), the next double above it is not.
  const double midpoint = 1 + std::ldexp(1.0, -24);
  CHECK(values(ArrayType::float64, {3}, packed(midpoint, std::nextafter(midpoint, 2.0), 1e300)) ==
        Floats{1.0f, 1 + std::ldexp(1.0f, -23), std::numeric_limits<float>::infinity()});
  CHECK(values(ArrayType::int8, {2}, packed(std::int8_t{-128}, std::int8_t{127})) ==
        Floats{-128, 127});
  CHECK(values(ArrayType::uint8, {1}, packed(std::uint8_t{255})) == Floats{255});
  CHECK(values(ArrayType::int16, {1}, packed(std::int16_t{-2})) == Floats{-2});
  CHECK(values(ArrayType::uint16, {1}, packed(std::uint16_t{65535})) == Floats{65535});
  CHECK(values(ArrayType::int32, {2}, packed(-3, 16'777'217)) == Floats{-3, 16'777'216});
  CHECK(values(ArrayType::uint32, {1}, packed(0xffff'ffffU)) == Floats{4294967296.0f});
  CHECK(values(ArrayType::int64, {1}, packed(INT64_MIN)) == Floats{-std::ldexp(1.0f, 63)});
  CHECK(values(ArrayType::uint64, {1}, packed(UINT64_MAX)) == Floats{std::ldexp(1.0f, 64)});
}

TEST_CASE("other orders of bytes and axes", "[fast]") {
  const auto only = [](const std::string& file) {
    return read(test::zip({{"w.npy", file}})).tensors.at(0).value.data;
  };
  CHECK(only(with_header("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n",
                         std::string("\x01\x02\xff\xfe", 4))) == Floats{258, -2});
  CHECK(only(with_header("{'descr': '>f2', 'fortran_order': False, 'shape': (2,), }\n",
                         std::string("\x3c\x00\xc0\x00", 4))) == Floats{1, -2});
  // Element [i, j, k] of [2, 3, 2] is 100 i + 10 j + k.
  const std::string columns("\x00\x64\x0a\x6e\x14\x78\x01\x65\x0b\x6f\x15\x79", 12);
  CHECK(only(with_header("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }\n",
                         columns)) == Floats{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121});
  std::string version2 = npy(ArrayType::float32, {1}, packed(2.0f));
  version2[6] = 2;
  version2.insert(10, 2, '\0');  // the length has four bytes
  CHECK(only(version2) == Floats{2});
}

TEST_CASE("entries that are no arrays", "[fast]") {
  const auto entry = [](const std::string& file) { return message(test::zip({{"w.npy", file}})); };
  const std::string good = npy(ArrayType::float32, {2}, packed(1.0f, 2.0f));
  CHECK(message(test::zip({{"archive/data.pkl", "x"}})) ==
        "entry 'archive/data.pkl': expected a name that ends in .npy");
  CHECK(message(test::zip({{"w.npy", good}, {"w.npy", good}})) ==
        "entry 'w.npy': expected each name once");
  CHECK(entry("hello") ==
        "entry 'w.npy': byte 0: expected a .npy file, which begins with \\x93NUMPY and a version");
  CHECK(entry(std::string("\x93NUMPY\x04\x00xxxx", 12)) ==
        "entry 'w.npy': byte 6: expected version 1.0, 2.0 or 3.0, found 4.0");
  CHECK(entry(std::string("\x93NUMPY\x01\x00x", 9)) ==
        "entry 'w.npy': byte 8: expected a header length, found the end");
  CHECK(entry(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13)) ==
        "entry 'w.npy': byte 8: expected a header of at most 1 bytes, found 4294967295 declared");
  CHECK(entry(good + "x") ==
        "entry 'w.npy': byte 128: expected 2 elements of float32 for shape [2], found 9 bytes");
  CHECK(entry(with_header("{'descr': '<f8', 'fortran_order': False, 'shape': "
                          "(4611686018427387904, 4), }\n",
                          "")) ==
        "entry 'w.npy': byte 88: expected more than 2^63 elements of float64 for shape "
        "[4611686018427387904, 4], found 0 bytes");
  CHECK(entry(with_header("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }\n",
                          std::string("\x01\x02", 2)))
            .ends_with("expected a bool, 0 or 1"));
}

TEST_CASE("an archive whose tensors would take too much is refused", "[fast]") {
  // 5 MiB of int8 zeros would become 20 MiB of float32.
  const std::string data(std::size_t{5} << 20, '\0');
  const std::string zeros = npy(ArrayType::int8, {5 << 20}, data);
  CHECK(
      message(test::zip({{"w.npy", zeros, true}})).find("expected contents of at most 64 times") !=
      std::string::npos);
  CHECK(read(test::zip({{"w.npy", zeros}})).tensors.at(0).value.size() == 5 << 20);
}

}  // namespace
}  // namespace numemu::net::npz_test
