// Archives stored and deflated, zip64, and archives that lie.
#include "emu/net/model/npz_zip.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;
using test::packed;
using test::U16;
using test::U32;
using test::U64;
using test::ZipItem;

/// The contents of every entry as "name=contents;", or what is wrong, after the file's name.
std::string read(const std::string& file) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npz";
  write_file(path, file);
  std::string out;
  const std::string text = message_of([&] {
    ZipReader zip(path);
    std::string buffer;
    for (const ZipEntry& entry : zip.entries()) {
      out += std::string(entry.name) + "=";
      out += zip.contents(entry, buffer);
      out += ";";
    }
  });
  if (text.empty()) return out;
  return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
}

TEST_CASE("stored and deflated entries in order", "[fast]") {
  const std::string text = "abcabcabcabcabcabcabc";
  CHECK(read(test::zip({{"a", "x"}, {"b", text, true}, {"c", ""}, {"d", "", true}})) ==
        "a=x;b=" + text + ";c=;d=;");
  CHECK(read(test::zip({}, "nothing but PK\5\6 a comment")).empty());
  CHECK(read(test::zip({{"a", "x"}}, std::string(65535, 'c'))) == "a=x;");
}

TEST_CASE("zip64 sizes and directories", "[fast]") {
  ZipItem item("a", "xyz");
  const std::string local = test::local_header(item) + item.packed;
  item.size = item.packed_size = 0xffff'ffff;
  const auto file = [&](U64 size, U16 extra_length, U64 count, U64 begin) {
    item.extra = packed(U16{7}, U16{1}, std::uint8_t{0}, U16{1}, extra_length) +
                 packed(size, size, U64{0}).substr(0, extra_length);
    const std::string directory = test::directory_entry(item, 0xffff'ffff);
    return local + directory +
           packed(U32{0x06064b50}, U64{44}, U16{45}, U16{45}, U32{0}, U32{0}, count, count,
                  U64{directory.size()}, begin) +
           packed(U32{0x07064b50}, U32{0}, U64{local.size() + directory.size()}, U32{1}) +
           test::end_of_directory(0xffff, 0xffff'ffff, 0xffff'ffff, "");
  };
  const U64 begin = local.size();
  CHECK(read(file(3, 24, 1, begin)) == "a=xyz;");
  CHECK(read(file(std::uint64_t{1} << 62, 24, 1, begin)) ==
        "byte 31: expected 4611686018427387904 bytes of data, found 3");
  CHECK(read(file(~U64{0}, 24, 1, begin)) ==
        "byte 90: expected a zip64 field below 2^63, found 18446744073709551615");
  CHECK(read(file(3, 8, 1, begin)) == "byte 98: expected 8 bytes of a zip64 field, found 0");
  CHECK(read(file(3, 24, U64{1} << 60, begin)) ==
        "byte 114: expected at most 1 entries in 80 bytes, found 1152921504606846976");
  CHECK(read(file(3, 24, 1, begin + 1)) ==
        "byte 114: expected the directory to end here, found 80 bytes at byte 35");
  const std::string end = test::end_of_directory(0xffff, 0, 0, "");
  CHECK(read(end) == "byte 0: expected a zip64 directory before, found none");
  CHECK(read(std::string(100, 'x') + end) ==
        "byte 80: expected the zip64 locator (0x07064b50), found 0x78787878");
}

TEST_CASE("entries that are refused", "[fast]") {
  const auto changed = [](void (*change)(ZipItem&), bool deflated = false) {
    ZipItem item("a", "xyz", deflated);
    change(item);
    return read(test::zip({item}));
  };
  CHECK(changed([](ZipItem& item) { item.crc ^= 1; }) ==
        "byte 0: entry 'a': expected contents of CRC 0xeb8eba66, found 0xeb8eba67");
  CHECK(changed([](ZipItem& item) { item.crc ^= 1; }, true) ==
        "byte 0: entry 'a': expected contents of CRC 0xeb8eba66, found 0xeb8eba67");
  CHECK(changed([](ZipItem& item) { item.flags = 1; }) ==
        "byte 34: entry 'a': expected no encryption");
  CHECK(changed([](ZipItem& item) { item.method = 12; }) ==
        "byte 0: entry 'a': expected method 0 (stored) or 8 (deflated), found 12");
  CHECK(changed([](ZipItem& item) { item.size = 4; }) ==
        "byte 0: entry 'a': expected 4 bytes stored as they are, found 3");
  CHECK(changed([](ZipItem& item) { item.local_name = "b"; }) ==
        "byte 0: entry 'a': expected the same name in its local header");
  CHECK(changed([](ZipItem& item) { item.packed_size = item.size = 200; }) ==
        "byte 31: expected 200 bytes of data, found 3");
  CHECK(changed([](ZipItem& item) { item.extra = packed(U16{1}, U16{9}); }) ==
        "byte 85: expected 9 bytes of an extra field, found 0");
  CHECK(changed([](ZipItem& item) { item.size = 4; }, true) ==
        "byte 0: entry 'a': expected 4 bytes deflated to 5, found 3 deflated to 5");
  CHECK(changed([](ZipItem& item) { item.size = 2; }, true) ==
        "byte 0: entry 'a': expected 2 bytes deflated to 5, found more or less");
  CHECK(changed([](ZipItem& item) { item.packed[0] = '\xff'; }, true) ==
        "byte 0: entry 'a': expected 3 bytes deflated to 5, found damage");
}

TEST_CASE("archives that are refused", "[fast]") {
  const std::string file = test::zip({{"a", "xyz"}});
  const std::string none = "expected a zip archive with its directory at the end, found none";
  CHECK(read("") == "byte 0: " + none);
  CHECK(read("PK\3\4") == "byte 4: " + none);
  CHECK(read(file + "x") == "byte 104: " + none);
  for (std::size_t size = 0; size < file.size(); ++size) {
    INFO(size);
    CHECK(read(file.substr(0, size)) == "byte " + std::to_string(size) + ": " + none);
  }
  CHECK(read("x" + file) ==
        "byte 82: expected the directory to end here, found 47 bytes at byte 34");
  const std::string body = file.substr(0, file.size() - 22);
  CHECK(read(body + test::end_of_directory(2, 47, 34, "")) ==
        "byte 81: expected at most 1 entries in 47 bytes, found 2");
  CHECK(read(body + test::end_of_directory(0, 47, 34, "")) ==
        "byte 34: expected the end of the directory, found 47 bytes");
  CHECK(read(body + test::end_of_directory(1, 50, 31, "")) ==
        "byte 31: expected an entry of the directory (0x02014b50), found 0x507a7978");
  std::string parts = file;
  parts[parts.size() - 18] = 1;
  CHECK(read(parts) == "byte 81: expected an archive in one part, found a part of one");
}

TEST_CASE("contents of more than 64 times the file are refused before inflating", "[fast]") {
  constexpr std::size_t kMiB = 1 << 20;
  // 15 MiB of zeros fit (deflated to 15 KiB), 20 MiB do not, nor do 10 MiB twice.
  const ZipItem ten("a", std::string(10 * kMiB, '\0'), true);
  CHECK(read(test::zip({ten})).size() == 10 * kMiB + 3);
  ZipItem again = ten;
  again.name = again.local_name = "b";
  CHECK(read(test::zip({ten, again})).find("expected contents of at most 64 times the file") !=
        std::string::npos);
  ZipItem liar("a", "xyz", true);
  liar.size = 0xf000'0000;
  CHECK(read(test::zip({liar})).starts_with("byte 0: entry 'a': expected contents of at most"));
}

}  // namespace
}  // namespace numemu::net
