// Codes survive every way of being stored; file, sidecar and arguments must agree.
#include "formats/storage/codes_file.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "formats/convert.hpp"
#include "formats/random.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/safetensors.hpp"
#include "formats/storage/sidecar.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::codes_file_test {
namespace {

/// Every element some code of the format, in its container.
Array random_codes(const Format& f, const ArrayShape& shape) {
  Array array(container_type(f), shape);
  const RandomSource source{.seed = 5};
  const int bytes = bytes_of(array.type);
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const auto at = 2 * static_cast<std::uint64_t>(i);
    const std::uint64_t word =
        static_cast<std::uint64_t>(source.bits(at, 32)) << 32 | source.bits(at + 1, 32);
    const std::uint64_t code = (word >> (64 - f.bits)) % f.last_code() << f.container_shift;
    std::memcpy(array.data.data() + i * bytes, &code, static_cast<std::size_t>(bytes));
  }
  return array;
}

void check_equal(const Codes& read, const Format& f, const Array& codes) {
  CHECK(read.format == &f);
  CHECK(read.array.type == codes.type);
  CHECK(read.array.shape == codes.shape);
  REQUIRE(read.array.data.size() == codes.data.size());
  CHECK(
      std::equal(codes.data.data(), codes.data.data() + codes.data.size(), read.array.data.data()));
}

TEST_CASE("every named format in a .npy file, packed where it can be", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.npy";
  for (const Format* f : named_formats()) {
    CAPTURE(f->name);
    CHECK(bytes_of(container_type(*f)) == container_bytes(*f));
    for (const ArrayShape& shape : {ArrayShape{3, 5}, ArrayShape{2, 0}, ArrayShape{}}) {
      const Array codes = random_codes(*f, shape);
      for (const bool packed : {false, true}) {
        if (packed && f->bits > 8) continue;
        write_codes(path, *f, shape, codes.data.data(), {.numemu = "1", .packed = packed});
        check_equal(read_codes(path, {}), *f, codes);
        check_equal(read_codes(path, {.format = f, .packed = packed}), *f, codes);
      }
    }
  }
}

TEST_CASE("every format that safetensors has", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.safetensors";
  for (const std::string_view name : safetensors_code_types()) {
    const Format& f = find_format(safetensors_type(name)->format);
    const Array codes = random_codes(f, {3, 8});
    write_codes(path, f, codes.shape, codes.data.data(), {.numemu = "1"}, "w");
    check_equal(read_codes(path, {.format = &f, .tensor = "w"}), f, codes);
    InputFile file(path);
    const StoredTensor stored = read_safetensors_tensor(file, "");
    CHECK(stored.type->name == name);
    CHECK(stored.data.size() == 3 * f.bits);
  }
  pending_sidecar(path, {.numemu = "1", .logical_shape = ArrayShape{4, 6}}).commit();
  CHECK(test::message_of([&] { read_codes(path, {}); }) ==
        path + ": shape: expected the logical_shape [4, 6] in " + path + ".json, found [3, 8]");
  CHECK(test::message_of([&] {
          write_codes(path, find_format("int4"), {2}, "\1\2",
                      {.numemu = "1", .order = BitOrder::high_first});
        }) == path + ": expected the order low-first in safetensors");
}

TEST_CASE("equivalent dtypes are taken, others are not", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.npy";
  const std::uint32_t one = 0x3f800000;
  write_npy(path, ArrayType::uint32, {1}, &one);
  CHECK(read_codes(path, {.format = &find_format("float32")}).array.type == ArrayType::float32);
  const std::uint16_t half = 0x3c00;
  write_npy(path, ArrayType::float16, {1}, &half);
  CHECK(read_codes(path, {.format = &find_format("float16")}).array.type == ArrayType::uint16);
  CHECK(test::message_of([&] { read_codes(path, {.format = &find_format("bfloat16")}); }) ==
        path + ": dtype: expected uint16 codes of bfloat16, found float16");
  const std::int64_t wide = 1;
  write_npy(path, ArrayType::int64, {1}, &wide);
  CHECK(test::message_of([&] { read_codes(path, {.format = &find_format("float64")}); }) ==
        path + ": dtype: expected float64 or uint64 codes of float64, found int64");
}

TEST_CASE("sign-extended integers become zero-extended codes", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.npy";
  const std::int8_t integers[4] = {-1, -8, 7, 0};
  write_npy(path, ArrayType::int8, {4}, integers);
  const Codes codes = read_codes(path, {.format = &find_format("int4")});
  const std::uint8_t want[4] = {0xf, 0x8, 0x7, 0};
  CHECK(codes.array.type == ArrayType::uint8);
  CHECK(std::memcmp(codes.array.data.data(), want, 4) == 0);
  CHECK(test::message_of([&] { read_codes(path, {.format = &find_format("int3")}); }) ==
        path + ": element 1: expected a code of int3 within -4..3, found -8");
  const std::int16_t wide[3] = {-1, -2048, 2047};
  write_npy(path, ArrayType::int16, {3}, wide);
  const Codes twelve = read_codes(path, {.format = &find_format("int12")});
  CHECK(twelve.array.type == ArrayType::uint16);
  CHECK(twelve.array.as<std::uint16_t>()[0] == 0xfff);
  CHECK(twelve.array.as<std::uint16_t>()[1] == 0x800);
  CHECK(read_codes(path, {.format = &find_format("int16")}).array.as<std::uint16_t>()[1] == 0xf800);
  CHECK_THROWS_WITH(read_codes(path, {.format = &find_format("int32")}),
                    path + ": dtype: expected uint32 or int32 codes of int32, found int16");
  CHECK(test::message_of([&] { read_codes(path, {.format = &find_format("int10")}); }) ==
        path + ": element 1: expected a code of int10 within -512..511, found -2048");

  const std::int32_t words[3] = {-1, INT32_MIN, INT32_MAX};
  write_npy(path, ArrayType::int32, {3}, words);
  const Codes of_words = read_codes(path, {.format = &find_format("int32")});
  CHECK(of_words.array.type == ArrayType::uint32);
  CHECK(of_words.array.as<std::uint32_t>()[1] == 0x80000000);
  const std::int64_t longs[3] = {-1, INT64_MIN, INT64_MAX};
  write_npy(path, ArrayType::int64, {3}, longs);
  CHECK(read_codes(path, {.format = &find_format("int64")}).array.as<std::uint64_t>()[1] ==
        std::uint64_t{1} << 63);
}

TEST_CASE("hostile packed shapes", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.npy";
  const Format& f = find_format("float4_e2m1fn");
  const auto message = [&] { return test::message_of([&] { read_codes(path, {&f, true}); }); };
  write_npy(path, ArrayType::uint8, {}, "\1");
  CHECK(message() == path + ": shape: expected packed rows, found a scalar");
  write_npy(path, ArrayType::uint8, {0, std::int64_t{1} << 62}, "");
  CHECK(message() == path +
                         ": shape: expected packed rows of at most 9007199254740992 bytes, found "
                         "4611686018427387904");
  write_npy(path, ArrayType::uint8, {2}, "\x21\x43");
  pending_sidecar(path, {.numemu = "1",
                         .logical_shape = ArrayShape{std::int64_t{1} << 53, std::int64_t{1} << 53}})
      .commit();
  CHECK_THAT(message(), Catch::StartsWith(path + ": shape: expected packed rows of 4 bits of the"));
  pending_sidecar(path, {.numemu = "1", .logical_shape = ArrayShape{std::int64_t{1} << 53, 0}})
      .commit();
  CHECK_THAT(message(), Catch::StartsWith(path + ": shape: expected packed rows of 4 bits of the"));
}

TEST_CASE("numbers: floats without a format, codes with one", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  const float x[2] = {1, 2};
  write_npy(path, ArrayType::float32, {2}, x);
  CHECK(read_numbers(path, {}).format == &find_format("float32"));
  const std::uint8_t codes[2] = {0x38, 0xb8};
  write_npy(path, ArrayType::uint8, {2}, codes);
  CHECK_THAT(test::message_of([&] { read_numbers(path, {}); }),
             Catch::StartsWith(path + ": dtype: expected float16 or float32 or float64 numbers"));
  CHECK(read_numbers(path, {.format = &find_format("e4m3fn")}).array.elements() == 2);
  pending_sidecar(path, {.numemu = "1", .format = "e5m2"}).commit();
  CHECK(read_numbers(path, {}).format == &find_format("float8_e5m2"));
  CHECK(test::message_of([&] { read_numbers(path, {.format = &find_format("e4m3fn")}); }) ==
        path + ".json: format: 'float8_e5m2' contradicts --format 'float8_e4m3fn'");
  CHECK(test::message_of([&] {
          read_numbers(path, {.format = &find_format("e4m3fn"), .told_by = "unit u, which takes"});
        }) ==
        path + ".json: format: 'float8_e5m2' contradicts unit u, which takes 'float8_e4m3fn'");
  Array y(ArrayType::float32, {2});
  std::memcpy(y.data.data(), x, sizeof x);
  write_numbers(path, find_format("float32"), y);
  CHECK_FALSE(read_sidecar(path).has_value());
}

std::string write_codebook(const test::TemporaryFolder& folder, const std::string& name,
                           const std::vector<double>& entries) {
  write_npy(folder / name, ArrayType::float64, {static_cast<std::int64_t>(entries.size())},
            entries.data());
  return "codebook(" + (folder / name) + ")";
}

TEST_CASE("a codebook is known by its entries, not by its path", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.npy";
  const std::string one = write_codebook(folder, "one.npy", {-1, 0, 1, 2}),
                    same = write_codebook(folder, "same.npy", {-1, -0.0, 1, 2}),
                    other = write_codebook(folder, "other.npy", {-1, 0, 1, 3});
  const Format& f = find_format(one);
  const std::uint8_t codes[4] = {3, 0, 1, 2};
  write_codes(path, f, {4}, codes, {.numemu = "1"});
  const std::string digest = codebook_sha256(f);
  CHECK(read_sidecar(path)->codebook_sha256 == digest);
  CHECK(codebook_sha256(find_format(same)) == digest);
  CHECK(codebook_sha256(find_format("int8")).empty());
  CHECK(read_codes(path, {}).format->name == one);
  CHECK(read_codes(path, {.format = &find_format(same)}).format->name == same);
  const Format& wrong = find_format(other);
  CHECK(test::message_of([&] { read_codes(path, {.format = &wrong}); }) ==
        path + ".json: format: '" + one + "' of codebook_sha256 " + digest +
            " contradicts --format '" + other + "' of codebook_sha256 " + codebook_sha256(wrong));
  const Format& int4 = find_format("int4");
  CHECK(test::message_of([&] { read_codes(path, {.format = &int4}); }) ==
        path + ".json: format: '" + one + "' contradicts --format 'int4'");
  // Other entries under the old path.
  const std::string was = write_codebook(folder, "one.npy", {-1, 0, 1, 3});
  CHECK(test::message_of([&] { read_codes(path, {}); }) ==
        path + ".json: codebook_sha256: expected " + digest + ", found " + codebook_sha256(wrong) +
            " in " + (folder / "one.npy"));
  // Nothing under the old path: only the caller's codebook is opened.
  std::filesystem::remove(folder / "one.npy");
  CHECK(read_codes(path, {.format = &find_format(same)}).format->name == same);
  CHECK_THAT(test::message_of([&] { read_codes(path, {}); }),
             Catch::StartsWith(path + ".json: format: " + (folder / "one.npy") + ": "));
}

TEST_CASE("an error that comes from the sidecar names it", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "q.npy";
  const float number = 1;
  const auto refused = [&](const std::string& json) {
    test::write_file(path + ".json", json);
    return test::message_of([&] { read_codes(path, {}); });
  };
  const std::string said = " (from " + path + ".json)";
  write_npy(path, ArrayType::float32, {1}, &number);
  CHECK(refused(R"({"numemu":"1","format":"float4_e2m1fn"})") ==
        path + ": dtype: expected uint8 codes of float4_e2m1fn" + said + ", found float32");
  CHECK(refused(R"({"numemu":"1","format":"float4_e2m1fn","packed":true})") ==
        path + ": dtype: expected uint8 packed codes of float4_e2m1fn" + said + ", found float32");
  CHECK(refused(R"({"numemu":"1","format":"bfloat16","packed":true})") ==
        path + ".json: packed: codes of 16 bits cannot be packed: expected 1 to 8 bits");
  const std::uint8_t code = 0x17;
  write_npy(path, ArrayType::uint8, {1}, &code);
  CHECK(refused(R"({"numemu":"1","format":"float4_e2m1fn"})") ==
        path + ": element 0: expected a code of float4_e2m1fn" + said +
            " within 0..0xf, found 0x17");
  CHECK(refused(R"({"numemu":"1","format":"float4_e2m1fn","packed":true,"logical_shape":[1]})") ==
        path + ": row 0: expected zeros after its 1 code of 4 bits" + said);
  // A mistake in the arguments is reported as such.
  std::filesystem::remove(path + ".json");
  CHECK(test::message_of([&] { read_codes(path, {.format = &find_format("bfloat16")}); }) ==
        path + ": dtype: expected uint16 codes of bfloat16, found uint8");
}

}  // namespace
}  // namespace numemu::codes_file_test
