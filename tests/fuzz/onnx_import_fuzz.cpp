// ONNX files as networks: imported whole, with constants folded and shapes followed, for a batch
// and as one sample of given arrays, and run.
#include <deque>
#include <set>

#include "emu/net/forward.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/model/onnx/import.hpp"
#include "emu/net/run_context.hpp"
#include "formats/error.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

using namespace numemu;

constexpr std::int64_t kRunBytes = 1 << 20;  ///< what a run of the network may take
/// What an import of one sample may: constants, and what the arrays decide.
constexpr std::int64_t kDecidedBytes = 4 << 20;

/// Small whole numbers, also negative ones: values, indices, axes and extents.
net::Tensor numbers(const net::Shape& shape) {
  net::Tensor x(shape);
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = static_cast<float>(i * 5 % 7) - (i % 11 == 10 ? 2 : 0);
  return x;
}

void run_batch(const net::ImportedModel& model, std::int64_t samples) {
  net::RunContext context;
  context.memory.set_budget(kRunBytes);
  const net::RunScope scope(context);
  const std::vector<net::Shape> shapes = net::batch_shapes(model.graph, samples);
  net::require_memory(model.graph, shapes, net::Keeps::nothing);
  std::vector<net::Tensor> inputs;
  for (const net::Shape& shape : shapes) inputs.push_back(numbers(shape));
  net::Numerics exact;
  net::forward(model.graph, inputs, exact);
}

void run_one_sample(const std::string& path) {
  const net::OnnxModel file = net::read_onnx(path);
  net::ImportOptions options{.input_shapes = {}, .one_sample = true, .arrays = {}};
  if (!net::has_all_extents(file, options)) throw Error("an extent is open");
  std::deque<net::Tensor> arrays;
  for (const net::OnnxValueInfo& info : file.graph.inputs) {
    net::Shape shape;
    for (const net::OnnxDimension& dimension : info.dims) shape.push_back(dimension.extent);
    if (shape.size() > 8 || net::element_count(shape) > 4096) throw Error("a large input");
    options.arrays.emplace(info.name, &arrays.emplace_back(numbers(shape)));
  }
  net::RunContext context;
  context.memory.set_budget(kDecidedBytes);
  const net::RunScope scope(context);
  run_batch(net::import_onnx(file, options), 1);
}

}  // namespace

NUMEMU_FUZZ_ONNX_TARGET(onnx_import)(const std::uint8_t* data, std::size_t size) {
  static fuzz::InputFile file;
  file.write(fuzz::text_of(data, size));
  fuzz::run(size, fuzz::kPromised, [] { run_one_sample(file.path()); });
  bool imported = false;
  fuzz::run(size, fuzz::kPromised, [&] {
    const net::ImportedModel model = net::import_onnx(net::read_onnx(file.path()));
    imported = true;
    run_batch(model, 2);
  });
  fuzz::loaded = imported;
  return 0;
}
