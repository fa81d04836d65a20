// The float32 defaults of the moments, and the names of roles and products.
#include "emu/net/numerics.hpp"

#include <array>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/product.hpp"
#include "emu/unit/unit.hpp"
#include "formats/error.hpp"

namespace numemu::net {

std::string_view to_string(Role role) {
  constexpr std::array<std::string_view, 3> kNames{"weight", "activation", "gradient"};
  return kNames[static_cast<std::size_t>(role)];
}

std::string_view to_string(GemmKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"fprop", "dgrad", "wgrad"};
  return kNames[static_cast<std::size_t>(kind)];
}

void Numerics::product(const Product& product) {
  static const unit::Unit& unit = unit::find_unit("f32.sequential");
  static const Format& format = find_format("float32");
  multiply(unit, product, {&format, product.a.source->data.data()},
           {&format, product.b.source->data.data()});
}

void Numerics::update(const Update& update) {
  float* const value = update.value->data.data();
  const float* const delta = update.delta->data();
  for_each_element(update.value->size(),
                   [=](std::int64_t i) { value[i] = neutral(value[i] + delta[i]); });
}

std::vector<Tensor> Numerics::exchange(std::vector<std::vector<Tensor>> gradients) {
  if (gradients.empty()) throw Error("exchange: no worker sent a gradient");
  std::vector<Tensor> mean = std::move(gradients.front());
  if (gradients.size() == 1) return mean;
  const float workers = static_cast<float>(gradients.size());
  for (std::size_t p = 0; p < mean.size(); ++p) {
    for (std::size_t w = 1; w < gradients.size(); ++w) {
      if (gradients[w].size() != mean.size() || gradients[w][p].shape != mean[p].shape) {
        throw Error("exchange: worker " + std::to_string(w) +
                    " sent gradients of other shapes than worker 0");
      }
    }
    float* const sum = mean[p].data.data();
    for (std::size_t w = 1; w < gradients.size(); ++w) {
      const float* const part = gradients[w][p].data.data();
      for_each_element(mean[p].size(), [=](std::int64_t i) { sum[i] += part[i]; });
    }
    for_each_element(mean[p].size(), [=](std::int64_t i) { sum[i] = neutral(sum[i] / workers); });
  }
  return mean;
}

}  // namespace numemu::net
