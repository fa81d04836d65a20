// Headers of GGUF files, and tensors of every type that is read: by hand, and whole matrices in
// tests/packed/checkpoints_test.py.
#include "formats/storage/packed/gguf.hpp"

#include <cstring>

#include "formats/storage/packed/packed_file.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::gguf_test {
namespace {

using Catch::Contains;
using test::message_of;
using test::TemporaryFolder;

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string text(const std::string& value) { return raw(std::uint64_t{value.size()}) + value; }

struct Described {
  std::string name;
  std::vector<std::uint64_t> extents;  ///< fastest first
  std::uint32_t type;
  std::uint64_t offset;
};

std::string described(const std::vector<Described>& tensors) {
  std::string out;
  for (const Described& t : tensors) {
    out += text(t.name) + raw(static_cast<std::uint32_t>(t.extents.size()));
    for (const std::uint64_t extent : t.extents) out += raw(extent);
    out += raw(t.type) + raw(t.offset);
  }
  return out;
}

std::string gguf(const std::vector<Described>& tensors, const std::string& data,
                 const std::string& values = "", std::uint64_t count = 0,
                 std::uint32_t version = 3) {
  std::string out = "GGUF" + raw(version) + raw(std::uint64_t{tensors.size()}) + raw(count) +
                    values + described(tensors);
  out.resize((out.size() + 31) / 32 * 32);
  return out + data;
}

class OneFile {
 public:
  explicit OneFile(const std::string& bytes) : path_(folder_ / "m.gguf") {
    test::write_file(path_, bytes);
  }
  std::vector<float> values(const std::string& name) const {
    PackedFile file(path_);
    const PackedTensor tensor = file.tensor(name);
    std::vector<float> all(static_cast<std::size_t>(tensor.elements()));
    file.read(tensor, 0, tensor.rows, all.data());
    return all;
  }
  std::string message(const std::string& name = "w") const {
    const std::string text = message_of([&] { values(name); });
    CHECK(text.starts_with(path_ + ": "));
    return text.substr(std::min(text.size(), path_.size() + 2));
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

const std::string kHalf = std::string("\x00\x38", 2), kOne = std::string("\x00\x3c", 2),
                  kNan = std::string("\x00\x7e", 2);

TEST_CASE("a header: texts, arrays, alignment, extents fastest first", "[fast]") {
  const std::string values =
      text("general.architecture") + raw(std::uint32_t{8}) + text("mlp") + text("tokens") +
      raw(std::uint32_t{9}) + raw(std::uint32_t{8}) + raw(std::uint64_t{2}) + text("a") +
      text("bc") + text("n") + raw(std::uint32_t{9}) + raw(std::uint32_t{4}) +
      raw(std::uint64_t{2}) + raw(std::uint64_t{7}) + text("general.alignment") +
      raw(std::uint32_t{4}) + raw(std::uint32_t{8}) + text("f") + raw(std::uint32_t{6}) + raw(1.5f);
  std::string file = "GGUF" + raw(std::uint32_t{3}) + raw(std::uint64_t{2}) +
                     raw(std::uint64_t{5}) + values +
                     described({{"w", {2, 1}, 0, 0}, {"b", {1}, 0, 8}});
  file.resize((file.size() + 7) / 8 * 8);
  const OneFile one(file + raw(1.0f) + raw(2.0f) + raw(3.0f));
  CHECK(one.values("w") == std::vector<float>{1, 2});
  CHECK(one.values("b") == std::vector<float>{3});
  const PackedFile opened(one.path());
  CHECK(opened.metadata() ==
        std::vector<std::pair<std::string, std::string>>{{"general.architecture", "mlp"}});
  CHECK(opened.tensor("w").shape == ArrayShape{1, 2});
}

TEST_CASE("an alignment of another type or size is refused where it stands", "[fast]") {
  const std::string key = text("general.alignment");
  const auto refused = [&](const std::string& value) {
    return OneFile(gguf({{"w", {1}, 0, 0}}, raw(1.0f), key + value, 1)).message();
  };
  const std::string expected =
      "byte 24: general.alignment: expected a uint32, a multiple of 8 up to 2^30";
  CHECK(refused(raw(std::uint32_t{8}) + text("32")) == expected);  // a string
  CHECK(refused(raw(std::uint32_t{10}) + raw(std::uint64_t{32})) == expected);
  CHECK(refused(raw(std::uint32_t{4}) + raw(std::uint32_t{0})) == expected);
  CHECK(refused(raw(std::uint32_t{4}) + raw(std::uint32_t{12})) == expected);
  CHECK(refused(raw(std::uint32_t{4}) + raw(~std::uint32_t{0})) == expected);
}

TEST_CASE("blocks by hand", "[fast]") {
  const auto values = [](std::uint32_t type, const std::string& block, std::uint64_t n = 32) {
    return OneFile(gguf({{"w", {n}, type, 0}}, block)).values("w");
  };
  std::string codes(16, '\x88');
  codes[0] = '\x90';  // elements 0 and 16: 0 and 9
  std::vector<float> y = values(2, kHalf + codes);
  CHECK(y[0] == -4);
  CHECK(y[16] == 0.5f);
  CHECK(y[1] == 0);
  y = values(3, kHalf + kOne + codes);
  CHECK(y[0] == 1);
  CHECK(y[16] == 5.5f);
  y = values(6, kHalf + raw(std::uint32_t{1}) + codes);  // a fifth bit of element 0
  CHECK(y[0] == 0);
  CHECK(y[16] == -3.5f);
  y = values(7, kHalf + kOne + raw(std::uint32_t{1U << 16}) + codes);
  CHECK(y[0] == 1);
  CHECK(y[16] == 13.5f);
  y = values(8, kHalf + '\x80' + std::string(31, '\x02'));
  CHECK(y[0] == -64);
  CHECK(y[31] == 1);
  y = values(39, '\x80' + codes);  // scale 2; codes 0 and 9, 8 elsewhere
  CHECK(y[0] == 0);
  CHECK(y[16] == -1);
  CHECK(std::signbit(y[1]));
  // Q4_K: scale 3 and minimum 2 of sub-block 0; 33 and 18 of sub-block 7.
  std::string scales(12, '\0');
  scales[0] = '\x03', scales[4] = '\x02', scales[3] = '\x80', scales[7] = '\x40',
  scales[11] = '\x21';
  std::string super = kHalf + kOne + scales + std::string(128, '\x00');
  super[16] = '\x05', super[16 + 127] = '\x40';
  y = values(12, super, 256);
  CHECK(y[0] == 0.5f * 3 * 5 - 2);
  CHECK(y[1] == -2);
  CHECK(y[255] == 0.5f * 33 * 4 - 18);
  CHECK(y[254] == -18);
  // Q2_K: scale 3 and minimum 2 of the first 16 elements, 15 and 1 of the last.
  super = std::string(80, '\0') + kHalf + kOne;
  super[0] = '\x23', super[15] = '\x1f', super[16] = '\x02', super[16 + 63] = '\xc0';
  y = values(10, super, 256);
  CHECK(y[0] == 0.5f * 3 * 2 - 2);
  CHECK(y[1] == -2);
  CHECK(y[255] == 0.5f * 15 * 3 - 1);
  CHECK(y[239] == 0);
  // Q3_K: scale 37 - 32 of the first 16 elements, 19 - 32 of the last; codes 5, 0, 7 less 4.
  super = std::string(108, '\0') + kHalf;
  super[0] = '\x01', super[32] = '\x01', super[31] = '\x80', super[32 + 63] = '\xc0';
  super[96] = '\x05', super[104] = '\x02', super[103] = '\x30', super[107] = '\x40';
  y = values(11, super, 256);
  CHECK(y[0] == 0.5f * 5 * 1);
  CHECK(y[1] == 0.5f * 5 * -4);
  CHECK(y[255] == 0.5f * -13 * 3);
}

TEST_CASE("GGUF files that lie", "[fast]") {
  const std::string block = kHalf + std::string(16, '\x88');
  const auto said = [](const std::string& bytes) { return OneFile(bytes).message(); };
  CHECK_THAT(said(gguf({{"w", {32}, 2, 0}}, block.substr(1))),
             Contains("tensor 'w': expected 18 bytes at offset 0 of the data, found 17 of data"));
  CHECK_THAT(said(gguf({{"w", {33}, 2, 0}}, block)),
             Contains("shape: expected a last axis of whole blocks of 32 for Q4_0, found [33]"));
  CHECK_THAT(said(gguf({{"w", {16, 2}, 2, 0}}, block)), Contains("whole blocks of 32"));
  CHECK_THAT(said(gguf({{"w", {32}, 2, 4}}, block)), Contains("offset: expected a multiple of 32"));
  CHECK_THAT(said(gguf({{"w", {32}, 2, 0}, {"v", {32}, 2, 0}}, block)),
             Contains("tensor 'v': expected bytes of its own, they overlap tensor 'w'"));
  CHECK_THAT(said(gguf({{"w", {32}, 2, 0}, {"w", {32}, 2, 32}}, block)),
             Contains("expected each name once, found 'w' twice"));
  CHECK_THAT(said(gguf({{"w", {1ULL << 40, 1ULL << 40}, 2, 0}}, block)),
             Contains("fewer than 2^63 elements"));
  CHECK_THAT(said(gguf({{"w", {1ULL << 62}, 0, 0}}, block)), Contains("more than 2^62 bytes"));
  CHECK_THAT(said(gguf({{"w", {1, 1, 1, 1, 1}, 0, 0}}, block)),
             Contains("expected at most 4 axes, found 5"));
  CHECK_THAT(
      said(gguf({{"w", {256}, 15, 0}}, block)),
      Contains("tensor 'w': expected a layout that is read") && Contains("found Q8_K [256]"));
  CHECK_THAT(said(gguf({{"w", {1}, 99, 0}}, block)), Contains("found type 99 [1]"));
  CHECK_THAT(said(gguf({{"w", {32}, 2, 0}}, kNan + std::string(16, '\x88'))),
             Contains("tensor 'w': block 0 at byte") && Contains("expected finite scales"));
  CHECK_THAT(said(gguf({{"w", {32}, 2, 0}}, block, "", 0, 1)),
             Contains("byte 4: expected version 2 or 3 of GGUF, little-endian, found 1"));
  CHECK_THAT(
      said("GGUF" + raw(std::uint32_t{3}) + raw(std::uint64_t{1} << 60) + raw(std::uint64_t{0})),
      Contains("for the tensors"));
  CHECK_THAT(
      said("GGUF" + raw(std::uint32_t{3}) + raw(std::uint64_t{0}) + raw(std::uint64_t{1} << 60)),
      Contains("for the metadata"));
  CHECK_THAT(said("GGUF"), Contains("expected 4 bytes for a number, found 0"));
  // Arrays in arrays.
  std::string nested = text("a") + raw(std::uint32_t{9});
  for (int i = 0; i < 9; ++i) nested += raw(std::uint32_t{9}) + raw(std::uint64_t{1});
  CHECK_THAT(said(gguf({}, "", nested + raw(std::uint32_t{0}) + raw(std::uint64_t{0}), 1)),
             Contains("at most 4 deep"));
  CHECK_THAT(said(gguf({}, "", text("a") + raw(std::uint32_t{13}), 1)),
             Contains("expected a type of values from 0 to 12, found 13"));
}

}  // namespace
}  // namespace numemu::gguf_test
