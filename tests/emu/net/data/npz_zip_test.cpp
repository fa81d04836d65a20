// Archives stored and deflated, zip64, and archives that lie.
#include "emu/net/data/npz.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::npz_zip_test {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;
using test::packed;
using test::U16;
using test::U32;
using test::U64;
using test::ZipItem;

const std::string kDisagrees = "expected a zip archive whose directory and entries agree, found: ";

/// The contents of every entry as "name=contents;", or what is wrong, after the file's name and
/// without the words of libzip, which depend on its version.
std::string read(const std::string& file) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npz";
  write_file(path, file);
  std::string out;
  const std::string text = message_of([&] {
    ZipReader zip(path);
    for (const ZipEntry& entry : zip.entries()) out += entry.name + "=" + zip.contents(entry) + ";";
  });
  if (text.empty()) return out;
  const std::string wrong = text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
  return wrong.starts_with(kDisagrees) ? kDisagrees : wrong;
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
  CHECK(read(file(std::uint64_t{1} << 62, 24, 1, begin))
            .starts_with("entry 'a': expected contents of at most 64 times the file"));
  CHECK(read(file(~U64{0}, 24, 1, begin)) ==
        "entry 'a': expected a size below 2^63, found 18446744073709551615");
  CHECK(read(file(3, 8, 1, begin)) == kDisagrees);
  CHECK(read(file(3, 24, 50'000'000, begin)) == kDisagrees);
  CHECK(read(file(3, 24, U64{1} << 60, begin)) == kDisagrees);
  CHECK(read(file(3, 24, 1, begin + 1)) == kDisagrees);
  const std::string end = test::end_of_directory(0xffff, 0, 0, "");
  CHECK(read(end) == kDisagrees);
  CHECK(read(std::string(100, 'x') + end) == kDisagrees);
}

TEST_CASE("entries that are refused", "[fast]") {
  const auto changed = [](void (*change)(ZipItem&), bool deflated = false) {
    ZipItem item("a", "xyz", deflated);
    change(item);
    return read(test::zip({item}));
  };
  CHECK(changed([](ZipItem& item) { item.crc ^= 1; }) ==
        "entry 'a': expected 3 bytes, found 'CRC error' after 3");
  CHECK(changed([](ZipItem& item) { item.crc ^= 1; }, true) ==
        "entry 'a': expected 3 bytes, found 'CRC error' after 3");
  CHECK(changed([](ZipItem& item) { item.flags = 1; }) == "entry 'a': expected no encryption");
  CHECK(changed([](ZipItem& item) { item.method = 12; }) ==
        "entry 'a': expected method 0 (stored) or 8 (deflated), found 12");
  CHECK(changed([](ZipItem& item) {
          item.size = 4;
        }).starts_with("entry 'a': expected 4 bytes, found 'Zip archive inconsistent"));
  CHECK(changed([](ZipItem& item) { item.local_name = "b"; }) == kDisagrees);
  CHECK(changed([](ZipItem& item) { item.packed_size = item.size = 200; }) ==
        "entry 'a': expected 200 bytes, found 'Premature end of file' after 72");
  CHECK(changed([](ZipItem& item) { item.extra = packed(U16{1}, U16{9}); }) == kDisagrees);
  CHECK(changed([](ZipItem& item) { item.size = 4; }, true) ==
        "entry 'a': expected 4 bytes, found 3");
  CHECK(changed([](ZipItem& item) { item.size = 2; }, true) ==
        "entry 'a': expected 2 bytes, found more");
  CHECK(changed([](ZipItem& item) { item.packed[0] = '\xff'; }, true)
            .starts_with("entry 'a': expected 3 bytes, found 'Zlib error"));
  CHECK(read(test::zip({{"a", "x"}, {"a", "x"}})) == "entry 'a': expected each name once");
}

TEST_CASE("archives that are refused", "[fast]") {
  const std::string file = test::zip({{"a", "xyz"}});
  CHECK(read("PK\3\4") == kDisagrees);
  CHECK(read(file + "x") == kDisagrees);
  for (std::size_t size = 0; size < file.size(); ++size) {
    INFO(size);
    CHECK(read(file.substr(0, size)) == kDisagrees);
  }
  CHECK(read("x" + file) == kDisagrees);
  const std::string body = file.substr(0, file.size() - 22);
  CHECK(read(body + test::end_of_directory(2, 47, 34, "")) == kDisagrees);
  CHECK(read(body + test::end_of_directory(0, 47, 34, "")) == kDisagrees);
  CHECK(read(body + test::end_of_directory(1, 50, 31, "")) == kDisagrees);
  std::string parts = file;
  parts[parts.size() - 18] = 1;
  CHECK(read(parts).find("expected a zip archive") == 0);
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
  CHECK(read(test::zip({liar})).starts_with("entry 'a': expected contents of at most"));
}

}  // namespace
}  // namespace numemu::net::npz_zip_test
