// numemu._core.Products: what numemu.torch calls for every product of a module.
#include "api/products.hpp"

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/python/arrays.hpp"
#include "bindings/python/json.hpp"
#include "bindings/python/long_work.hpp"
#include "bindings/python/python.hpp"
#include "formats/error.hpp"

namespace numemu::python {
namespace {

using api::ForeignLayer, api::ProductCall, api::ProductMode, api::Products;
using FloatArray = py::array_t<float, py::array::c_style>;

net::Shape shape_of(const FloatArray& x) { return {x.shape(), x.shape() + x.ndim()}; }
/// Reads the array where it lies.
net::Tensor tensor_of(const FloatArray& x) { return net::Tensor::borrowed(shape_of(x), x.data()); }

net::ConvAxis axis_of(const py::handle& given) {
  const auto [stride, dilation, before, after] =
      given.cast<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>>();
  return {.stride = stride, .dilation = dilation, .pad_before = before, .pad_after = after};
}

ForeignLayer layer_of(const py::dict& given) {
  ForeignLayer layer;
  layer.name = given["name"].cast<std::string>();
  const auto kind = given["kind"].cast<std::string>();
  layer.left = given["left"].cast<std::vector<net::Shape>>();
  if (kind == "matmul") {
    layer.kind = ForeignLayer::Kind::matmul;
    const auto second = given["second"].cast<std::string>();
    layer.second = second == "key"     ? net::Role::key
                   : second == "value" ? net::Role::value
                                       : net::Role::activation;
    layer.transpose_b = given["transpose_b"].cast<bool>();
    layer.right = given["right"].cast<std::vector<net::Shape>>();
    return layer;
  }
  const auto weight = given["weight"].cast<FloatArray>();
  const net::Tensor lent = tensor_of(weight);
  layer.weight = lent;  // a copy
  if (kind == "linear") return layer;
  layer.kind = ForeignLayer::Kind::conv;
  layer.conv.groups = given["groups"].cast<std::int64_t>();
  for (const py::handle axis : given["axes"]) layer.conv.axes.push_back(axis_of(axis));
  return layer;
}

api::Recipe recipe_of(const py::object& given) {
  if (!py::isinstance<py::str>(given)) return api::make_recipe(json_of(given, "recipe"));
  return api::open_recipe(given.cast<std::string>(), {.data = data_folder(), .cache = {}});
}

ProductCall call_of(std::size_t layer, ProductMode mode, std::int64_t at, std::int64_t repetition,
                    std::int64_t repetitions) {
  return {.layer = layer,
          .mode = mode,
          .step = mode == ProductMode::training ? at : 0,
          .first_sample = mode == ProductMode::training ? 0 : at,
          .repetition = repetition,
          .repetitions = repetitions};
}

py::object forward(Products& products, std::size_t layer, ProductMode mode, std::int64_t at,
                   std::int64_t repetition, std::int64_t repetitions, const FloatArray& left,
                   const FloatArray& right) {
  const net::Tensor first = tensor_of(left), second = tensor_of(right);
  net::Tensor output;
  {
    const py::gil_scoped_release release;
    output = products.forward(call_of(layer, mode, at, repetition, repetitions), first, second);
  }
  return numpy_of(std::move(output));
}

py::tuple backward(Products& products, std::size_t layer, ProductMode mode, std::int64_t at,
                   std::int64_t repetition, std::int64_t repetitions, const FloatArray& left,
                   const FloatArray& right, const FloatArray& gradient, bool want_left,
                   bool want_right) {
  const net::Tensor first = tensor_of(left), second = tensor_of(right), along = tensor_of(gradient);
  api::ProductGradients gradients;
  {
    const py::gil_scoped_release release;
    gradients = products.backward(call_of(layer, mode, at, repetition, repetitions), first, second,
                                  along, want_left, want_right);
  }
  return py::make_tuple(numpy_of(std::move(gradients.left)), numpy_of(std::move(gradients.right)));
}

py::list rows_of(const Products& products) {
  py::list rows;
  for (const Json& row : numemu::json_of(products.rows())) rows.append(python_of(row));
  return rows;
}

py::dict state_of(const Products& products) {
  py::dict state;
  for (const auto& [name, bytes] : products.state()) state[py::str(name)] = py::bytes(bytes);
  return state;
}

void load_state(Products& products, const py::dict& given) {
  net::NamedState state;
  for (const auto& [name, bytes] : given)
    state.emplace_back(name.cast<std::string>(), bytes.cast<std::string>());
  products.load_state(state);
}

}  // namespace

void add_products(py::module_& m) {
  py::enum_<ProductMode>(m, "ProductMode", "Which numerics compute a product.")
      .value("reference", ProductMode::reference)
      .value("inference", ProductMode::inference)
      .value("training", ProductMode::training);
  py::class_<Products>(m, "Products", "The products of a module under a recipe (numemu.torch).")
      .def(py::init([](const py::object& recipe, const py::list& given, std::int64_t samples) {
             std::vector<ForeignLayer> layers;
             for (const py::handle layer : given)
               layers.push_back(layer_of(py::reinterpret_borrow<py::dict>(layer)));
             const std::string where =
                 py::isinstance<py::str>(recipe) ? recipe.cast<std::string>() : "recipe";
             return std::make_unique<Products>(recipe_of(recipe), std::move(layers), samples,
                                               where);
           }),
           "recipe"_a, "layers"_a, "samples"_a)
      .def_property_readonly("recipe",
                             [](const Products& p) { return python_of(p.recipe().json()); })
      .def_property_readonly("ignored", &Products::ignored)
      .def("calibration_samples", &Products::calibration_samples, "available"_a)
      .def("freeze", &Products::freeze, "available"_a, "run"_a)
      .def("begin_step", &Products::begin_step, "step"_a)
      .def("end_step", &Products::end_step, "step"_a)
      .def("forward", &forward)
      .def("backward", &backward)
      .def("compare",
           [](Products& products, std::size_t layer, const FloatArray& clean,
              const FloatArray& quantized) {
             products.compare(layer, tensor_of(clean), tensor_of(quantized));
           })
      .def("reset", &Products::reset)
      .def("rows", &rows_of)
      .def("state", &state_of)
      .def("load_state", &load_state);
}

}  // namespace numemu::python
