// Weights in tiles: each square has the scale of its largest magnitude, both directions read the
// same numbers, and bits count the squares.
#include "policies/numerics/operands/weight_tiles.hpp"

#include "emu/net/ops/linear.hpp"
#include "formats/error.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/recipe/role_json.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"

namespace weight_tiles_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;

namespace {

RolePolicy weight_role(const std::string& text, const char* role = "weight") {
  const Json json = parse_json(text, "r.json");
  return read_role(JsonReader(json, "r.json"), role_row(role));
}

}  // namespace

TEST_CASE("tiles: every square is quantized as one block", "[fast]") {
  for (const net::Shape& shape : {net::Shape{16, 24}, net::Shape{10, 3, 13}, net::Shape{3, 5}}) {
    for (const char* text : {R"({"format": "e4m3fn", "granularity": "tile", "block": 4})",
                             R"j({"format": "mx(e2m1,4)", "granularity": "tile"})j",
                             R"({"format": "nvfp4", "granularity": "tile"})"}) {
      INFO(text << " " << net::to_string(shape));
      const RoleQuantizer quantizer(weight_role(text));
      const net::Tensor w = noise(shape, 9);
      std::vector<float> y;
      CHECK(quantize_tiles(quantizer, w, {}, y).elements == w.size());
      const BlockFormat& format = quantizer.block_format();
      const std::int64_t edge = quantizer.policy().block->size;
      CHECK(format.size == edge * edge);
      BlockQuantization how{.format = &format,
                            .rule = &find_scale_rule(quantizer.policy().scale, format)};
      const std::int64_t rows = shape.front(), columns = shape.back();
      const std::int64_t taps = w.size() / rows / columns;
      std::int64_t tiles = 0;
      for (std::int64_t t = 0; t < taps; ++t) {
        for (std::int64_t r = 0; r < rows; r += edge) {
          for (std::int64_t c = 0; c < columns; c += edge, ++tiles) {
            std::vector<float> tile, want, got;
            for (std::int64_t i = r; i < std::min(r + edge, rows); ++i) {
              for (std::int64_t j = c; j < std::min(c + edge, columns); ++j) {
                tile.push_back(w.data[(i * taps + t) * columns + j]);
                got.push_back(y[(i * taps + t) * columns + j]);
              }
            }
            // A tensor scale is that of the whole weight: the largest magnitude goes first, in a
            // block of its own.
            const std::int64_t first = format.tensor_scale ? format.size : 0;
            std::vector<float> x(static_cast<std::size_t>(first), 0.0f);
            for (std::size_t i = 0; i < w.data.size() && first > 0; ++i)
              x[0] = std::max(x[0], std::fabs(w.data[i]));
            x.insert(x.end(), tile.begin(), tile.end());
            want.resize(x.size());
            const auto n = static_cast<std::int64_t>(x.size());
            quantize_blocks_reference(how, block_layout(format, {n}, 0), x.data(), {}, want.data());
            want.erase(want.begin(), want.begin() + first);
            CHECK(got == want);
          }
        }
      }
      CHECK(tiles == WeightTiles(shape, edge).count());
    }
  }
}

TEST_CASE("tiles of rows and columns are those of a block format", "[fast]") {
  const RolePolicy role =
      weight_role(R"({"format": "e4m3fn", "granularity": "tile", "block": [4, 8]})");
  CHECK(role_json(role)["block"].dump() == "[4,8]");
  const RolePolicy again = weight_role(role_json(role).dump());
  CHECK(again.block == role.block);
  const RolePolicy named =
      weight_role(R"j({"format": "group(e4m3fn,4x8,float32)", "granularity": "tile"})j");
  CHECK(named.block == role.block);
  CHECK(role_json(weight_role(
            R"({"format": "nf4", "granularity": "tile", "block": [4, 4]})"))["block"] == 4);
  const net::Tensor w = noise({10, 20}, 3);
  std::vector<float> y, want(w.data.size());
  quantize_tiles(RoleQuantizer(role), w, {}, y);
  const BlockFormat& f = find_block_format("group(e4m3fn,4x8,float32)");
  const BlockLayout layout = block_layout(f, {10, 20}, 1);
  quantize_blocks_reference({.format = &f, .rule = &find_scale_rule("absmax", f)}, layout,
                            w.data.data(), {}, want.data());
  CHECK(y == want);
  CHECK(WeightTiles({10, 20}, 4, 8).count() == layout.blocks);
  CHECK_THROWS_WITH(
      weight_role(R"({"format": "e4m3fn", "granularity": "tile", "block": [4, 8, 2]})"),
      Contains("rows and columns of a tile"));
  CHECK_THROWS_WITH(weight_role(R"j({"format": "group(e4m3fn,4x8,float32)"})j"),
                    Contains("'tile', which"));
}

TEST_CASE("tiles: forward and backward read the same weight", "[fast]") {
  const auto weights = [](const std::string& role) {
    OneLayer layer(R"j("roles": {"weight": )j" + role + "}",
                   std::make_unique<net::Linear>(32, 24, false), {32});
    const net::Tensor w = noise({24, 32}, 4);
    const auto identity = [](std::int64_t n) {
      net::Tensor x({n, n});
      for (std::int64_t i = 0; i < n; ++i) x.data[i * n + i] = 1;
      return x;
    };
    net::Tensor forward({32, 24}), backward({24, 32});
    const net::OpCall call{"layer", layer.in_training(0), net::Phase::training};
    net::dense_forward(call, {"layer"}, identity(32), w, forward);
    net::dense_input_gradient(call, {"layer"}, identity(24), w, backward);
    std::int64_t different = 0;
    for (std::int64_t o = 0; o < 24; ++o) {
      for (std::int64_t i = 0; i < 32; ++i)
        different += forward.data[i * 24 + o] != backward.data[o * 32 + i];
    }
    return different;
  };
  CHECK(weights(R"({"format": "nvfp4", "granularity": "tile"})") == 0);
  CHECK(weights(R"({"format": "e4m3fn", "granularity": "tile", "block": 128})") == 0);
  CHECK(weights(R"({"format": "nvfp4"})") > 0);
}

TEST_CASE("tiles: the canonical form, stored bits and refusals", "[fast]") {
  const RolePolicy tile =
      weight_role(R"({"format": "e4m3fn", "granularity": "tile", "block": 128})");
  const Json json = role_json(tile);
  CHECK(json["granularity"] == "tile");
  CHECK(json["block"] == 128);
  CHECK(json["format"] == "float8_e4m3fn");
  CHECK(role_json(weight_role(json.dump())) == json);
  // 2 x 3 squares of 200 x 300, a float32 scale each.
  CHECK(stored_bits(tile, {200, 300}) == 8 * 200 * 300 + 32 * 6);
  // 13 x 19 squares with a byte each, and the tensor's scale.
  CHECK(stored_bits(weight_role(R"({"format": "nvfp4", "granularity": "tile"})"), {200, 300}) ==
        4 * 200 * 300 + 8 * 13 * 19 + 32);
  const auto refused = [](const char* text, const char* role) {
    return numemu::test::message_of([&] { weight_role(text, role); });
  };
  CHECK_THAT(refused(R"({"format": "nvfp4", "granularity": "tile"})", "activation"),
             Contains("tiles of outputs and inputs are those of weights"));
  CHECK_THAT(
      refused(R"({"format": "mxfp4", "granularity": "tile", "axis": "reduction"})", "weight"),
      Contains("axis"));
  CHECK_THAT(refused(R"({"format": "mxfp4", "granularity": "tile", "ste": "clipped"})", "weight"),
             Contains("'identity' for a weight in tiles"));
  CHECK_THAT(
      refused(R"j({"format": "group(int4,128,float16,zp)", "granularity": "tile"})j", "weight"),
      Contains("granularity"));
}

TEST_CASE("tiles: random bits are those of an element's index in the weight", "[fast]") {
  const RoleQuantizer quantizer(weight_role(
      R"j({"format": "int4", "granularity": "tile", "block": 4, "rounding": "sr(8)"})j"));
  const RandomPiece random{{.seed = 7, .tensor = 5}, 3};
  for (const net::Shape& shape : {net::Shape{10, 13}, net::Shape{3, 2, 6}, net::Shape{9, 1}}) {
    INFO(net::to_string(shape));
    const net::Tensor w = noise(shape, 9);
    std::vector<float> y, scales;
    std::vector<std::uint8_t> codes;
    quantize_tiles(quantizer, w, random, y);
    quantize_tiles(quantizer, w, random, codes, scales);
    const std::int64_t columns = shape.back(), taps = w.size() / shape.front() / columns;
    const std::int64_t bands = (shape.front() + 3) / 4, across = (columns + 3) / 4;
    const Conversion how = quantizer.conversion(random.source);
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < w.size(); ++i) {
      const std::int64_t row = i / columns / taps, tap = i / columns % taps, column = i % columns;
      const float scale = scales[(tap * bands + row / 4) * across + column / 4];
      const Encoded want =
          encode_element(how, exact_quotient(value_of(w.data[i]), value_of(scale)), 3 + i);
      different += codes[i] != want.code;
      const float value = scale * static_cast<float>(decode_table(*how.format)[want.code]);
      different += y[i] != value;
    }
    CHECK(different == 0);
  }
}

TEST_CASE("tiles: a band is no higher than the weight", "[fast]") {
  const WeightTiles t({3, 3, 512}, 32768);
  CHECK(t.line() * t.lines() == 3 * 3 * 512);
  CHECK(t.count() == 3);
  const WeightTiles bands({200, 300}, 128);
  CHECK(bands.height == 128);
  CHECK(bands.lines() == 2);
}

}  // namespace weight_tiles_test
