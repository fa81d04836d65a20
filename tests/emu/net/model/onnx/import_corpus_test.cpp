// The corpus of the fuzz target onnx_import, written from code: each file equals its model.
#include <cstdlib>
#include <map>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_graphs.hpp"

namespace numemu::net::import_corpus_test {
namespace {

using test::attribute;
using test::GptBlock;
using test::Ints;
using test::MobileBlock;
using test::ModelWriter;

constexpr const char* kFolder = NUMEMU_SOURCE "/tests/fuzz/corpus/onnx_import/";

std::vector<float> ones(std::size_t count) { return std::vector<float>(count, 1); }

ModelWriter convolutions() {
  ModelWriter w;
  w.input("image", {-1, 2, 6, 6}).floats("conv.weight", {3, 2, 3, 3}, ones(54));
  for (const char* name : {"bn.weight", "bn.bias", "bn.mean", "bn.variance"})
    w.floats(name, {3}, ones(3));
  w.floats("fc.weight", {2, 12}, ones(24)).floats("fc.bias", {2}, ones(2));
  std::string x = w.op("Conv", {"image", "conv.weight"},
                       {attribute("pads", Ints{1, 0, 1, 0}), attribute("strides", Ints{1, 1})});
  x = w.op("BatchNormalization", {x, "bn.weight", "bn.bias", "bn.mean", "bn.variance"},
           {attribute("epsilon", 1e-3f)});
  x = w.op("MaxPool", {w.op("Relu", {x})},
           {attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{2, 2}),
            attribute("ceil_mode", std::int64_t{1})});
  x = w.op("AveragePool", {x},
           {attribute("kernel_shape", Ints{2, 1}), test::text_attribute("auto_pad", "SAME_UPPER"),
            attribute("strides", Ints{2, 1})});
  x = w.op("Gemm", {w.op("Flatten", {x}), "fc.weight", "fc.bias"},
           {attribute("transB", std::int64_t{1}), attribute("alpha", 0.5f)});
  w.output(x);
  return w;
}

/// A shortcut without weights: every second pixel, with channels of zeros.
ModelWriter shortcut() {
  ModelWriter w;
  w.input("image", {-1, 2, 4, 4}).floats("conv.weight", {4, 2, 1, 1}, ones(8));
  const std::string y = w.op("Conv", {"image", "conv.weight"}, {attribute("strides", Ints{2, 2})});
  std::string x = w.op(
      "Slice", {"image", w.wholes({0, 0}), w.wholes({4, 4}), w.wholes({2, 3}), w.wholes({2, 2})});
  const std::string pads = w.op("Concat", {w.wholes({0, 1, 0, 0}), w.wholes({0, 1, 0, 0})},
                                {attribute("axis", std::int64_t{0})});
  x = w.op("Pad", {x, pads, w.number(0)});
  x = w.op("LeakyRelu", {w.op("Sum", {y, x, w.number(1)})}, {attribute("alpha", 0.1f)});
  x = w.op("HardSwish", {w.op("Transpose", {x}, {attribute("perm", Ints{0, 2, 3, 1})})});
  w.output(w.op("ReduceMean", {x}, {attribute("axes", Ints{1, 2})})).output(y);
  return w;
}

ModelWriter attention() {
  ModelWriter w;
  w.input("x", {-1, 2, 4}).floats("qkv.w", {4, 12}, ones(48));
  const std::string shape = w.op("Shape", {"x"});
  const std::string batch = w.op("Unsqueeze", {w.op("Gather", {shape, w.whole(0)}), w.wholes({0})});
  const std::string target = w.op("Concat", {batch, w.wholes({-1, 2}), w.wholes({2})},
                                  {attribute("axis", std::int64_t{0})});
  std::vector<std::string> parts{"q", "k", "v"};
  w.node("Split", {w.op("MatMul", {"x", "qkv.w"})}, parts, {attribute("axis", std::int64_t{2})});
  for (std::string& part : parts) part = w.op("Reshape", {part, target});
  const std::string q = w.op("Transpose", {parts[0]}, {attribute("perm", Ints{0, 2, 1, 3})});
  const std::string k = w.op("Transpose", {parts[1]}, {attribute("perm", Ints{0, 2, 3, 1})});
  const std::string v = w.op("Transpose", {parts[2]}, {attribute("perm", Ints{0, 2, 1, 3})});
  const std::string full = w.op("ConstantOfShape", {w.wholes({2, 2})},
                                {test::tensor_attribute("value", {1}, 1, test::words(-1e9f))});
  const std::string scores =
      w.op("Add", {w.op("Div", {w.op("MatMul", {q, k}), w.op("Sqrt", {w.number(2)})}),
                   w.op("Trilu", {full, w.whole(1)})});
  const std::string mixed = w.op("MatMul", {w.op("Softmax", {scores}), v});
  w.output(w.op("Reshape", {w.op("Transpose", {mixed}, {attribute("perm", Ints{0, 2, 1, 3})}),
                            w.wholes({0, 0, -1})}));
  return w;
}

ModelWriter norm_and_gelu() {
  ModelWriter w;
  w.input("x", {-1, 3, 4}).floats("ln.weight", {4}, ones(4)).floats("ln.bias", {4}, ones(4));
  const std::string last = attribute("axes", Ints{-1});
  const std::string centred = w.op("Sub", {"x", w.op("ReduceMean", {"x"}, {last})});
  const std::string variance = w.op("ReduceMean", {w.op("Pow", {centred, w.number(2)})}, {last});
  const std::string deviation = w.op("Sqrt", {w.op("Add", {variance, w.number(1e-5f)})});
  std::string x = w.op("Mul", {w.op("Div", {centred, deviation}), "ln.weight"});
  x = w.op("LayerNormalization", {w.op("Add", {x, "ln.bias"}), "ln.weight", "ln.bias"});
  const std::string erf = w.op("Erf", {w.op("Div", {x, w.number(1.4142135f)})});
  w.output(w.op("Mul", {w.op("Mul", {x, w.op("Add", {erf, w.number(1)})}), w.number(0.5f)}));
  return w;
}

/// Shapes and masks computed from constants, and repetition to the batch.
ModelWriter folding() {
  ModelWriter w;
  w.input("tokens", {-1, 3}, 7).floats("table", {5, 2}, ones(10));
  const std::string shape = w.op("Shape", {"tokens"});
  const std::string length = w.op("Gather", {shape, w.whole(1)});
  const std::string range = w.op("Range", {w.whole(0), length, w.whole(1)});
  const std::string column = w.op("Unsqueeze", {range, w.wholes({1})});
  const std::string mask = w.op("And", {w.op("LessOrEqual", {range, column}),
                                        w.op("Not", {w.op("Equal", {range, w.whole(7)})})});
  const std::string chosen = w.op("Where", {mask, w.number(0), w.number(-1)});
  const std::string wide = w.op("Expand", {chosen, w.wholes({1, 3, 3})});
  const std::string zeros =
      w.op("ConstantOfShape", {shape},
           {test::tensor_attribute("value", {1}, 7, test::words(std::int64_t{1}))});
  const std::string rows =
      w.op("Add", {w.op("Gather", {"table", "tokens"}), w.op("Gather", {"table", zeros})});
  const std::string mixed = w.op("MatMul", {wide, rows});
  const std::string step =
      w.op("Slice", {range, w.wholes({-1}), w.wholes({-9}), w.wholes({0}), w.wholes({-2})});
  w.output(w.op("Gather", {mixed, step}, {attribute("axis", std::int64_t{1})}));
  w.output(w.op("Squeeze", {w.op("Cast", {column}, {attribute("to", std::int64_t{1})})}));
  return w;
}

std::map<std::string, std::string> corpus() {
  std::map<std::string, std::string> out;
  out["good_gpt_where.onnx"] = GptBlock({}).writer().file(13);
  out["good_gpt_gemm.onnx"] = GptBlock({.split = false, .gemm = true}).writer().file(17);
  out["good_gpt_add.onnx"] =
      GptBlock({.masks_add = true, .tanh_gelu = false, .batch = 1}).writer().file(14);
  out["good_mobile.onnx"] = MobileBlock().writer().file(13);
  out["good_mobile_fixed.onnx"] = MobileBlock(1).writer().file(13);
  out["good_convolutions.onnx"] = convolutions().file(9);
  out["good_shortcut.onnx"] = shortcut().file(14);
  out["good_attention.onnx"] = attention().file(13);
  out["good_norm_gelu.onnx"] = norm_and_gelu().file(17);
  out["good_folding.onnx"] = folding().file(16);

  const auto input = [] { return ModelWriter().input("x", {-1, 3}); };
  out["bad_unknown.onnx"] = input().node("Einsum", {"x"}, {"y"}).output("y").file();
  out["bad_missing.onnx"] = input().node("Relu", {"z"}, {"y"}).output("y").file();
  out["bad_output.onnx"] = input().node("Relu", {"x"}, {"y"}).output("z").file();
  out["bad_large.onnx"] = input()
                              .integers("n", {2}, {1 << 30, 1 << 10})
                              .node("ConstantOfShape", {"n"}, {"y"})
                              .output("y")
                              .file();
  out["bad_range.onnx"] = input()
                              .integers("a", {}, {0})
                              .integers("b", {}, {INT64_MAX})
                              .integers("c", {}, {1})
                              .node("Range", {"a", "b", "c"}, {"y"})
                              .output("y")
                              .file();
  ModelWriter doubling = input();
  std::string x = doubling.wholes({1, 2, 3, 4});
  for (int i = 0; i < 40; ++i)
    x = doubling.op("Concat", {x, x}, {attribute("axis", std::int64_t{0})});
  out["bad_doubling.onnx"] = doubling.output(x).file();
  out["bad_channels.onnx"] = ModelWriter()
                                 .input("x", {-1, 1LL << 36})
                                 .floats("w", {1}, {1})
                                 .node("BatchNormalization", {"x", "w", "w", "w", "w"}, {"y"})
                                 .output("y")
                                 .file();
  // What a declared shape alone would make large.
  for (const char* op : {"InstanceNormalization", "LayerNormalization", "Hardmax"}) {
    ModelWriter model = ModelWriter().input("x", {-1, 1LL << 36}).floats("w", {1}, {1});
    out["bad_" + std::string(op) + ".onnx"] =
        (std::string(op) == "Hardmax" ? model.node(op, {"x"}, {"y"})
                                      : model.node(op, {"x", "w", "w"}, {"y"}))
            .output("y")
            .file(17);
  }
  out["bad_gru.onnx"] = ModelWriter()
                            .input("x", {3, 1, 2})
                            .node("GRU", {"x"}, {"y"}, {attribute("hidden_size", std::int64_t{1})})
                            .output("y")
                            .file();
  out["bad_groups.onnx"] =
      ModelWriter()
          .input("x", {-1, 2, 2, 2})
          .floats("w", {2, 2, 1, 1}, ones(4))
          .node("Conv", {"x", "w"}, {"y"}, {attribute("group", std::int64_t{1} << 62)})
          .output("y")
          .file();
  out["bad_expand.onnx"] = input()
                               .integers("n", {3}, {1 << 20, 1 << 20, 3})
                               .node("Expand", {"x", "n"}, {"y"})
                               .output("y")
                               .file();
  return out;
}

/// Set in the environment: the files are rewritten, after a change to the models above.
constexpr const char* kWrite = "NUMEMU_WRITE_CORPUS";

TEST_CASE("the corpus of onnx_import is as the models say", "[fast]") {
  for (const auto& [name, bytes] : corpus()) {
    INFO(name);
    if (std::getenv(kWrite) != nullptr) numemu::test::write_file(kFolder + name, bytes);
    CHECK(numemu::test::read_file(kFolder + name) == bytes);
    const bool good = name.starts_with("good");
    const std::string path = kFolder + name;
    const std::string error = numemu::test::message_of([&] { import_onnx(read_onnx(path)); });
    INFO(error);
    CHECK(error.empty() == good);
  }
}

}  // namespace
}  // namespace numemu::net::import_corpus_test
