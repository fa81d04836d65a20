// Networks: what numemu/networks.py makes its functions of.
#include "api/networks.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "bindings/python/arrays.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/long_work.hpp"
#include "bindings/python/options.hpp"
#include "bindings/python/python.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx/file.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "formats/error.hpp"

namespace numemu::python {
namespace {

net::Tensor tensor_of(py::handle x, const std::string& name) {
  const Given numbers = float32_of(x, name.c_str());
  net::Tensor tensor(net::Shape(numbers.array.shape.begin(), numbers.array.shape.end()));
  std::copy_n(numbers.array.as<float>(), numbers.array.elements(), tensor.data.begin());
  return tensor;
}

/// Of a dict by the inputs' names.
std::vector<net::NamedTensor> tensors_of(const py::dict& arrays) {
  std::vector<net::NamedTensor> tensors;
  for (const auto& [key, value] : arrays) {
    const auto name = key.cast<std::string>();
    if (py::isinstance<py::array>(value) && py::cast<py::array>(value).dtype().kind() == 'u' &&
        py::cast<py::array>(value).dtype().itemsize() == 1)
      throw Error((name.empty() ? "input" : name) +
                  ": dtype: expected numbers, found uint8; of pixels p give (p / 255 - mean) / "
                  "deviation");
    tensors.push_back({name, tensor_of(value, name.empty() ? "input" : name)});
  }
  return tensors;
}

/// Without a copy: the array owns the tensor.
py::object array_of(net::Tensor&& tensor) {
  auto* const owned = new net::Tensor(std::move(tensor));
  const py::capsule owner(owned, [](void* p) { delete static_cast<net::Tensor*>(p); });
  return py::array_t<float>(owned->shape, owned->data.data(), owner);
}

py::dict arrays_of(std::map<std::string, net::Tensor>&& outputs) {
  py::dict arrays;
  for (auto& [name, y] : outputs) arrays[py::str(name)] = array_of(std::move(y));
  return arrays;
}

api::OpenRequest open_request(Options& options) {
  api::OpenRequest names;
  options.read("net", names.net);
  options.read("data", names.data);
  options.read_recipe(names.recipe);
  options.read("calibrate_on", names.calibrate_on);
  options.read("image_size", names.image_size);
  options.read("fold_batch_norm", names.fold_batch_norm);
  return names;
}

py::object evaluate(const py::dict& given, const py::object& progress, const py::object& say) {
  Options options(given, "eval");
  const api::OpenRequest names = open_request(options);
  api::EvaluateRequest asked;
  options.read("metrics", asked.metrics);
  options.read("images", asked.images);
  options.read("predictions", asked.predictions);
  options.read("fresh", asked.fresh);
  std::optional<std::string> gate;
  options.read("gate", gate);
  options.require_all_read();
  if (gate) asked.gate = experiments::parse_gate(*gate);
  LongWork work(progress, say);
  Json row;
  work.run([&] { row = to_json(api::evaluate(names, asked, work.context()).row); });
  return python_of(row);
}

api::InferRequest infer_request(Options& options, const py::dict& arrays,
                                const py::dict& calibration) {
  api::InferRequest asked;
  options.read("model", asked.model);
  options.read_recipe(asked.recipe);
  options.read("keep", asked.keep);
  options.read("calibrate_on", asked.calibrate_on);
  options.read("metrics", asked.metrics);
  options.read("batch", asked.batch);
  options.read("fold_batch_norm", asked.fold_batch_norm);
  options.read("noise", asked.noise);
  options.read("predictions", asked.predictions);
  options.read("digests", asked.digests);
  options.require_all_read();
  if (asked.batch < 1) throw usage_error("infer: batch: expected at least 1 sample");
  asked.keep_all = asked.keep.empty();
  asked.arrays = tensors_of(arrays);
  asked.calibration = tensors_of(calibration);
  return asked;
}

py::tuple infer(const py::dict& given, const py::dict& arrays, const py::dict& calibration,
                const py::object& progress, const py::object& say) {
  Options options(given, "infer");
  const api::InferRequest asked = infer_request(options, arrays, calibration);
  LongWork work(progress, say);
  api::Inferred inferred;
  Json report;
  work.run([&] {
    inferred = api::infer(asked, work.context());
    report = api::json_of(inferred);
  });
  py::dict outputs;
  for (api::Inferred::Output& output : inferred.outputs)
    outputs[py::str(output.name)] = array_of(std::move(output.values));
  return py::make_tuple(outputs, python_of(report));
}

/// api::Inference for dicts of arrays.
class Session {
 public:
  Session(const py::dict& given, const py::dict& arrays, const py::dict& calibration,
          const py::object& say) {
    Options options(given, "infer");
    const api::InferRequest asked = infer_request(options, arrays, calibration);
    LongWork work(py::none(), say);
    // The work that it hears of later is that of run(), which hears of nothing.
    api::Context context = work.context();
    context.on_work = {};
    context.say = context.warn = [](const std::string&) {};
    work.run([&] { inference_ = std::make_unique<api::Inference>(asked, context); });
  }

  py::dict run(const py::dict& arrays) {
    const std::vector<net::NamedTensor> inputs = tensors_of(arrays);
    LongWork work{py::none(), py::none()};
    std::map<std::string, net::Tensor> outputs;
    work.run([&] { outputs = inference_->run(inputs); });
    return arrays_of(std::move(outputs));
  }

  py::object calibration() const {
    const auto& on = inference_->calibration();
    if (!on) return py::none();
    return py::dict("samples"_a = on->samples, "of"_a = on->available, "from"_a = on->from);
  }

 private:
  std::unique_ptr<api::Inference> inference_;
};

py::object train(const py::dict& given, const py::object& on_epoch, const py::object& progress,
                 const py::object& say) {
  Options options(given, "train");
  api::TrainRequest asked;
  options.read("net", asked.net);
  options.read("data", asked.data);
  options.read_recipe(asked.recipe);
  options.read("out", asked.out);
  options.read("store", asked.store);
  options.read("save_every", asked.save_every);
  options.read("fresh", asked.fresh);
  options.read("optimizer", asked.optimizer);
  options.read("learning_rate", asked.learning_rate);
  options.read("weight_decay", asked.weight_decay);
  options.read("clip", asked.clip);
  options.read("warmup", asked.warmup);
  options.read("seed", asked.seed);
  options.read("image_size", asked.view.image_size);
  options.read("label_noise", asked.view.label_noise);
  net::TrainOptions& train = asked.train;
  options.read("objectives", train.objectives);
  options.read("schedule", train.schedule);
  options.read("momentum", train.momentum);
  options.read("nesterov", train.nesterov);
  options.read("beta1", train.beta1);
  options.read("beta2", train.beta2);
  options.read("epsilon", train.epsilon);
  options.read("epochs", train.epochs);
  options.read("patience", train.patience);
  options.read("batch", train.batch);
  options.read("workers", train.workers);
  options.read("micro_batches", train.micro_batches);
  options.read("local_steps", train.local_steps);
  options.read("copies", train.copies);
  std::optional<std::map<std::string, std::int64_t>> augment;
  options.read("augment", augment);
  options.require_all_read();
  if (augment) {
    net::Augmentation& own = asked.augment.emplace();
    for (const auto& [name, pixels] : *augment) {
      if (name == "flip")
        own.flip = pixels != 0;
      else if (name == "shift" || name == "crop")
        (name == "shift" ? own.shift : own.crop) = static_cast<int>(pixels);
      else
        throw usage_error("train: augment: expected shift, crop or flip, found " + name);
    }
  }
  LongWork work(progress, say);
  double steps = 0;
  api::TrainHooks hooks;
  hooks.on_start = [&](const net::RunState&, std::int64_t all) {
    steps = static_cast<double>(all);
  };
  hooks.on_step = [&](std::int64_t step, double) {
    work.tell("training", static_cast<double>(step), steps);
  };
  hooks.on_epoch = [&](const net::EpochMetrics& epoch, const net::Dataset&,
                       std::optional<std::size_t>) {
    if (!on_epoch.is_none())
      work.call([&on_epoch, json = numemu::json_of(epoch)] { on_epoch(python_of(json)); });
  };
  Json trained;
  work.run([&] { trained = api::json_of(api::train(asked, work.context(), hooks)); });
  return python_of(trained);
}

py::object tune(const py::dict& given, const py::object& progress, const py::object& say) {
  Options options(given, "tune");
  api::TuneRequest asked;
  options.read("net", asked.net);
  options.read("data", asked.data);
  options.read_recipe(asked.recipe);
  options.read("calibrate_on", asked.calibrate_on);
  options.read("steps", asked.steps);
  options.read("out", asked.out);
  options.read("samples", asked.samples);
  options.read("images", asked.images);
  options.read("seed", asked.seed);
  options.read("keep_batch_norm", asked.keep_batch_norm);
  options.read("fresh", asked.fresh);
  options.require_all_read();
  LongWork work(progress, say);
  Json tuned;
  work.run([&] { tuned = api::json_of(api::tune(asked, work.context())); });
  return python_of(tuned);
}

/// Names of an .onnx file's inputs and outputs; None for another model.
py::object ports(const std::string& model) {
  if (!net::names_onnx_file(model)) return py::none();
  const net::OnnxModel file = net::read_onnx(model);
  std::vector<std::string> inputs, outputs;
  for (const net::OnnxValueInfo& info : file.graph.inputs) {
    const auto constant = [&](const auto& tensor) { return tensor.name == info.name; };
    if (std::ranges::none_of(file.graph.initializers, constant)) inputs.emplace_back(info.name);
  }
  for (const net::OnnxValueInfo& info : file.graph.outputs) outputs.emplace_back(info.name);
  return py::make_tuple(inputs, outputs);
}

}  // namespace

void add_networks(py::module_& m) {
  m.def("_evaluate", &evaluate);
  m.def("_infer", &infer);
  m.def("_train", &train);
  m.def("_tune", &tune);
  m.def("_ports", &ports);
  m.def("_recipes", [] { return experiments::shipped_recipes(folders().data, true); });
  m.def("_recipe", [](const py::object& recipe) {
    Options options(py::dict("recipe"_a = recipe), "recipe");
    std::string name;
    options.read_recipe(name);
    return python_of(api::open_recipe(name, folders()).json());
  });
  py::class_<Session>(m, "_Inference")
      .def(py::init<const py::dict&, const py::dict&, const py::dict&, const py::object&>())
      .def("run", &Session::run)
      .def_property_readonly("calibration", &Session::calibration);
}

}  // namespace numemu::python
