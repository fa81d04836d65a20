// Files written and read again, their exact bytes, and hostile files.
#include "emu/net/model/safetensors.hpp"

#include <filesystem>

#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net::safetensors_test {
namespace {

using numemu::test::message_of;
using numemu::test::read_file;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;

Tensor ramp(Shape shape) {
  Tensor t(std::move(shape));
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = 0.25f * static_cast<float>(i) - 1.0f;
  return t;
}

Checkpoint example() {
  return {{{"conv.weight", ramp({2, 3, 1, 1})},
           {"conv.bias", ramp({2})},
           {"scalar", ramp({})},
           {"none", ramp({4, 0})}},
          {{"net", "lenet"}, {"data", "glyphs"}}};
}

std::string length(std::uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

/// A file of that header and that many zero bytes of data.
std::string file_of(const std::string& header, std::size_t data) {
  return length(header.size()) + header + std::string(data, '\0');
}

TEST_CASE("every type comes back in file order with its metadata", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  for (const StorageType storage : {StorageType::f32, StorageType::f16, StorageType::bf16}) {
    write_safetensors(path, example(), storage);
    const Checkpoint got = read_safetensors(path), want = example();
    CHECK(got.metadata == decltype(got.metadata){{"data", "glyphs"}, {"net", "lenet"}});
    REQUIRE(got.tensors.size() == want.tensors.size());
    for (std::size_t i = 0; i < want.tensors.size(); ++i) {
      CHECK(got.tensors[i].name == want.tensors[i].name);
      CHECK(got.tensors[i].value.shape == want.tensors[i].value.shape);
      CHECK(got.tensors[i].value.data == want.tensors[i].value.data);
    }
  }
}

TEST_CASE("the bytes of a file are pinned", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(path, {{{"a", ramp({2})}}, {{"z", "1"}, {"b", "2"}}}, StorageType::bf16);
  std::string header =
      R"({"__metadata__":{"b":"2","z":"1"},"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(read_file(path) == length(header.size()) + header + std::string("\x80\xbf\x40\xbf", 4));
  write_safetensors(path, {});
  CHECK(read_file(path) == length(8) + "{}      ");
  CHECK(read_safetensors(path).tensors.empty());
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()),
                      std::filesystem::directory_iterator()) == 1);
}

TEST_CASE("byte strings come back where they are asked for and are refused elsewhere", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  Checkpoint want = example();
  want.bytes = {{"history", std::string("\0\xff odd", 6)}, {"no bytes", ""}};
  write_safetensors(path, want);
  const Checkpoint got = read_safetensors(path, true);
  CHECK(got.tensors.size() == want.tensors.size());
  REQUIRE(got.bytes.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(got.bytes[i].name == want.bytes[i].name);
    CHECK(got.bytes[i].data == want.bytes[i].data);
  }
  CHECK(message_of([&] { read_safetensors(path); }) ==
        path + ": tensor 'history': dtype: expected F32, F16 or BF16, found 'U8'");
  want.bytes.push_back({"scalar", ""});
  CHECK(message_of([&] { write_safetensors(path, want); }) ==
        path + ": expected each name once, found 'scalar' twice");
}

TEST_CASE("what cannot be written", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const auto message = [&](const Checkpoint& checkpoint, StorageType storage = StorageType::f32) {
    return message_of([&] { write_safetensors(path, checkpoint, storage); });
  };
  Tensor large({3});
  large.data[2] = 70000.0f;
  CHECK(message({{{"w", large}}, {}}, StorageType::f16) ==
        path + ": tensor 'w': element 2: expected a value within float16, found 70000");
  large.data.resize(large.data.size() - 1);
  CHECK(message({{{"w", large}}, {}}) ==
        path + ": tensor 'w': expected 3 elements of shape [3], found 2");
  CHECK(message({{{"w", ramp({1})}, {"w", ramp({1})}}, {}}) ==
        path + ": expected each name once, found 'w' twice");
  CHECK(message({{{"__metadata__", ramp({1})}}, {}}) ==
        path + ": expected each name once, found '__metadata__' twice");
  CHECK(message({{}, {{"k", "1"}, {"k", "2"}}}) ==
        path + ": expected each name once, found 'k' twice");
  CHECK(message({{{"\xff", ramp({1})}}, {}}) ==
        path + ": header: expected tensor names and metadata in UTF-8");
  CHECK(!std::filesystem::exists(path));
  CHECK(message_of([&] { write_safetensors(folder / "no/x", {}); }) ==
        (folder / "no") + ": no such folder");
}

TEST_CASE("files that are truncated or lie about their lengths", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const auto message = [&](const std::string& bytes) {
    write_file(path, bytes);
    return message_of([&] { read_safetensors(path); });
  };
  CHECK(message("") == path + ": byte 0: expected a header length of 8 bytes, found 0 bytes");
  CHECK(message("abcdefg") ==
        path + ": byte 0: expected a header length of 8 bytes, found 7 bytes");
  CHECK(message(length(3) + "{}") ==
        path + ": byte 8: expected a header of at most 2 bytes, found 3 declared at byte 0");
  CHECK(message(length(~std::uint64_t{0}) + "{}") ==
        path +
            ": byte 8: expected a header of at most 2 bytes, found 18446744073709551615 declared "
            "at byte 0");
  CHECK(message(length(0)) == path + ": byte 8: expected a JSON header that starts with {");
  CHECK(message(length(2) + "[]") == path + ": byte 8: expected a JSON header that starts with {");
  CHECK(message(file_of("{\"a\"", 0)) ==
        path + ": byte 12: expected a JSON header, found a syntax error");
  write_safetensors(path, example());
  const std::string whole = read_file(path);
  CHECK(message(whole.substr(0, whole.size() - 1)) ==
        path +
            ": tensor 'none': data_offsets: expected an ascending range inside the 35 bytes of "
            "data, found [36, 36]");
  CHECK(message(whole + "x") ==
        path + ": header: expected tensors that cover all 37 bytes of data, found 36");
  CHECK(message_of([&] { read_safetensors(folder.path()); }) ==
        folder.path() + ": expected a regular file");
  CHECK(message_of([&] { read_safetensors(folder / "none"); }) ==
        (folder / "none") + ": cannot open: No such file or directory");
}

}  // namespace
}  // namespace numemu::net::safetensors_test
