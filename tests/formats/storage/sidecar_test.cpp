#include "formats/storage/sidecar.hpp"

#include <filesystem>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::sidecar_test {
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
                     .seed = ~std::uint64_t{0},
                     .sha256 = std::string(64, 'a'),
                     .written_with = {{"scales", std::string(64, '0')}}};
  pending_sidecar(f.codes, full).commit();
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
  CHECK(again.sha256 == full.sha256);
  CHECK(again.written_with == full.written_with);
}

TEST_CASE("the keys of the contract are written, in its order", "[fast]") {
  const Fixture f;
  pending_sidecar(f.codes, {.numemu = "1", .format = "int4", .logical_shape = ArrayShape{}})
      .commit();
  CHECK(
      test::read_file(f.path) ==
      R"({"numemu":"1","format":"int4","codebook_sha256":null,"block":null,"axis":null,"logical_shape":[],"packed":null,)"
      R"("order":null,"rounding":null,"overflow":null,"scale_rule":null,"seed":null,"sha256":null,"written_with":null})"
      "\n");
  CHECK_FALSE(read_sidecar(f.codes)->packed.has_value());
}

TEST_CASE("bad sidecars", "[fast]") {
  const Fixture f;
  CHECK(f.message("") == "line 1 column 1: not valid JSON");
  CHECK(f.message("[]") == "expected an object");
  CHECK(f.message("{}") == "expected a key 'numemu' with the version that wrote it");
  for (const char* version : {"\"\"", "null", "\"bogus\""}) {
    CHECK(f.message(std::string(R"({"numemu":)") + version + "}") ==
          "numemu: expected the version that wrote it, such as \"0.1.0\"");
  }
  CHECK(f.message(std::string("{\"numemu\":\"1\"}\0{}", 18)) ==
        "byte 14: expected JSON, found a zero byte");
  CHECK(f.message(R"({"numemu":"1","sha256":"12"})") ==
        "sha256: expected 64 lower-case hexadecimal digits");
  CHECK(f.message(R"({"numemu":"1","written_with":{"scales":null}})") ==
        "written_with.scales: expected 64 lower-case hexadecimal digits");
  CHECK(f.message(R"({"numemu":"1","written_with":{"scale":"a"}})") ==
        "written_with: unknown key 'scale'; did you mean 'scales'?");
  CHECK(f.message(R"({"numemu":"1","formt":"int4"})") ==
        "unknown key 'formt'; did you mean 'format'?");
  CHECK(f.message(R"({"numemu":"1","format":4})") == "format: expected a string");
  CHECK(f.message(R"({"numemu":"1","packed":1})") == "packed: expected true or false");
  CHECK(f.message(R"({"numemu":"1","packed":true,"packed":false})") == "duplicate key 'packed'");
  CHECK(f.message(R"({"numemu":"1","order":"mirrored"})").starts_with("order: "));
  CHECK(f.message(R"({"numemu":"1","axis":-1})").starts_with("axis: expected "));
  CHECK(f.message(R"({"numemu":"1","seed":1.5})").starts_with("seed: expected "));
  CHECK(f.message(R"({"numemu":"1","seed":-1})").starts_with("seed: expected "));
  CHECK(f.message(R"({"numemu":"1","seed":18446744073709551616})").starts_with("seed: expected "));
  CHECK(f.message(R"({"numemu":"1","seed":18446744073709551615})").empty());
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

TEST_CASE("values that are nothing known, or do not fit each other", "[fast]") {
  const Fixture f;
  const auto with = [&](const std::string& keys) {
    return f.message(R"({"numemu":"1",)" + keys + "}");
  };
  CHECK(with(R"("format":"int44")").starts_with("format: unknown format 'int44'"));
  CHECK(with(R"("rounding":"rnee")") == "rounding: unknown rounding 'rnee'; did you mean 'rne'?");
  CHECK(with(R"("overflow":"saturated")") ==
        "overflow: unknown overflow mode 'saturated'; did you mean 'saturate'?");
  CHECK(with(R"("scale_rule":7)") == "scale_rule: expected a string");
  CHECK(with(R"("logical_shape":[8.0])").starts_with("logical_shape[0]: expected an integer"));
  CHECK(with(R"("axis":1.0)").starts_with("axis: expected an integer"));
  CHECK(with(R"("axis":2,"logical_shape":[3,4])") ==
        "axis: expected an axis of the logical_shape [3, 4], counted from 0, found 2");
  CHECK(with(R"("axis":1,"logical_shape":[3,4])").empty());
  CHECK(with(R"j("axis":1,"logical_shape":[4],"block":"group(int4,channel,float16)")j").empty());
  CHECK(with(R"("order":"low-first")") ==
        "order: expected null for unpacked codes, found low-first");
  CHECK(with(R"("order":"low-first","packed":false)").starts_with("order: "));
  CHECK(with(R"("order":"low-first","packed":true)").empty());
  CHECK(with(R"("block":"mxfp5")").starts_with("block: "));
  CHECK(with(R"("format":"int8","block":"mxfp4")") ==
        "block: expected a block format of 'int8', found mxfp4 of float4_e2m1fn and "
        "float8_e8m0fnu");
  CHECK(with(R"("format":"e2m1","block":"mxfp4")").empty());
  CHECK(with(R"("format":"float8_e8m0fnu","block":"mxfp4")").empty());
  const std::string digest(64, 'a');
  CHECK(
      with(R"j("format":"codebook(not there.npy)","codebook_sha256":")j" + digest + "\"").empty());
  CHECK(with(R"j("format":"codebook(x.npy)","codebook_sha256":"12")j") ==
        "codebook_sha256: expected 64 lower-case hexadecimal digits");
  CHECK(with(R"("format":"int8","codebook_sha256":")" + digest + "\"") ==
        "codebook_sha256: expected null, since the format is not a codebook");
}

TEST_CASE("a sidecar goes; a file of another kind stays", "[fast]") {
  const Fixture f;
  for (const std::string other : {"{}", "[1]", "not JSON"}) {
    test::write_file(f.path, other);
    remove_sidecar(f.codes);
    CHECK(test::read_file(f.path) == other);
  }
  test::write_file(f.path, R"({"numemu":"9","later":1})");
  remove_sidecar(f.codes);
  CHECK_FALSE(std::filesystem::exists(f.path));
}

TEST_CASE("through a link the sidecar beside it counts, else that of its target", "[fast]") {
  const Fixture f;
  test::write_file(f.codes, "");
  std::filesystem::create_directory(f.folder / "links");
  std::filesystem::create_symlink(f.codes, f.folder / "links/l.npy");
  const std::string link = f.folder / "links/l.npy";
  pending_sidecar(link, {.numemu = "1", .format = "int4"}).commit();
  CHECK(std::filesystem::exists(f.path));
  CHECK(read_sidecar(link)->format == "int4");
  test::write_file(link + ".json", R"({"numemu":"1","format":"int8"})");
  CHECK(read_sidecar(link)->format == "int8");
  remove_sidecar(link);
  CHECK_FALSE(std::filesystem::exists(f.path));
  CHECK_FALSE(std::filesystem::exists(link + ".json"));
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
  CHECK(message({.axis = 0, .axis_by = "s.npy.json: axis:"}) ==
        "c.npy.json: axis: 1 contradicts s.npy.json: axis: 0");
  CHECK(message({.block = "nvfp4", .block_by = "the shapes of"}) ==
        "c.npy.json: block: 'mxfp4' contradicts the shapes of 'nvfp4'");
  CHECK(test::message_of([] {
          check_sidecar("c.npy", {.numemu = "1"}, {.format = "int8"});
        }).empty());
}

}  // namespace

}  // namespace numemu::sidecar_test
