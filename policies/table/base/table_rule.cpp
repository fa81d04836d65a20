#include "policies/table/base/table_rule.hpp"

#include <fmt/format.h>

#include <mutex>

#include "emu/net/gemm_layers.hpp"
#include "formats/error.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

class TablePolicy final : public Policy {
 public:
  TablePolicy(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const net::Node& node : binding().recipe.graph().nodes) {
      if (net::table_of(node) == nullptr || binding().find(node.name) == nullptr) continue;
      if (binding().recipe.layer(node.name)[RolePart::embedding]) {
        throw Error(fmt::format("{}: contradicts roles.embedding of layer {}: expected one of them",
                                binding().where, node.name));
      }
    }
  }

  net::SharedTensor table(const net::Step& step, std::string_view layer,
                          const net::Tensor& parameter) override {
    const TableRule* const rule = binding().of<TableRule>(layer);
    if (rule == nullptr) return Forwarding::table(step, layer, parameter);
    const auto made = [&] {
      return std::make_shared<const net::Tensor>(rule->quantized(parameter));
    };
    if (!frozen_ || step.phase == net::Phase::training) return made();
    const std::lock_guard lock(mutex_);
    net::SharedTensor& kept = tables_[std::string(layer)];
    if (kept == nullptr) kept = made();
    return kept;
  }

  void freeze(const net::Graph&, const Calibration&) override {
    frozen_ = true;
    tables_.clear();
  }

 private:
  bool frozen_ = false;
  std::mutex mutex_;
  std::map<std::string, net::SharedTensor, std::less<>> tables_;  ///< after freeze()
};

}  // namespace

std::unique_ptr<Policy> make_table_policy(Binding binding, net::Numerics& inner) {
  return std::make_unique<TablePolicy>(std::move(binding), inner);
}

const TableRule* table_rule_of(const BoundRecipe& recipe, std::string_view layer) {
  const PolicyChoice* const choice = recipe.chosen("table", layer);
  return choice == nullptr ? nullptr : static_cast<const TableRule*>(choice->options.get());
}

}  // namespace numemu::policies
