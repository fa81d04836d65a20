// The float32 defaults of the hooks, and the names of roles and products.
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
  const Format& format = float32();
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

Exchanged exchange_all(Numerics& numerics, const Step& step,
                       std::vector<WorkerGradient> gradients) {
  const std::unique_ptr<Exchange> exchange =
      numerics.exchange(step, {.workers = std::ssize(gradients)});
  for (WorkerGradient& gradient : gradients) exchange->add(std::move(gradient));
  return exchange->finish();
}

}  // namespace numemu::net
