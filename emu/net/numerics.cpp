// The float32 defaults of the moments, and the names of roles and products.
#include "emu/net/numerics.hpp"

#include <array>
#include <string>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/product.hpp"
#include "emu/net/tensor.hpp"
#include "emu/unit/unit.hpp"
#include "formats/error.hpp"

namespace numemu::net {

std::string_view to_string(Role role) {
  constexpr std::array<std::string_view, kRoleCount> kNames{
#define NUMEMU_ROLE(name, ...) #name,
#include "emu/net/roles.def"
#undef NUMEMU_ROLE
  };
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view to_string(GemmKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"fprop", "dgrad", "wgrad"};
  return kNames[static_cast<std::size_t>(kind)];
}

void Numerics::product(const Step&, const Product& product) {
  static const unit::Unit& unit = unit::find_unit("f32.sequential");
  static const Format& format = find_format("float32");
  require_elements(*product.a.source, product.layer);
  require_elements(*product.b.source, product.layer);
  multiply(unit, product, {&format, product.a.source->data.data()},
           {&format, product.b.source->data.data()});
}

void Numerics::update(const Step&, const Update& update) {
  float* const value = update.value->data.data();
  const float* const delta = update.delta->data();
  for_each_element(update.value->size(),
                   [=](std::int64_t i) { value[i] = neutral(value[i] + delta[i]); });
}

std::vector<Tensor> Numerics::exchange(const Step&, std::vector<WorkerGradient> gradients) {
  std::vector<std::vector<Tensor>> workers;
  for (WorkerGradient& worker : worker_means(std::move(gradients)))
    workers.push_back(std::move(worker.parameters));
  return mean_of(std::move(workers));
}

namespace {

void require_equal_shapes(const std::vector<WorkerGradient>& gradients) {
  const std::vector<Tensor>& first = gradients.front().parameters;
  for (const WorkerGradient& given : gradients) {
    bool same = given.parameters.size() == first.size();
    for (std::size_t p = 0; same && p < first.size(); ++p)
      same = given.parameters[p].shape == first[p].shape;
    if (same) continue;
    throw Error("exchange: worker " + std::to_string(given.worker) +
                " sent gradients of other shapes than worker " +
                std::to_string(gradients.front().worker));
  }
}

}  // namespace

std::vector<Tensor> mean_of(std::vector<std::vector<Tensor>> parts) {
  std::vector<Tensor> mean = std::move(parts.front());
  if (parts.size() == 1) return mean;
  const float count = static_cast<float>(parts.size());
  for (std::size_t p = 0; p < mean.size(); ++p) {
    float* const sum = mean[p].data.data();
    for (std::size_t w = 1; w < parts.size(); ++w) {
      const float* const part = parts[w][p].data.data();
      for_each_element(mean[p].size(), [=](std::int64_t i) { sum[i] += part[i]; });
    }
    for_each_element(mean[p].size(), [=](std::int64_t i) { sum[i] = neutral(sum[i] / count); });
  }
  return mean;
}

std::vector<WorkerGradient> worker_means(std::vector<WorkerGradient> gradients) {
  if (gradients.empty()) throw Error("exchange: no worker sent a gradient");
  require_equal_shapes(gradients);
  std::vector<WorkerGradient> means;
  std::vector<std::vector<Tensor>> batches;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::int64_t worker = gradients[i].worker;
    batches.push_back(std::move(gradients[i].parameters));
    if (i + 1 < gradients.size() && gradients[i + 1].worker == worker) continue;
    means.push_back({worker, 0, mean_of(std::exchange(batches, {}))});
  }
  return means;
}

}  // namespace numemu::net
