// Arrays survive a round trip, foreign orders are converted, and every hostile file is one line.
#include "formats/storage/npy.hpp"

#include <numeric>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::npy_test {
namespace {

using Catch::Contains;
using namespace std::string_literals;

/// A file of that version with the dictionary as written, padded like numpy's.
std::string npy(const std::string& dictionary, const std::string& data, int major = 1) {
  const std::size_t preamble = major == 1 ? 10 : 12;
  std::string text = dictionary;
  text.append(63 - (preamble + text.size()) % 64, ' ');
  text += '\n';
  std::string out = "\x93NUMPY";
  out += static_cast<char>(major);
  out += '\0';
  for (std::size_t byte = 0; byte < preamble - 8; ++byte)
    out += static_cast<char>(text.size() >> 8 * byte & 255);
  return out + text + data;
}

std::string dictionary(const std::string& descr, const std::string& shape,
                       const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

/// Files named x.npy in a folder of their own.
struct Fixture {
  test::TemporaryFolder folder;
  std::string path = folder / "x.npy";

  Array read(const std::string& bytes) const {
    test::write_file(path, bytes);
    return read_npy(path);
  }
  /// The message after "PATH: ".
  std::string message(const std::string& bytes) const {
    const std::string text = test::message_of([&] { read(bytes); });
    return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : "ELSEWHERE: " + text;
  }
};

TEST_CASE("every type survives a round trip with its shape", "[fast]") {
  const Fixture f;
  for (int t = 0; t <= static_cast<int>(ArrayType::float64); ++t) {
    const auto type = static_cast<ArrayType>(t);
    CHECK(parse_array_type(to_string(type)) == type);
    for (const ArrayShape& shape :
         {ArrayShape{}, ArrayShape{5}, ArrayShape{3, 4}, ArrayShape{2, 0, 3}, ArrayShape{0}}) {
      Array array(type, shape);
      for (std::int64_t i = 0; i < array.data.size(); ++i)
        array.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(37 * i + t);
      write_npy(f.path, array);
      const Array again = read_npy(f.path);
      CHECK(again.type == type);
      CHECK(again.shape == shape);
      REQUIRE(again.elements() == *element_count_of(shape));
      CHECK(
          std::equal(again.data.data(), again.data.data() + again.data.size(), array.data.data()));
    }
  }
}

TEST_CASE("a written file is the one numpy writes", "[fast]") {
  const Fixture f;
  const float x[3] = {1, 2, 3};
  write_npy(f.path, ArrayType::float32, {3}, x);
  const std::string bytes = test::read_file(f.path);
  // numpy.save of numpy.float32([1, 2, 3]), numpy 1.24: a preamble of 10 and a header of 118 bytes.
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  CHECK(bytes == std::string("\x93NUMPY\x01\x00\x76\x00", 10) + text +
                     std::string(117 - text.size(), ' ') + "\n" +
                     std::string(reinterpret_cast<const char*>(x), sizeof x));
}

TEST_CASE("versions 1.0, 2.0 and 3.0, keys in any order and spacing", "[fast]") {
  const Fixture f;
  for (const int major : {1, 2, 3}) {
    const Array array = f.read(npy(dictionary("<u2", "(2,)"), std::string("\1\2\3\4"), major));
    CHECK(array.as<std::uint16_t>()[1] == 0x0403);
  }
  const Array array =
      f.read(npy(R"({"shape":(2 , 1),'fortran_order':False,"descr":"|i1"})", "\x01\xff"));
  CHECK(array.type == ArrayType::int8);
  CHECK(array.shape == ArrayShape{2, 1});
  CHECK(array.as<std::int8_t>()[1] == -1);
}

TEST_CASE("numpy's bool is 0 and 1, anything else is refused with its byte", "[fast]") {
  const Fixture f;
  const Array truth = f.read(npy(dictionary("|b1", "(3,)"), "\0\1\1"s));
  CHECK(truth.type == ArrayType::int8);
  CHECK(truth.as<std::int8_t>()[0] == 0);
  CHECK(truth.as<std::int8_t>()[2] == 1);
  CHECK(f.message(npy(dictionary("|b1", "(3,)"), "\0\1\2"s)) ==
        "byte 130: expected a bool, 0 or 1");
}

TEST_CASE("big-endian files are converted", "[fast]") {
  const Fixture f;
  const Array halves = f.read(npy(dictionary(">f2", "(2,)"), "\x12\x34\x56\x78"));
  CHECK(halves.type == ArrayType::float16);
  CHECK(halves.as<std::uint16_t>()[0] == 0x1234);
  CHECK(halves.as<std::uint16_t>()[1] == 0x5678);
  CHECK(f.read(npy(dictionary(">f4", "()"), "\x3f\x80\x00\x01"s)).as<std::uint32_t>()[0] ==
        0x3f800001);
  CHECK(f.read(npy(dictionary(">u8", "(1,)"), "\1\2\3\4\5\6\7\x08")).as<std::uint64_t>()[0] ==
        0x0102030405060708);
}

TEST_CASE("Fortran order is converted", "[fast]") {
  const Fixture f;
  // Element (i, j, k) of shape (2, 3, 2) lies at i + 2 (j + 3 k).
  std::string data(12, '\0');
  std::iota(data.begin(), data.end(), '\0');
  const Array array = f.read(npy(dictionary("|u1", "(2, 3, 2)", "True"), data));
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 2; ++k)
        CHECK(array.as<std::uint8_t>()[(i * 3 + j) * 2 + k] == i + 2 * (j + 3 * k));
    }
  }
  const Array both = f.read(npy(dictionary(">i2", "(2, 2)", "True"), "\0\1\0\2\0\3\0\4"s));
  CHECK(both.as<std::int16_t>()[1] == 3);
  CHECK(both.as<std::int16_t>()[2] == 2);
  CHECK(f.read(npy(dictionary("<f8", "(0, 2)", "True"), "")).elements() == 0);
}

TEST_CASE("sizes are compared with the file before memory is taken", "[fast]") {
  const Fixture f;
  CHECK(f.message(npy(dictionary("<f4", "(4, 4)"), std::string(60, 'x'))) ==
        "byte 128: expected 64 bytes for float32 of shape [4, 4], found 60");
  CHECK(f.message(npy(dictionary("<f4", "(4,)"), std::string(17, 'x'))) ==
        "byte 128: expected 16 bytes for float32 of shape [4], found 17");
  CHECK(f.message(npy(dictionary("<f4", "(1000000000000,)"), "")) ==
        "byte 128: expected 4000000000000 bytes for float32 of shape [1000000000000], found 0");
  CHECK(f.message(npy(dictionary("<f4", "(4611686018427387904, 4)"), "")) ==
        "byte 128: expected more than 2^63 bytes for float32 of shape [4611686018427387904, 4], "
        "found 0");
  CHECK(f.message(npy(dictionary("<f8", "(9223372036854775807,)"), "")) ==
        "byte 128: expected more than 2^63 bytes for float64 of shape [9223372036854775807], "
        "found 0");
  CHECK(f.message(npy(dictionary("<f4", "()"), "")) ==
        "byte 128: expected 4 bytes for float32 of shape [], found 0");
}

TEST_CASE("what is no .npy file", "[fast]") {
  const Fixture f;
  const std::string magic =
      "byte 0: expected a .npy file, which begins with \\x93NUMPY and a version";
  CHECK(f.message("") == magic);
  CHECK(f.message("\x93NUMPY\x01") == magic);
  CHECK(f.message("PK\x03\x04 a zip archive") == magic);
  CHECK(f.message("\x93NUMPY\x04\x01  "s) == "byte 6: expected version 1.0, 2.0 or 3.0, found 4.1");
  CHECK(f.message("\x93NUMPY\x01\x00v"s) == "byte 8: expected a header length of 2 bytes");
  CHECK(f.message("\x93NUMPY\x02\x00v"s) == "byte 8: expected a header length of 4 bytes");
  CHECK(f.message("\x93NUMPY\x01\x00v\x00{'descr'"s) ==
        "byte 10: expected a header of at most 8 bytes, found 118 declared at byte 8");
  CHECK(f.message("\x93NUMPY\x02\x00\xff\xff\xff\xff"s + std::string(70000, ' ')) ==
        "byte 12: expected a header of at most 65535 bytes, found 4294967295 declared at byte 8");
  CHECK(test::message_of([&] { read_npy(f.folder / "none.npy"); }) ==
        (f.folder / "none.npy") + ": cannot open: No such file or directory");
  CHECK(test::message_of([&] { read_npy(f.folder.path()); }) ==
        f.folder.path() + ": expected a regular file");
  CHECK(test::message_of([] { read_npy("/dev/null"); }) == "/dev/null: expected a regular file");
}

TEST_CASE("a failed write names the file", "[fast]") {
  const test::TemporaryFolder folder;
  CHECK_THAT(test::message_of([&] { write_npy(folder / "no/x.npy", ArrayType::uint8, {0}, ""); }),
             Contains("no: no such folder"));
}

}  // namespace
}  // namespace numemu::npy_test
