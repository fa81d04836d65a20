// numemu infer: files of a few bytes that ask for gigabytes, and the memory budget.
#include <filesystem>

#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

using namespace numemu;
using namespace numemu::test;
using numemu::net::test::ModelWriter;
using Ints = std::vector<std::int64_t>;

TEST_CASE("a small file cannot ask for more memory than the budget", "[fast]") {
  const Scratch s;
  const std::vector<float> ones(8000, 1);
  write_npy(s.path + "/column.npy", ArrayType::float32, {1, 8000, 1}, ones.data());
  write_npy(s.path + "/pixel.npy", ArrayType::float32, {1, 1, 1, 1}, ones.data());
  s.file("expand.onnx", ModelWriter()
                            .input("x", {-1, 8000, 1})
                            .integers("shape", {3}, {1, 1, 80'000})
                            .node("Expand", {"x", "shape"}, {"y"}, {}, "grow")
                            .output("y")
                            .file());
  s.file("pad.onnx", ModelWriter()
                         .input("x", {-1, 1, 1, 1})
                         .integers("pads", {8}, {0, 0, 15'000, 15'000, 0, 0, 15'000, 15'000})
                         .node("Pad", {"x", "pads"}, {"y"}, {}, "frame")
                         .output("y")
                         .file());
  s.file("gather.onnx", ModelWriter()
                            .input("x", {-1, 1, 1, 1})
                            .integers("many", {36'000}, Ints(36'000, 0))
                            .node("Gather", {"x", "many"}, {"a"},
                                  {net::test::attribute("axis", std::int64_t{1})}, "first")
                            .node("Gather", {"a", "many"}, {"y"},
                                  {net::test::attribute("axis", std::int64_t{2})}, "second")
                            .output("y")
                            .file());
  const std::string tail = " --out y.npy --memory 1G";
  check_refused(s.run("infer --model expand.onnx --in column.npy" + tail),
                "output y of shape [1, 8000, 80000], all samples: needs 2.4 GiB");
  check_refused(s.run("infer --model pad.onnx --in pixel.npy" + tail), "[1, 1, 30001, 30001]");
  check_refused(s.run("infer --model gather.onnx --in pixel.npy" + tail), "[1, 36000, 36000, 1]");
  // Where the large value is not an output, its node is named.
  s.file("mean.onnx",
         ModelWriter()
             .input("x", {-1, 8000, 1})
             .integers("shape", {3}, {1, 1, 80'000})
             .node("Expand", {"x", "shape"}, {"large"}, {}, "grow")
             .node("ReduceMean", {"large"}, {"y"}, {net::test::attribute("axes", Ints{2})}, "mean")
             .output("y")
             .file());
  check_refused(
      s.run("infer --model mean.onnx --in column.npy --quiet" + tail),
      "'grow' (add): its result [1, 8000, 80000] of 2.4 GiB and the other tensors in memory do "
      "not fit the memory budget of 1.0 GiB (--memory)");
  for (const char* wrong : {"0", "-1", "1X", "1GB", "1.5G", "1025T", "99999999999999999999", ""})
    check_refused(s.run("infer --model mean.onnx --in column.npy --out y.npy --memory '" +
                        std::string(wrong) + "'"),
                  "--memory");
  CHECK_FALSE(std::filesystem::exists(s.path + "/y.npy"));
}
