// Commands on networks: every refusal of a wrong command line or file, as a row.
#include <filesystem>

#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/experiments/small_network.hpp"

namespace network_refusals_test {

using namespace numemu;
using namespace numemu::test;
using numemu::net::test::ModelWriter;

namespace {

void array(const Scratch& s, const std::string& name, const ArrayShape& shape, float value = 0.5f) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  const std::vector<float> values(static_cast<std::size_t>(n), value);
  write_npy(s.path + "/" + name, ArrayType::float32, shape, values.data());
}

void write_networks(const Scratch& s) {
  s.file("m.onnx", ModelWriter()
                       .input("image", {-1, 2, 3, 3})
                       .floats("c.weight", {1, 2, 2, 2}, {1, 1, 1, 1, 10, 0, 0, 0})
                       .node("Conv", {"image", "c.weight"}, {"y"})
                       .output("y")
                       .file());
  s.file("two.onnx", ModelWriter()
                         .input("a", {-1, 3})
                         .input("b", {-1, 3})
                         .node("Add", {"a", "b"}, {"sum"})
                         .node("Mul", {"a", "b"}, {"product"})
                         .output("sum")
                         .output("product")
                         .file());
  s.file("wide.onnx", ModelWriter()
                          .input("x", {-1, 48})
                          .floats("w", {48, 1}, std::vector<float>(48, 1))
                          .node("MatMul", {"x", "w"}, {"y"})
                          .output("y")
                          .file());
  s.file("bad.onnx", "this is no model");
  experiments::testing::write_click_network(s.path + "/n.safetensors");
  for (const char* const name : {"lenet", "resnet20"}) {
    net::Graph graph = net::build_net(name, {28, 28, 1}, 10);
    net::initialize(graph, 5);
    net::write_safetensors(s.path + "/" + name + ".safetensors", net::parameters_of(graph));
  }
}

void write_data(const Scratch& s) {
  array(s, "x.npy", {1, 2, 3, 3});
  array(s, "last.npy", {1, 3, 3, 2});
  array(s, "scalar.npy", {});
  array(s, "none.npy", {0, 3});
  array(s, "one.npy", {1, 3});
  array(s, "a.npy", {2, 3});
  array(s, "b.npy", {2, 3});
  array(s, "wide.npy", {2, 48});
  array(s, "small.npy", {2, 8, 8, 1});
  array(s, "planes.npy", {2, 1, 28, 28});
  array(s, "images.npy", {32, 1, 28, 28});
  const std::vector<std::uint8_t> bytes(784);
  write_npy(s.path + "/u8.npy", ArrayType::uint8, {1, 28, 28, 1}, bytes.data());
  write_npy(s.path + "/y.npy", ArrayType::uint8, {32}, bytes.data());
  std::string text;
  for (int i = 0; i < 300; ++i) text += "one two three. ";
  s.file("small.txt", text);
  std::filesystem::create_symlink("round", s.path + "/round");
}

void write_recipes(const Scratch& s) {
  const auto recipe = [&](const char* name, const std::string& rest) {
    s.file(name, R"({"numemu_recipe": 1)" + rest + "}");
  };
  recipe("r.json", "");
  recipe("int8.json", R"(, "roles": {"activation": {"format": "int8"}})");
  recipe("int99.json", R"(, "roles": {"weight": {"format": "int99"}})");
  recipe("mxfp5.json", R"(, "roles": {"weight": {"format": "mxfp5"}})");
  recipe("dynamic.json",
         R"(, "roles": {"activation": {"format": "int8", "scale": "mse"}},
             "calibrate": {"rule": "dynamic"})");
  recipe("rotated.json", R"(, "roles": {"weight": {"format": "int8"}}, "layers":
      [{"match": "fc1", "transform": {"rule": "hadamard", "block": 4}}])");
  recipe("shift.json", R"(, "norm": {"statistic": "shift"})");
  recipe("sgd.json", R"(, "update": {"optimizer": "sgd"})");
  recipe("nodes.json", R"j(, "exchange": {"order": "hierarchical(3)"})j");
  recipe("birder.json", R"(, "exchange": "birder", "update": {"optimizer": "sgd"})");
  recipe("order.json", R"(, "exchange": {"order": "rnig"})");
  s.file("s.json", R"({"numemu_sweep": 1, "grid": {"roles.wait.format": ["int8"]}})");
  s.file("empty.json", R"({"numemu_sweep": 1, "points": []})");
  s.file("points.json", R"({"numemu_sweep": 1, "net": "n.safetensors", "data": "clicks",
    "eval_images": 40, "points": [{}, {"roles.weight.format": "int8"}]})");
  s.file("unit.json", R"({"numemu_unit": 1, "name": "my.unit", "core": "chain",
    "accumulator": {"format": "float16"}})");
  std::filesystem::create_directory(s.path + "/other");
  s.file("other/experiment.json", R"({"numemu_experiment":1,"name":"zap"})");
}

const std::string kArrays = "infer --quiet --model two.onnx --in a=a.npy --in b=b.npy ";
const std::string kExport =
    "export --net lenet=lenet.safetensors --data npy:x=images.npy,y=y.npy,test=16,classes=10 "
    "--samples 16 --quiet ";
const std::string kTrain =
    "train --net lstm-char --data text:small.txt --batch 8 --epochs 1 --out o ";
const std::string kEval = "eval --net n.safetensors --data clicks --quiet ";
const std::string kTune = "tune --net n.safetensors --data clicks ";
const std::string kExperiment = "experiment sensitivity --quiet ";

const std::vector<Refusal> kRefusals = {
    // Options.
    {"eval --nett lenet --data glyphs", "did you mean '--net'"},
    {"eval --data glyphs", "--net"},
    {"eval --net lenet", "--data"},
    {kEval + "--strict", "numemu: --strict: expected --gate beside it\n"},
    {kEval + "--gate ''", "--gate: expected a target"},
    {kEval + "--gate 'mse>=1'", "mse"},
    {kEval + "--metric top", "unknown metric 'top'"},
    {kEval + "--images 20000",
     "--images: expected at most 10000, the test images of clicks, not 20000"},
    {kEval + "--image-size 20", "image-size: expected images"},
    {"infer --quiet --model m.onnx --in x.npy --out z.npy --batch 0", "--batch"},
    {"infer --quiet --model m.onnx --out z.npy", "--in is required"},
    {"infer --quiet --model m.onnx --in x.npy", "--out is required"},
    {"infer --model m.onnx --in x.npy --out z.npy --calibrate-on x.npy",
     "--calibrate-on: expected a --recipe"},
    {"infer --model m.onnx --in x.npy --out z.npy --metric top1",
     "--metric: top1 compares with targets, which infer has not"},
    {kTrain + "--optimizer adamww", "'adamw'"},
    {kTrain + "--schedule cosin", "'cosine'"},
    {kTrain + "--augment shift", "--augment: expected shift=PIXELS"},
    {kTrain + "--augment flip,zoom=2", "not 'zoom=2'"},
    {kTrain + "--augment shift=-1", "not 'shift=-1'"},
    {kTrain + "--augment flip,", "not ''"},
    {kTrain + "--momentum 1", "momentum"},
    {kTrain + "--workers 9", "at most batch (8) parts, not 9 x 1"},
    {kTrain + "--workers 3", "3 workers x 1 micro-batches, such as 6 or 9, not 8"},
    {kTrain + "--workers 0", "--workers"},
    {kTrain + "--workers 100000", "--workers"},
    {kTrain + "--workers 4 --recipe nodes.json",
     "nodes.json: exchange.order: hierarchical(3) needs a multiple of 3 workers, there are 4"},
    {kTrain + "--workers 4 --recipe order.json",
     "order.json: exchange.order: unknown exchange order 'rnig'; did you mean 'ring'?"},
    {kTrain + "--workers 2 --local-steps 0", "--local-steps"},
    {kTrain + "--workers 2 --recipe birder.json",
     "birder.json: exchange.rule: birder: expected no momentum"},
    {kTrain + "--image-size 20", "image-size: expected images, data set text has text"},
    {kTrain + "--image-sizes 20-0.5", "image sizes: expected SIZE:SHARE"},
    {kTrain + "--image-sizes 20:0.5", "image_sizes: expected shares that add up to 1, not 0.5"},
    {kTrain + "--image-sizes 20", "image_sizes: expected square images, data set text has text"},
    {kTrain + "--size-changes copy", "--size-changes"},
    {kTrain + "--size-changes copies", "image_sizes: expected sizes beside the change 'copies'"},
    {kTrain + "--size-smoothing 4", "image_sizes: expected sizes where gradients are smoothed"},
    {kTrain + "--label-noise 0.1", "label-noise: expected one label"},
    {kTrain + "--copies 2", "copies: expected 1 without augmentation"},
    {kTrain + "--recipe sgd.json --optimizer adam", "contradicts"},
    {"train --net lenet --data npy:x=images.npy,y=y.npy,classes=10 --out new --quiet",
     "data set npy has no training samples (npy: test=N keeps"},
    {kTune, "--recipe"},
    {kTune + "--recipe r.json --steps batchnorm",
     "--steps: unknown tuning step 'batchnorm'; did you mean 'batch_norm'?"},
    {kTune + "--recipe r.json --steps 'bias(epochs=0)'", "bias: epochs"},
    {kTune + "--recipe r.json --samples 0", "--samples"},
    {kTune + "--recipe r.json --calibrate-on text:none.txt", "none.txt"},
    {kTune + "--recipe r.json --images 6000", "--images: expected at most 5000"},
    {kExport + "--out m.bin", "ending in .onnx or .safetensors"},
    {"sweep points.json --out o --gate 0.5 --shard 0/2", "--gate: expected beside it no --shard"},
    {"sweep --quiet --shard '0/ 2'", "--shard: expected i/n"},
    {"sweep --quiet --tasks 3", "--tasks: expected --slurm or --parallel beside it"},
    {"sweep --quiet --sbatch partition=long", "--sbatch: expected --slurm beside it"},
    {"sweep points.json --parallel --sbatch partition=long", "--sbatch: expected --slurm beside"},
    {"sweep points.json --slurm --parallel", "--slurm"},
    {"sweep points.json --slurm --tasks 0", "--tasks"},
    {"sweep points.json --slurm --tasks 1000000", "--tasks"},
    {"sweep points.json --slurm --tasks 2e1", "--tasks"},
    {"sweep points.json --slurm --dry-run --tasks 5000", "--tasks: expected at most the number of"},
    {"sweep points.json --slurm --dry-run --shard 0/2", "--shard: expected none beside --slurm"},
    {"sweep points.json --slurm --dry-run --sbatch partition", "--sbatch: expected key=value"},
    {"sweep points.json --slurm --dry-run --sbatch array=1-5",
     "--sbatch: array is set by the plan"},
    {"sweep --quiet --shard 0/4294967297", "--shard: expected i/n"},
    {"sweep --quiet --shard +0/2", "--shard: expected i/n"},
    {"sweep --quiet --shard 2/2", "--shard: expected i/n"},
    // Files that are not there, or cannot be written.
    {"infer --quiet --model none.onnx --in a.npy --out z.npy", "none.onnx"},
    {"infer --quiet --model m.onnx --in missing.npy --out z.npy", "missing.npy"},
    {"infer --quiet --model mpl --in x.npy --out z.npy", "did you mean 'mlp'"},
    {"infer --quiet --model resnet20 --in x.npy --out z.npy",
     "expected one shipped checkpoint of resnet20, found 0"},
    {"infer --model m.onnx --in x.npy --out /dev/null", "/dev/null"},
    {kArrays + "--out z.npz", "z.npz: expected a .npy or .safetensors file"},
    {kArrays + "--out z.txt", "z.txt: expected a .npy or .safetensors file"},
    {kArrays + "--out sum=z.npy --out product=z.npy", "found z.npy twice"},
    {"infer --model m.onnx --in x.npy --out m.onnx",
     "--out and --model: expected two files, found m.onnx twice"},
    {"infer --model m.onnx --in x.npy --recipe r.json --out r.json",
     "--out and --recipe: expected two files, found r.json twice"},
    {"infer --model m.onnx --in x.npy --recipe r.json --calibrate-on c.npy --out y=c.npy",
     "--out and --calibrate-on: expected two files, found c.npy twice"},
    {"eval --net nosuch --data clicks", "unknown network 'nosuch'"},
    {"eval --net lenet --data images:round,normalize=none", "round"},
    {"eval --net lenet --data text:round", "round"},
    {kEval + "--recipe mxfp44", "did you mean 'mxfp4'"},
    {"train --net none.onnx --data text:small.txt", "none.onnx"},
    {"train --net lanet --data glyph", "glyphs"},
    {kTrain + "--recipe none.json", "none.json"},
    {kTrain + "--optimizer sgd --lr 1e30 --warmup 0 --quiet", "training diverged"},
    {"export --net lenet.safetensors --data glyphs --out ./lenet.safetensors",
     "--out and --net: expected two files"},
    {"report nosuchdir", "numemu: nosuchdir: no such folder\n"},
    {"report void", "expected rows.jsonl"},
    {"config --print none.json", "none.json"},
    {"config --print mxfp44", "did you mean 'mxfp4'"},
    // What files hold.
    {"infer --quiet --model bad.onnx --in a.npy --out z.npy", "bad.onnx: byte "},
    {"infer --quiet --model m.onnx --in last.npy --out z.npy",
     "last.npy: expected an array of shape [1, 2, 3, 3] for image, found [1, 3, 3, 2]"},
    {"infer --quiet --model m.onnx --in scalar.npy --out z.npy",
     "scalar.npy: expected an array with samples"},
    {"infer --quiet --model two.onnx --in a=none.npy --in b=b.npy --out z.npy",
     "none.npy: expected an array with samples"},
    {"infer --quiet --model two.onnx --in a.npy --in b.npy --out z.npy",
     "--in: expected a=FILE, the model's inputs are a, b"},
    {"infer --quiet --model two.onnx --in a=a.npy --out z.npy",
     "--in: expected b=FILE, the model's inputs are a, b"},
    {kArrays + "--in c=a.npy --out z.npy", "--in: the model has no input 'c'"},
    {"infer --quiet --model two.onnx --in a=a.npy --in b=one.npy --out z.npy",
     "one.npy: expected as many samples as the other inputs"},
    {kArrays + "--out mean=z.npy", "--out: the model has no output 'mean'"},
    {kArrays + "--in a=a.npy --out z.npy", "--in: a is given twice"},
    {kArrays + "--out z.npy --out sum=w.npy", "--out: sum is given twice"},
    {kArrays + "--out z.npy --fold-batch-norm",
     "--fold-batch-norm: expected a model of one output"},
    {kArrays + "--out z.npy --recipe int99.json", "int99"},
    {"infer --quiet --model mlp --in small.npy --out z.npy",
     "small.npy: expected [n, 28, 28, 1], found [2, 8, 8, 1]"},
    {"infer --quiet --model lenet --in planes.npy --out z.npy",
     "planes.npy: expected [n, 28, 28, 1], found [2, 1, 28, 28]"},
    {"infer --quiet --model lenet --in u8.npy --out z.npy",
     "u8.npy: uint8: expected --normalize imagenet|cifar|none, or --mean and --deviation"},
    {"infer --quiet --model wide.onnx --in wide.npy --out z.npy --recipe int8.json "
     "--calibrate-on text:small.txt",
     "--calibrate-on: expected samples of shape [48], found [64] in text:small.txt"},
    {"infer --quiet --model wide.onnx --in wide.npy --out z.npy --recipe int8.json "
     "--calibrate-on z=wide.npy",
     "--calibrate-on: expected x=FILE"},
    {kExport + "--recipe nvfp4 --out m2.onnx",
     "conv1: an activation in blocks of nvfp4, whose scales no operator of ONNX computes, cannot be "
     "exported; take --out FILE.safetensors"},
    {kExport + "--in x.npy --out m2.onnx", "--data: expected either a data set or arrays, by --in"},
    {kExport + "--recipe dynamic.json --out m2.onnx",
     "conv1: an activation without one calibrated scale"},
    {kExport + "--recipe rotated.json --out m2.onnx",
     "fc1: a transform of operands (transform) cannot be exported"},
    {kExport + "--recipe rotated.json --out m2.safetensors",
     "fc1: a transform of operands (transform) cannot be exported"},
    {"export --net resnet20=resnet20.safetensors --data "
     "npy:x=images.npy,y=y.npy,test=16,classes=10 --samples 16 --recipe shift.json --quiet --out "
     "m2.onnx",
     "batch normalisation by shifts (norm) cannot be exported"},
    {"sweep empty.json", "empty.json: expected at least one point"},
    {"sweep --dry-run empty.json", "empty.json: expected at least one point"},
    {"config --print unit.json", "unknown key"},
    {"config --print mxfp5.json", "mxfp5.json: roles.weight.format: unknown block format"},
    {"config --print s.json", "s.json"},
};

/// Of a program of its own.
const std::vector<Refusal> kOfExperiments = {
    {"experiment sensitivty --quiet", "did you mean 'sensitivity'"},
    {kExperiment + "--size smoky", "did you mean 'smoke'"},
    {kExperiment + "--set format=int4", "did you mean 'formats'"},
    {kExperiment + "--set formats", "--set: expected key=value, not 'formats'"},
    {kExperiment + "--set images=many",
     "--set: images: expected a whole number in 1 to 100000000, not 'many'"},
    {kExperiment + "--set roles=gradient",
     "--set: roles: expected both, weight or activation, not 'gradient'"},
    {kExperiment + "--seed=-1", "--seed"},
    {"experiment mvue --size smoke --memory nothing", "--memory"},
    {kExperiment + "--size smoke --out other",
     "other/experiment.json: results of experiment \"zap\", not of \"sensitivity\"; use --fresh or "
     "--out other-2"},
};

}  // namespace

TEST_CASE("what commands on networks refuse is one line, and nothing is written", "[fast]") {
  const Scratch s;
  write_networks(s);
  write_data(s);
  write_recipes(s);
  std::filesystem::create_directory(s.path + "/void");
  const std::string model = read_file(s.path + "/m.onnx");
  check_refusals(s, kRefusals);
  for (const Refusal& refusal : kOfExperiments) {
    INFO(refusal.arguments);
    check_refused(s.run(refusal.arguments), refusal.text);
  }
  CHECK(read_file(s.path + "/m.onnx") == model);
  for (const char* const file : {"z.npy", "w.npy", "m2.onnx", "m2.safetensors"})
    CHECK_FALSE(std::filesystem::exists(s.path + "/" + file));
}

TEST_CASE("rows that cannot be continued are refused before the work", "[fast]") {
  const Scratch s;
  write_networks(s);
  write_recipes(s);
  REQUIRE(s.run("sweep points.json --out o --quiet --no-predictions").code == 0);
  check_refused(s.run("sweep points.json --out o --quiet"), "a row from another sweep");
}

}  // namespace network_refusals_test
