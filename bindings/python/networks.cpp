// Networks: what numemu/networks.py makes its functions of.
#include "api/networks.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "bindings/python/arrays.hpp"
#include "bindings/python/call.hpp"
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

/// Arrays of the caller, read where they lie.
struct Lent {
  std::vector<Given> given;
  std::vector<net::NamedTensor> tensors;
};

/// Of a dict by the inputs' names.
Lent tensors_of(py::handle arrays) {
  Lent lent;
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(arrays)) {
    const std::string name = text_of(key, {"infer", "name of an input"});
    if (py::isinstance<py::array>(value) && py::cast<py::array>(value).dtype().kind() == 'u' &&
        py::cast<py::array>(value).dtype().itemsize() == 1)
      throw Error((name.empty() ? "input" : name) +
                  ": dtype: expected numbers, found uint8; of pixels p give (p / 255 - mean) / "
                  "deviation");
    const Array& x =
        lent.given.emplace_back(float32_of(value, name.empty() ? "input" : name.c_str())).array;
    lent.tensors.push_back(
        {name, net::Tensor::borrowed({x.shape.begin(), x.shape.end()}, x.as<float>())});
  }
  return lent;
}

py::dict arrays_of(std::map<std::string, net::Tensor>&& outputs) {
  py::dict arrays;
  for (auto& [name, y] : outputs) arrays[py::str(name)] = numpy_of(std::move(y));
  return arrays;
}

py::object evaluate(const Arguments& a) {
  api::OpenRequest names;
  api::EvaluateRequest asked;
  Options options(a.get<py::object>(0), "eval");
  options.read(names);
  options.read(asked);
  options.require_all_read();
  LongWork work(a[1], a[2]);
  Json row;
  work.run([&] { row = to_json(api::evaluate(names, asked, work.context()).row); });
  return python_of(row);
}

/// What infer() and prepare() are given: options, inputs, those of calibration, names of outputs.
struct InferCall {
  api::InferRequest asked;
  Lent arrays, calibration;
};
InferCall infer_call(const Arguments& a) {
  InferCall call{.asked = {}, .arrays = tensors_of(a[1]), .calibration = tensors_of(a[2])};
  api::InferRequest& asked = call.asked;
  Options options(a.get<py::object>(0), "infer");
  options.read(asked);
  options.require_all_read();
  asked.arrays = call.arrays.tensors;
  asked.calibration = call.calibration.tensors;
  if (asked.arrays.empty()) throw usage_error("infer: expected an array for every input");
  asked.keep =
      a.get<std::optional<std::vector<std::string>>>(3).value_or(std::vector<std::string>());
  asked.keep_all = asked.keep.empty();
  return call;
}

py::object infer(const Arguments& a) {
  InferCall call = infer_call(a);
  api::InferRequest& asked = call.asked;
  asked.digests = true;
  LongWork work(a[4], a[5]);
  api::Inferred inferred;
  Json report;
  work.run([&] {
    inferred = api::infer(asked, work.context());
    report = api::json_of(inferred);
  });
  py::dict outputs;
  for (api::Inferred::Output& output : inferred.outputs)
    outputs[py::str(output.name)] = numpy_of(std::move(output.values));
  return py::make_tuple(outputs, python_of(report));
}

/// api::Inference for dicts of arrays.
class NetworkSession {
 public:
  explicit NetworkSession(const Arguments& a) {
    const InferCall call = infer_call(a);
    LongWork work(py::none(), a[4]);
    // The work that it hears of later is that of run(), which hears of nothing.
    api::Context context = work.context();
    context.on_work = {};
    context.say = context.warn = [](const std::string&) {};
    work.run([&] { inference_ = std::make_unique<api::Inference>(call.asked, context); });
  }

  py::object run(const Arguments& a) const {
    const Lent inputs = tensors_of(a[0]);
    LongWork work{py::none(), py::none()};
    std::map<std::string, net::Tensor> outputs;
    work.run([&] {
      const std::lock_guard lock(mutex_);  // of threads of Python
      outputs = inference_->run(inputs.tensors);
    });
    return arrays_of(std::move(outputs));
  }

  py::object calibration() const {
    const auto& on = inference_->calibration();
    if (!on) return py::none();
    return py::dict("samples"_a = on->samples, "of"_a = on->available, "from"_a = on->from);
  }

 private:
  mutable std::mutex mutex_;
  std::unique_ptr<api::Inference> inference_;
};

py::object train(const Arguments& a) {
  api::TrainRequest asked;
  Options options(a.get<py::object>(0), "train");
  options.read(asked);
  options.require_all_read();
  const py::handle on_epoch = a[1];
  LongWork work(a[2], a[3]);
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
      work.call([on_epoch, json = numemu::json_of(epoch)] { on_epoch(python_of(json)); });
  };
  Json trained;
  work.run([&] { trained = api::json_of(api::train(asked, work.context(), hooks)); });
  return python_of(trained);
}

py::object tune(const Arguments& a) {
  api::TuneRequest asked;
  Options options(a.get<py::object>(0), "tune");
  options.read(asked);
  options.require_all_read();
  LongWork work(a[1], a[2]);
  Json tuned;
  work.run([&] { tuned = api::json_of(api::tune(asked, work.context())); });
  return python_of(tuned);
}

/// Names of an .onnx file's inputs and outputs; None for another model.
py::object ports(const Arguments& a) {
  const auto model = a.get<std::string>(0);
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

py::object recipe(const Arguments& a) {
  const std::string name = PyDict_Check(a[0].ptr()) ? json_of(a[0], "recipe").dump()
                           : a[0].is_none()         ? ""
                                                    : a.get<std::string>(0);
  return python_of(api::open_recipe(name, folders()).json());
}

py::object prepare(const Arguments& a) { return py::cast(std::make_unique<NetworkSession>(a)); }

py::object run_session(NetworkSession const& session, const Arguments& a) { return session.run(a); }

py::object options(const Arguments& a) { return described_options(a.get<std::string>(0)); }

// What numemu/networks.py calls; `options` are dicts of options by name.
Signature evaluate_signature("_evaluate", "options, progress, say", "Network.eval()");
Signature infer_signature("_infer", "options, arrays, calibration, keep, progress, say",
                          "Network.infer()");
Signature prepare_signature("_prepare", "options, arrays, calibration, keep, say",
                            "Network.prepare()");
Signature run_signature("run", "arrays", "Prepared.infer()");
Signature train_signature("_train", "options, on_epoch, progress, say", "numemu.train()");
Signature tune_signature("_tune", "options, progress, say", "Network.tune()");
Signature ports_signature("_ports", "model", "Network.inputs and outputs");
Signature recipe_signature("_recipe", "recipe", "numemu.recipe()");
Signature options_signature("_options", "command",
                            "Of each option of a command: name, default, help and type.");

}  // namespace

void add_networks(py::module_& m) {
  add_function<evaluate_signature, &evaluate>(m);
  add_function<infer_signature, &infer>(m);
  add_function<train_signature, &train>(m);
  add_function<tune_signature, &tune>(m);
  add_function<ports_signature, &ports>(m);
  add_function<recipe_signature, &recipe>(m);
  add_function<options_signature, &options>(m);
  m.def("_recipes", [] { return experiments::shipped_recipes(folders().data, true); });
  py::class_<NetworkSession> session(m, "_Inference");
  session.def_property_readonly("calibration", &NetworkSession::calibration);
  add_function<prepare_signature, &prepare>(m);
  add_method<run_signature, NetworkSession, &run_session>(session);
}

}  // namespace numemu::python
