// Sidecars survive a round trip; unknown keys, wrong types and contradictions are named.
#include "formats/storage/sidecar.hpp"

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu {
namespace {

struct Fixture {
  test::TemporaryFolder folder;
  std::string codes = folder / "c.npy", path = codes + ".json";

  /// The message after "PATH: ".
  std::string message(const std::string& json) const {
    test::write_file(path, json);
    const std::string text = test::message_of([&] { read_sidecar(codes); });
    return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
  }
};

TEST_CASE("a sidecar survives a round trip", "[fast]") {
  const Fixture f;
  CHECK_FALSE(read_sidecar(f.codes).has_value());
  const Sidecar full{.numemu = "0.1.0",
                     .format = "float4_e2m1fn",
                     .block = "mxfp4",
                     .axis = 1,
                     .logical_shape = ArrayShape{3, 0},
                     .packed = true,
                     .order = BitOrder::high_first,
                     .rounding = "sr(8)",
                     .overflow = "saturate",
                     .scale_rule = "floor",
                     .seed = std::int64_t{1} << 53};
  write_sidecar(f.codes, full);
  const Sidecar again = read_sidecar(f.codes).value();
  CHECK(again.numemu == full.numemu);
  CHECK(again.format == full.format);
  CHECK(again.block == full.block);
  CHECK(again.axis == full.axis);
  CHECK(again.logical_shape == full.logical_shape);
  CHECK(again.packed == full.packed);
  CHECK(again.order == full.order);
  CHECK(again.rounding == full.rounding);
  CHECK(again.overflow == full.overflow);
  CHECK(again.scale_rule == full.scale_rule);
  CHECK(again.seed == full.seed);
}

TEST_CASE("the keys of the contract are written, in its order", "[fast]") {
  const Fixture f;
  write_sidecar(f.codes, {.numemu = "1", .format = "int4", .logical_shape = ArrayShape{}});
  CHECK(
      test::read_file(f.path) ==
      R"({"numemu":"1","format":"int4","block":null,"axis":null,"logical_shape":[],"packed":null,)"
      R"("order":null,"rounding":null,"overflow":null,"scale_rule":null,"seed":null})"
      "\n");
  CHECK_FALSE(read_sidecar(f.codes)->packed.has_value());
}

TEST_CASE("bad sidecars", "[fast]") {
  const Fixture f;
  CHECK(f.message("") == "line 1 column 1: not valid JSON");
  CHECK(f.message("[]") == "expected an object");
  CHECK(f.message("{}") == "expected a key 'numemu' with the version that wrote it");
  CHECK(f.message(R"({"numemu":"1","formt":"int4"})") ==
        "unknown key 'formt'; did you mean 'format'?");
  CHECK(f.message(R"({"numemu":"1","format":4})") == "format: expected a string");
  CHECK(f.message(R"({"numemu":"1","packed":1})") == "packed: expected true or false");
  CHECK(f.message(R"({"numemu":"1","packed":true,"packed":false})") ==
        "key 'packed' stands twice in one object");
  CHECK(f.message(R"({"numemu":"1","order":"mirrored"})").starts_with("order: "));
  CHECK(f.message(R"({"numemu":"1","axis":-1})").starts_with("axis: expected "));
  CHECK(f.message(R"({"numemu":"1","seed":1.5})").starts_with("seed: expected "));
  CHECK(f.message(R"({"numemu":"1","seed":18446744073709551615})").starts_with("seed: expected "));
  CHECK(f.message(R"({"numemu":"1","logical_shape":7})") ==
        "logical_shape: expected a list of extents");
  CHECK(f.message(R"({"numemu":"1","logical_shape":[2,-1]})")
            .starts_with("logical_shape[1]: expected "));
  CHECK(f.message(R"({"numemu":"1","logical_shape":[9223372036854775808]})")
            .starts_with("logical_shape[0]: expected "));
  CHECK(f.message(R"({"numemu":"1","logical_shape":[null]})")
            .starts_with("logical_shape[0]: expected "));
  std::string many = "0";
  for (int axis = 0; axis < 64; ++axis) many += ",0";
  CHECK(f.message(R"({"numemu":"1","logical_shape":[)" + many + "]}") ==
        "logical_shape: expected at most 64 axes, found 65");
  CHECK(f.message(std::string(65537, ' ')) == "expected at most 65536 bytes, found 65537");
}

TEST_CASE("contradictions name the file, the key and both values", "[fast]") {
  const Sidecar sidecar{.numemu = "1",
                        .format = "int4",
                        .block = "mxfp4",
                        .axis = 1,
                        .packed = false,
                        .order = BitOrder::low_first};
  const auto message = [&](const SidecarTold& told) {
    return test::message_of([&] { check_sidecar("c.npy", sidecar, told); });
  };
  CHECK(message({}).empty());
  CHECK(message({"int4", "mxfp4", false, BitOrder::low_first, 1}).empty());
  CHECK(message({.format = "int8"}) == "c.npy.json: format: 'int4' contradicts --format 'int8'");
  CHECK(message({.block = "nvfp4"}) == "c.npy.json: block: 'mxfp4' contradicts --block 'nvfp4'");
  CHECK(message({.packed = true}) == "c.npy.json: packed: false contradicts --packed true");
  CHECK(message({.order = BitOrder::high_first}) ==
        "c.npy.json: order: low-first contradicts --order high-first");
  CHECK(message({.axis = 0}) == "c.npy.json: axis: 1 contradicts --axis 0");
  CHECK(test::message_of([] {
          check_sidecar("c.npy", {.numemu = "1"}, {.format = "int8"});
        }).empty());
}

}  // namespace
}  // namespace numemu
