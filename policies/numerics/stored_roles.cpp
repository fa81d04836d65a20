#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "emu/net/product.hpp"
#include "emu/net/tensor.hpp"
#include "emu/unit/gather.hpp"
#include "emu/unit/unit.hpp"
#include "formats/digest.hpp"
#include "policies/numerics/layer_state.hpp"
#include "policies/numerics/random_identity.hpp"
#include "policies/numerics/role_numerics.hpp"
#include "policies/numerics/stored_tensor.hpp"
#include "policies/numerics/unit_result.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {
namespace {

/// An infinite or NaN element and its place.
struct Special {
  std::size_t at;
  float value;
};

/// Those of a tensor, which becomes zero there.
std::vector<Special> take_specials(net::Tensor& x) {
  std::vector<Special> specials;
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    if (std::isfinite(x.data[i])) continue;
    specials.push_back({i, x.data[i]});
    x.data[i] = 0;
  }
  return specials;
}

/// sum[i] = RNE_f32 of the unit's dot of addends[0][i], addends[1][i], ... with ones, for n
/// elements, which may be those of an addend. The unit takes float32 operands. `random_of` gives
/// the random bits of a tile of 4096 elements, for units with stochastic registers.
void add_on_unit(const unit::Unit& unit, std::span<const float* const> addends, std::int64_t n,
                 float* sum,
                 const std::function<net::ProductRandom(std::int64_t tile)>& random_of) {
  constexpr std::int64_t kTile = 4096;
  const auto depth = static_cast<std::int64_t>(addends.size());
  const net::Tensor ones({1, depth}, 1);
  for (std::int64_t first = 0; first < n; first += kTile) {
    const std::int64_t m = std::min(kTile, n - first);
    net::Tensor values({m, depth});
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t i = 0; i < m; ++i)
        values.data[static_cast<std::size_t>(i * depth + k)] =
            addends[static_cast<std::size_t>(k)][first + i];
    }
    const unit::Gather values_rows = unit::Gather::matrix(m, depth),
                       ones_row = unit::Gather::matrix(1, depth);
    const net::Product product{
        .layer = "exchange",
        .m = m,
        .n = 1,
        .k = depth,
        .a = {.source = &values, .gather = &values_rows, .stack = {.width = depth}},
        .b = {.source = &ones, .gather = &ones_row, .stack = {.width = depth}},
        .d = sum + first};
    UnitResult result(unit, product);
    net::multiply(unit, product, {&float32(), values.data.data()}, {&float32(), ones.data.data()},
                  random_of(first / kTile), result.target());
    result.finish({}, {});
  }
}

/// A role is a row of emu/net/roles.def with `.stored`, and the hook below that asks role() for it:
/// most end in store(). A hook that no role answers yet is overridden here alone.
class Stored final : public StoredRoles {
 public:
  explicit Stored(const BoundRecipe& recipe);

  void freeze() override { frozen_ = true; }
  void forget_tables() override {
    for (auto& [name, node] : nodes_) node->table.reset();
  }

  net::SharedTensor table(const net::Step&, std::string_view layer,
                          const net::Tensor& parameter) override;
  net::Saved save(const net::Step&, const net::Kept&, const net::SharedTensor&) override;
  net::SharedTensor restore(const net::Step&, const net::Kept&, net::Saved) override;
  void optimizer_state(const net::Step& step, std::string_view parameter, std::string_view name,
                       net::Tensor& state) override {
    if (const RoleQuantizer* const role = this->role(parameter, state_part(name)))
      store(step, *role, state.shape, state.data.data(), 1, parameter, "state", name);
  }
  void vector_result(const net::Step&, std::string_view layer, std::string_view op,
                     net::Tensor&) override;
  net::NormRule norm(const net::Step&, std::string_view) override {
    return {.synchronised = recipe_->exchange().synchronised};
  }
  std::unique_ptr<net::Exchange> exchange(const net::Step&, const net::Senders&) override;

 private:
  struct Node {
    explicit Node(const LayerRecipe& recipe) : quantizers(quantizers_of(recipe)) {}

    LayerQuantizers quantizers;
    std::mutex mutex;
    net::SharedTensor table;  ///< quantized, after freeze()
  };

  /// Of a node, an input or a parameter; null where the recipe has none of that name.
  Node* node_of(std::string_view name) const;
  /// What the recipe says of it; null where it stays float32.
  const RoleQuantizer* role(std::string_view name, RolePart part) const {
    const Node* const node = node_of(name);
    return node == nullptr || !node->quantizers[part] ? nullptr : &*node->quantizers[part];
  }
  /// Rewrites a tensor by the policy of its role: random bits are those of LAYER/ROLE/STEP/USE.
  void store(const net::Step&, const RoleQuantizer&, const net::Shape&, float* x,
             std::int64_t samples, std::string_view layer, std::string_view role,
             std::string_view use) const;

  const BoundRecipe recipe_;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> nodes_;  ///< none: nothing is stored
  std::vector<std::string> parameters_;
  bool frozen_ = false;
};

Stored::Stored(const BoundRecipe& recipe) : recipe_(recipe) {
  bool stores = false;
  for (const net::Node& node : recipe.graph().nodes) {
    const LayerRecipe& r = recipe.layer(node.name);
    nodes_[node.name] = std::make_unique<Node>(r);
    for (const RoleRow& row : role_table()) {
      for (const RoleRow::Part& part : row.parts) stores = stores || (row.stored && r[part.part]);
    }
  }
  if (!stores) nodes_.clear();
  for (const net::Parameter* parameter : recipe.graph().parameters())
    parameters_.push_back(parameter->name);
}

Stored::Node* Stored::node_of(std::string_view name) const {
  if (nodes_.empty()) return nullptr;
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) return found->second.get();
  // "conv1.weight" belongs to the node "conv1".
  const auto owner = nodes_.find(name.substr(0, name.rfind('.')));
  return owner != nodes_.end() ? owner->second.get() : nullptr;
}

void Stored::store(const net::Step& step, const RoleQuantizer& quantizer, const net::Shape& shape,
                   float* x, std::int64_t samples, std::string_view layer, std::string_view role,
                   std::string_view use) const {
  RandomPiece random;
  if (quantizer.stochastic()) {
    const bool inference = step.phase == net::Phase::inference;
    random.source = stored_random(recipe_->seed(), layer, role, step, use);
    if (inference && !shape.empty() && shape[0] > 0)
      random.first = step.first_sample() * (net::element_count(shape) / shape[0]);
  }
  fake_quantize(quantizer, shape, x, samples, random);
}

net::SharedTensor Stored::table(const net::Step& step, std::string_view name,
                                const net::Tensor& parameter) {
  const RoleQuantizer* const role = this->role(name, RolePart::embedding);
  // Scales of quantizers are no tables: they have no rows.
  if (role == nullptr || parameter.shape.size() < 2) return nullptr;
  const auto quantized = [&] {
    auto values = std::make_shared<net::Tensor>(parameter);
    RandomPiece random;
    if (role->stochastic())
      random.source = stored_random(recipe_->seed(), name, "embedding", step, "fprop");
    fake_quantize(*role, values->shape, values->data.data(), 1, random);
    return values;
  };
  if (!frozen_ || step.phase == net::Phase::training) return quantized();
  Node& node = *node_of(name);
  const std::lock_guard lock(node.mutex);
  if (node.table == nullptr) node.table = quantized();
  return node.table;
}

void Stored::vector_result(const net::Step& step, std::string_view name, std::string_view,
                           net::Tensor& x) {
  const RoleQuantizer* const role = this->role(name, RolePart::vector);
  if (role == nullptr) return;
  const bool apart = frozen_ && step.phase == net::Phase::inference && !x.shape.empty();
  // The -infinity of a mask is not a number to round: it would saturate, or make its block NaN.
  const std::vector<Special> specials = take_specials(x);
  store(step, *role, x.shape, x.data.data(), apart ? x.dim(0) : 1, name, "vector", "fprop");
  for (const Special& special : specials) x.data[special.at] = special.value;
}

net::Saved Stored::save(const net::Step& step, const net::Kept& kept,
                        const net::SharedTensor& tensor) {
  const RoleQuantizer* const role = this->role(kept.layer, RolePart::saved);
  const bool linear = kept.use == net::Use::linear, sign = kept.use == net::Use::sign;
  if (role == nullptr || !(linear || sign)) return {tensor};
  if (sign) return {.tensor = nullptr, .shape = tensor->shape, .packed = pack_signs(*tensor)};
  RandomPiece random;
  if (role->stochastic())
    random.source = stored_random(recipe_->seed(), kept.layer, "saved", step, "save");
  FlagCounts flags;
  return {.tensor = nullptr, .shape = tensor->shape, .packed = pack(*role, *tensor, random, flags)};
}

net::SharedTensor Stored::restore(const net::Step&, const net::Kept& kept, net::Saved saved) {
  if (saved.tensor != nullptr) return saved.tensor;
  return std::make_shared<const net::Tensor>(
      kept.use == net::Use::sign
          ? restore_signs(saved.shape, saved.packed)
          : restore_packed(*role(kept.layer, RolePart::saved), saved.shape, saved.packed));
}

std::unique_ptr<net::Exchange> Stored::exchange(const net::Step& step,
                                                const net::Senders& senders) {
  const ExchangePolicy& policy = recipe_->exchange();
  net::ExchangeLinks links{.order = senders.order.value_or(policy.order), .carry = {}, .add = {}};
  if (!nodes_.empty()) {
    links.carry = [this, step](std::size_t p, std::string_view sender, net::Tensor& x) {
      const std::string& name = parameters_.at(p);
      const RoleQuantizer* const role = this->role(name, RolePart::exchange);
      if (role == nullptr) return stored_bits(std::nullopt, x.shape);
      store(step, *role, x.shape, x.data.data(), 1, name, "exchange", sender);
      return stored_bits(role->policy(), x.shape);
    };
  }
  if (policy.unit != nullptr) {
    links.add = [this, &policy, step](std::size_t p, std::string_view name,
                                      std::span<const float* const> addends, std::int64_t n,
                                      float* sum) {
      const std::string use = fmt::format("exchange/{}", name);
      add_on_unit(*policy.unit, addends, n, sum, [&](std::int64_t tile) {
        return net::ProductRandom{
            recipe_->seed(),
            tensor_word(fmt::format("{}/{}/{}/{}", parameters_.at(p), use, step.index, tile))};
      });
    };
  }
  return net::make_exchange(senders.workers, std::move(links));
}

}  // namespace

std::unique_ptr<StoredRoles> stored_roles(const BoundRecipe& recipe) {
  return std::make_unique<Stored>(recipe);
}

}  // namespace numemu::policies
