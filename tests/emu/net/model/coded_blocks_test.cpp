#include "emu/net/model/coded_blocks.hpp"

#include <cmath>
#include <map>

#include "formats/error.hpp"
#include "formats/format.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::net::coded_blocks_test {
namespace {

using Catch::Contains;
using numemu::test::message_of;

/// A file's tensors as numbers, and metadata.
struct Stored {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  Tensor decoded() const {
    return decoded_blocks(
        "f.safetensors", "fc.weight",
        [&](const std::string& key) {
          const auto found = metadata.find(key);
          return found == metadata.end() ? nullptr : &found->second;
        },
        [&](const std::string& name) {
          const auto found = tensors.find(name);
          if (found == tensors.end()) throw Error("no tensor " + name);
          return found->second;
        });
  }
};

Tensor tensor(Shape shape, std::vector<float> values) {
  Tensor out(shape);
  out.data = {values.begin(), values.end()};
  return out;
}

/// Two lines of 34 elements of MXFP4: the codes 1 and 2 (0.5 and 1) in every byte, scales 1 and 4.
Stored mxfp4() {
  Stored stored;
  stored.metadata["fc.weight_blocks"] = "mxfp4";
  stored.tensors["fc.weight"] = tensor({2, 17}, std::vector<float>(34, 0x21));
  stored.tensors["fc.weight_scale"] = tensor({2, 2}, {127, 129, 126, 127});
  return stored;
}

TEST_CASE("codes of four bits lie two in a byte, the first in the low half", "[fast]") {
  const Tensor weight = mxfp4().decoded();
  REQUIRE(weight.shape == Shape{2, 34});
  const float scales[] = {1, 4, 0.5f, 1};
  for (std::int64_t i = 0; i < weight.size(); ++i) {
    const std::int64_t line = i / 34, block = i % 34 / 32;
    CHECK(weight.data[i] == (i % 2 == 0 ? 0.5f : 1.0f) * scales[line * 2 + block]);
  }
}

TEST_CASE("the tensors of a weight are those that are decoded", "[fast]") {
  OnnxOperand operand;
  operand.format = &find_format("float4_e2m1fn");
  for (std::uint16_t i = 0; i < 64; ++i) operand.codes.push_back(i % 16);
  operand.scales = {2, 1, 0.5f, 4};
  operand.blocks = OnnxBlocks{.format = &find_block_format("nvfp4"),
                              .line = 32,
                              .size = 16,
                              .scale_codes = {0x40, 0x38, 0x30, 0x48},
                              .tensor_scale = 0.25f};
  const std::vector<CodedTensor> written = block_tensors(operand, {2, 32}, "fc");
  REQUIRE(written.size() == 3);
  CHECK(written[0].type == "U8");
  CHECK(written[0].shape == Shape{2, 16});
  CHECK(written[0].bytes[1] == 0x32);
  CHECK(written[1].end == "_scale");
  CHECK(written[1].type == "F8_E4M3");
  CHECK(written[1].shape == Shape{2, 2});
  CHECK(written[2].end == "_scale_2");
  CHECK(blocks_key(*operand.blocks) == "_blocks");
  Stored stored;
  stored.metadata["fc.weight_blocks"] = "nvfp4";
  std::vector<float> bytes;
  for (const char c : written[0].bytes) bytes.push_back(static_cast<unsigned char>(c));
  stored.tensors["fc.weight"] = tensor({2, 16}, bytes);
  stored.tensors["fc.weight_scale"] = tensor({2, 2}, {2, 1, 0.5f, 4});
  stored.tensors["fc.weight_scale_2"] = tensor({}, {0.25f});
  const Tensor weight = stored.decoded();
  CHECK(weight.data[1] == 0.5f * 2 * 0.25f);
  CHECK(weight.data[32 + 16 + 7] == 6.0f * 4 * 0.25f);
  CHECK_THAT(message_of([&] {
               block_tensors(operand, {64, 1}, "fc");
             }),
             Contains("fc: expected an even number of inputs"));
}

TEST_CASE("integers in blocks are stored less their zero points", "[fast]") {
  OnnxOperand operand;
  operand.format = &find_format("uint4");
  operand.codes = {0, 15, 7, 8};
  operand.scales = {0.5f, 1};
  operand.blocks = OnnxBlocks{.format = &find_block_format("group(uint4,2,float32,zp)"),
                              .line = 4,
                              .size = 2,
                              .scale_codes = {0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f},
                              .zero_points = {8, 3}};
  const std::vector<CodedTensor> written = block_tensors(operand, {1, 4}, "fc");
  CHECK(written[0].type == "I8");
  CHECK(written[0].bytes == std::string{-8, 7, 4, 5});
  CHECK(written[1].type == "F32");
}

TEST_CASE("scales and formats that do not fit are named", "[fast]") {
  const auto refused = [](const Stored& stored, const std::string& text) {
    INFO(text);
    CHECK_THAT(message_of([&] { stored.decoded(); }), Contains(text));
  };
  Stored stored = mxfp4();
  stored.metadata["fc.weight_blocks"] = "codebook(secret.npy)";
  refused(stored, "metadata: 'fc.weight_blocks': expected a format of blocks, found");
  stored.metadata["fc.weight_blocks"] = "group(int4,tensor,float32)";
  refused(stored, "expected a format of blocks");
  stored = mxfp4();
  for (const float bad : {255.0f, -1.0f, 300.0f, NAN}) {
    stored.tensors["fc.weight_scale"].data[2] = bad;
    refused(stored, "tensor 'fc.weight_scale': expected positive and finite scales");
  }
  stored = mxfp4();
  stored.tensors["fc.weight_scale"] = tensor({2, 3}, std::vector<float>(6, 127));
  refused(stored, "tensor 'fc.weight_scale': expected scales of blocks of 32 elements of [2, 34]");
  stored.tensors["fc.weight_scale"] = tensor({4}, std::vector<float>(4, 127));
  refused(stored, "tensor 'fc.weight_scale': expected scales of lines and blocks");
  stored = mxfp4();
  stored.tensors["fc.weight"].data[5] = 256;
  refused(stored, "tensor 'fc.weight': expected codes in bytes of U8");
  stored.tensors["fc.weight"] = tensor({}, {1});
  refused(stored, "tensor 'fc.weight': expected axes");
  stored = mxfp4();
  stored.metadata["fc.weight_blocks"] = "nvfp4";
  stored.tensors["fc.weight_scale"] = tensor({2, 3}, std::vector<float>(6, 1));
  stored.tensors["fc.weight_scale_2"] = tensor({}, {0});
  refused(stored, "tensor 'fc.weight_scale_2': expected one positive and finite scale");
}

}  // namespace
}  // namespace numemu::net::coded_blocks_test
