// Checkpoints of other programs, with numbers computed by hand; tests/packed/checkpoints_test.py
// has whole matrices.
#include "formats/storage/packed/packed_file.hpp"

#include <cstring>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::packed_file_test {
namespace {

using Catch::Contains;
using test::message_of;
using test::TemporaryFolder;

struct Stored {
  std::string name, type, shape, bytes;
};

std::string safetensors(const std::vector<Stored>& tensors) {
  std::string header = "{", data;
  for (const Stored& t : tensors) {
    header += (data.empty() ? "\"" : ",\"") + t.name + R"(":{"dtype":")" + t.type +
              R"(","shape":)" + t.shape + R"(,"data_offsets":[)" + std::to_string(data.size()) +
              "," + std::to_string(data.size() + t.bytes.size()) + "]}";
    data += t.bytes;
  }
  header += "}";
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
std::string words(const std::vector<std::uint32_t>& values) { return raw(values); }
std::string floats(const std::vector<float>& values) { return raw(values); }
std::string bytes(const std::vector<std::uint8_t>& values) { return raw(values); }

/// A file that is opened, or what is wrong with it.
class OneFile {
 public:
  explicit OneFile(const std::vector<Stored>& tensors) : path_(folder_ / "m.safetensors") {
    test::write_file(path_, safetensors(tensors));
  }
  std::vector<float> values(const std::string& name, const std::string& layout = "") const {
    PackedFile file(path_);
    const PackedTensor tensor =
        file.tensor(name, layout.empty() ? nullptr : &find_packed_layout(layout));
    std::vector<float> all(static_cast<std::size_t>(tensor.elements()));
    file.read(tensor, 0, tensor.rows, all.data());
    // By single rows it is the same.
    std::vector<float> row(static_cast<std::size_t>(tensor.length));
    for (std::int64_t r = 0; r < tensor.rows; ++r) {
      file.read(tensor, r, 1, row.data());
      CHECK(std::equal(row.begin(), row.end(), all.begin() + r * tensor.length));
    }
    return all;
  }
  std::string stored(const std::string& name) const {
    return PackedFile(path_).tensor(name).stored;
  }
  std::string message(const std::string& name, const std::string& layout = "") const {
    std::string text = message_of([&] { values(name, layout); });
    CHECK(text.starts_with(path_ + ": "));
    return text.substr(std::min(text.size(), path_.size() + 2));
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

/// A layer of 8 inputs and 8 outputs in one group, 4 bits: code of input k and output n is
/// (k + n) mod 16, the zero point that is stored n, the scale 2^-n.
std::vector<Stored> gptq_layer() {
  std::vector<std::uint32_t> codes(8), zeros(1);
  std::vector<float> scales;
  for (std::uint32_t n = 0; n < 8; ++n) {
    for (std::uint32_t k = 0; k < 8; ++k) codes[n] |= (k + n) % 16 << 4 * k;
    zeros[0] |= n << 4 * n;
    scales.push_back(1 / static_cast<float>(1 << n));
  }
  return {{"fc.qweight", "I32", "[1,8]", words(codes)},
          {"fc.qzeros", "I32", "[1,1]", words(zeros)},
          {"fc.scales", "F32", "[1,8]", floats(scales)}};
}

TEST_CASE("GPTQ: zero points of two versions, groups in an order of their own", "[fast]") {
  std::vector<Stored> layer = gptq_layer();
  const OneFile file(layer);
  const std::vector<float> one = file.values("fc.weight"), two = file.values("fc", "gptq-v2");
  REQUIRE(one.size() == 64);
  for (int n = 0; n < 8; ++n) {
    for (int k = 0; k < 8; ++k) {
      CHECK(one[8 * n + k] == static_cast<float>(k - 1) / static_cast<float>(1 << n));
      CHECK(two[8 * n + k] == static_cast<float>(k) / static_cast<float>(1 << n));
    }
  }
  layer.push_back({"fc.g_idx", "I32", "[8]", words({0, 0, 1, 0, 0, 0, 0, 0})});
  CHECK(OneFile(layer).message("fc") ==
        "tensor 'fc.g_idx': element 2: expected a group of 0..0, found 1");
  layer[3] = {"fc.g_idx", "I32", "[7]", words({0, 0, 0, 0, 0, 0, 0})};
  CHECK(OneFile(layer).message("fc") ==
        "tensor 'fc.g_idx': shape: expected [8] for so many inputs, found [7]");
}

TEST_CASE("GPTQ: without zero points they are the middle of the codes, which the summary says",
          "[fast]") {
  std::vector<Stored> layer = gptq_layer();
  layer[1] = {"fc.g_idx", "I32", "[8]", words({0, 0, 0, 0, 0, 0, 0, 0})};
  const OneFile file(layer);
  const std::vector<float> found = file.values("fc");
  for (int n = 0; n < 8; ++n) {
    for (int k = 0; k < 8; ++k)
      CHECK(found[8 * n + k] == static_cast<float>((k + n) % 16 - 8) / static_cast<float>(1 << n));
  }
  CHECK(file.stored("fc") == "4 bits, 1 groups by g_idx, zero point 8 (no fc.qzeros)");
}

TEST_CASE("GPTQ: stored tensors that contradict", "[fast]") {
  std::vector<Stored> layer = gptq_layer();
  layer[1] = {"fc.qzeros", "I32", "[2,1]", words({0, 0})};
  CHECK(OneFile(layer).message("fc") ==
        "tensor 'fc.qzeros': shape: expected [1, 1] for scales of shape [1, 8], found [2, 1]");
  layer[1] = {"fc.qzeros", "I32", "[1,3]", words({0, 0, 0})};
  CHECK_THAT(OneFile(layer).message("fc"), Contains("'fc.qzeros'") && Contains("[1, 3]"));
  layer = gptq_layer();
  layer[0].type = "F32";
  CHECK(OneFile(layer).message("fc") ==
        "tensor 'fc.qweight': dtype: expected I32 or U32, found F32");
  layer = gptq_layer();
  layer[2].bytes = floats({1, 1, -1, 1, 1, 1, 1, 1});
  CHECK(OneFile(layer).message("fc") ==
        "tensor 'fc.scales': element 2: expected a positive (or zero) and finite scale, found -1");
  layer.pop_back();
  CHECK(OneFile(layer).message("fc") == "tensor 'fc.weight': expected a stored tensor 'fc.scales'");
}

TEST_CASE("AWQ: outputs in words of their own order", "[fast]") {
  // Code of output n is n: places 0 2 4 6 1 3 5 7 of the word.
  const std::uint32_t word = 0x75316420;
  const OneFile file({{"fc.qweight", "I32", "[2,1]", words({word, 0})},
                      {"fc.qzeros", "I32", "[1,1]", words({word})},
                      {"fc.scales", "F32", "[1,8]", floats({1, 1, 1, 1, 1, 1, 1, 2})}});
  std::vector<float> expected;
  for (int n = 0; n < 8; ++n) {
    expected.push_back(0);
    expected.push_back(static_cast<float>(n == 7 ? -14 : -n));
  }
  CHECK(file.values("fc.weight") == expected);
}

TEST_CASE("compressed-tensors: signed codes in words", "[fast]") {
  const Stored codes{"w_packed", "I32", "[1,1]", words({0x00000f80})},
      scale{"w_scale", "F32", "[1,1]", floats({0.5f})},
      shape{"w_shape", "I64", "[2]", raw<std::int64_t>({1, 3})};
  CHECK(OneFile({codes, scale, shape}).values("w") == std::vector<float>{-4, 0, 3.5f});
  const Stored zero{"w_zero_point", "I32", "[1,1]", words({6})};
  CHECK(OneFile({codes, scale, shape, zero}).values("w") == std::vector<float>{-3, 1, 4.5f});
  const Stored wrong{"w_shape", "I64", "[2]", raw<std::int64_t>({1, 17})};
  CHECK(OneFile({codes, scale, wrong}).message("w") ==
        "tensor 'w_packed': shape: expected rows of codes of 2, 4 or 8 bits for a weight of shape "
        "[1, 17], found [1, 1]");
  const Stored huge{"w_shape", "I64", "[2]", raw<std::int64_t>({1, INT64_MAX})};
  CHECK_THAT(OneFile({codes, scale, huge}).message("w"), Contains("expected positive extents"));
}

TEST_CASE("NVFP4 of ModelOpt and of compressed-tensors", "[fast]") {
  // Codes 1 (0.5), 15 (-6), then zeros; the scale 0x38 is 1, 0x40 is 2.
  std::vector<std::uint8_t> codes(16, 0);
  codes[0] = 0xf1, codes[8] = 0xf1;
  const Stored packed{"fc.weight", "U8", "[1,16]", bytes(codes)},
      scales{"fc.weight_scale", "F8_E4M3", "[1,2]", bytes({0x38, 0x40})},
      factor{"fc.weight_scale_2", "F32", "[]", floats({0.25f})};
  std::vector<float> expected(32, 0);
  expected[0] = 0.125f, expected[1] = -1.5f, expected[16] = 0.25f, expected[17] = -3;
  CHECK(OneFile({packed, scales, factor}).values("fc.weight") == expected);
  const Stored other{"fc.weight_packed", "U8", "[1,16]", bytes(codes)},
      divisor{"fc.weight_global_scale", "F32", "[1]", floats({4})},
      input{"fc.input_global_scale", "F32", "[1]", floats({4})};
  const OneFile file({other, scales, divisor, input});
  CHECK(file.values("fc") == expected);
  // A scale of activations is no tensor.
  CHECK(file.values("") == expected);
  const auto refused = [&](const Stored& part) {
    std::vector<Stored> all{packed, scales, factor};
    for (Stored& one : all)
      if (one.name == part.name) one = part;
    return OneFile(all).message("fc.weight");
  };
  CHECK(refused({"fc.weight_scale", "F8_E4M3", "[1,2]", bytes({0x38, 0x7f})}) ==
        "tensor 'fc.weight_scale': element 1: expected a positive (or zero) and finite scale, "
        "found nan");
  CHECK(refused({"fc.weight_scale", "F8_E4M3", "[2,1]", bytes({0x38, 0x38})}) ==
        "tensor 'fc.weight_scale': shape: expected [1, 2] for blocks of 16 of [1, 32], found "
        "[2, 1]");
  for (const float wrong : {0.0f, -1.0f, HUGE_VALF, NAN})
    CHECK_THAT(refused({"fc.weight_scale_2", "F32", "[]", floats({wrong})}),
               Contains("'fc.weight_scale_2': element 0: expected a positive and finite scale"));
  CHECK(OneFile({packed, scales}).message("fc.weight") ==
        "tensor 'fc.weight': expected a stored tensor 'fc.weight_scale_2'");
}

TEST_CASE("MXFP4 in bytes and in blocks of gpt-oss", "[fast]") {
  std::vector<std::uint8_t> codes(16, 0);
  codes[0] = 0x72, codes[15] = 0x90;
  std::vector<float> expected(32, 0);
  expected[0] = 2, expected[1] = 12, expected[31] = -1;
  CHECK(OneFile({{"w", "U8", "[1,16]", bytes(codes)}, {"w_scale", "U8", "[1,1]", bytes({128})}})
            .values("w") == expected);
  for (const std::string dot : {"_", "."}) {
    const OneFile file({{"w" + dot + "blocks", "U8", "[1,1,16]", bytes(codes)},
                        {"w" + dot + "scales", "U8", "[1,1]", bytes({128})}});
    CHECK(file.values("w") == expected);
  }
  CHECK_THAT(
      OneFile({{"w", "U8", "[1,16]", bytes(codes)}, {"w_scale", "U8", "[1,1]", bytes({255})}})
          .message("w"),
      Contains("'w_scale': element 0") && Contains("found nan"));
}

TEST_CASE("floats of 8 bits and int8 under scales of tiles, rows and tensors", "[fast]") {
  const std::string row = bytes({0x38, 0x40}), two = row + row;  // 1, 2
  const auto values = [&](const std::string& shape, const std::string& scales) {
    return OneFile({{"w", "F8_E4M3", "[2,2]", two}, {"w_scale", "F32", shape, scales}}).values("w");
  };
  CHECK(values("[]", floats({3})) == std::vector<float>{3, 6, 3, 6});
  CHECK(values("[2]", floats({3, 5})) == std::vector<float>{3, 6, 5, 10});
  CHECK(values("[2,1]", floats({3, 5})) == std::vector<float>{3, 6, 5, 10});
  CHECK(values("[1,1]", floats({3})) == std::vector<float>{3, 6, 3, 6});
  CHECK(values("[2,2]", floats({1, 2, 3, 4})) == std::vector<float>{1, 4, 3, 8});
  CHECK(OneFile({{"w", "I8", "[2,1]", bytes({0x80, 3})}, {"w_scale", "F32", "[1]", floats({2})}})
            .values("w") == std::vector<float>{-256, 6});
  // Tiles of 128 x 128 that end inside, in each of two matrices.
  std::string codes(2 * 129 * 130, '\x38');
  const OneFile tiles({{"w", "F8_E4M3", "[2,129,130]", codes},
                       {"w_scale_inv", "F32", "[2,2,2]", floats({1, 2, 3, 4, 5, 6, 7, 8})}});
  const std::vector<float> y = tiles.values("w");
  for (int m = 0; m < 2; ++m)
    for (int r = 0; r < 129; ++r)
      for (int c = 0; c < 130; ++c)
        REQUIRE(y[(m * 129 + r) * 130 + c] ==
                static_cast<float>(1 + 4 * m + 2 * (r / 128) + c / 128));
  const OneFile wrong(
      {{"w", "F8_E4M3", "[2,2]", two}, {"w_scale", "F32", "[3]", floats({1, 1, 1})}});
  CHECK(wrong.message("w") ==
        "tensor 'w_scale': shape: expected one scale, or one for rows, groups of rows or tiles of "
        "128 x 128 of [2, 2], found [3]");
  CHECK(OneFile({{"w", "F8_E4M3", "[2,2]", two}, {"w_scale", "F32", "[]", floats({0})}})
            .message("w") ==
        "tensor 'w_scale': element 0: expected a positive and finite scale, found 0");
  CHECK_THAT(OneFile({{"w", "I8", "[1,1]", bytes({1})},
                      {"w_scale", "F32", "[]", floats({1})},
                      {"w_zero_point", "I8", "[]", bytes({1})}})
                 .message("w"),
             Contains("without zero points"));
}

TEST_CASE("floats beside scales are not taken for the weight without being told", "[fast]") {
  const OneFile file({{"fc.weight", "BF16", "[2]", bytes({0x80, 0x3f, 0, 0x40})},
                      {"fc.weight_scale", "F32", "[1]", floats({0.5f})},
                      {"logit", "F32", "[1]", floats({3})},
                      {"logit_scale", "F32", "[1]", floats({4})}});
  CHECK(file.message("fc") ==
        "tensor 'fc.weight': expected codes beside their scales 'fc.weight_scale', found BF16 [2], "
        "which they may scale or not; --packed plain gives the numbers as they are");
  CHECK(file.values("fc", "plain") == std::vector<float>{1, 2});
  CHECK(file.values("fc.weight_scale") == std::vector<float>{0.5f});
  CHECK(file.values("logit") == std::vector<float>{3});
  CHECK_THAT(OneFile({{"w.weight", "F16", "[1]", bytes({0, 0x3c})},
                      {"w.weight_scale_inv", "F32", "[1]", floats({1})}})
                 .message("w"),
             Contains("'w.weight_scale_inv'"));
}

TEST_CASE("names: missing, wrong, and layouts that do not fit", "[fast]") {
  const OneFile file({{"a", "F32", "[2]", floats({1, 2})}, {"b", "F16", "[1]", bytes({0, 0x3c})}});
  CHECK(file.values("a") == std::vector<float>{1, 2});
  CHECK(file.values("b") == std::vector<float>{1});
  CHECK(file.message("") == "expected --tensor NAME, found 2 tensors: 'a', 'b'");
  CHECK(file.message("weights") == "no tensor 'weights'; it has 'a', 'b'");
  CHECK(file.message("a", "gptq") == "tensor 'a': dtype: expected I32 or U32, found F32");
  CHECK(file.message("a", "q4_0") ==
        "tensor 'a': --packed: expected a layout of safetensors files, found q4_0 of GGUF files");
  CHECK(file.message("a", "mxfp4-blocks") == "tensor 'a': dtype: expected U8, found F32");
  CHECK_THAT(OneFile({{"ids", "I64", "[1]", raw<std::int64_t>({1})}}).message("ids"),
             Contains("'ids': expected a layout that is read") && Contains("I64 [1]"));
  CHECK(message_of([] { find_packed_layout("gptqv2"); }) ==
        "unknown layout 'gptqv2'; did you mean 'gptq-v2'?");
}

}  // namespace
}  // namespace numemu::packed_file_test
