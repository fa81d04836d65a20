// Policy quantizers: the quantizers of an ONNX file do nothing, so that the recipe's roles take
// their place.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "emu/net/ops/fixed_quantizer.hpp"
#include "formats/error.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

struct Options final : PolicyOptions {
  std::vector<Option> list() override { return {}; }
};

class Replace final : public Policy {
 public:
  Replace(Binding binding, net::Numerics& inner) : Policy(std::move(binding), inner) {
    for (const net::Node& node : this->binding().recipe.graph().nodes) {
      if (node.op->kind() == net::kFixedQuantizer && this->binding().layers.contains(node.name))
        replaced_.insert(node.name);
    }
    if (replaced_.empty())
      throw Error(fmt::format(
          "{}: replace: expected a network with quantizers of its own (QuantizeLinear followed by "
          "DequantizeLinear in an ONNX file) in the layers that choose it",
          this->binding().where));
  }

  net::SharedTensor table(const net::Step& step, std::string_view layer,
                          const net::Tensor& parameter) override {
    if (!replaced_.contains(layer)) return Forwarding::table(step, layer, parameter);
    static const net::SharedTensor nothing = std::make_shared<const net::Tensor>();
    return nothing;
  }

 private:
  std::set<std::string, std::less<>> replaced_;
};

}  // namespace

extern const PolicyKind quantizers_replace{
    .key = "quantizers",
    .name = "replace",
    .summary = "the quantizers of an ONNX file pass their inputs on; roles take their place",
    .source = "ONNX QuantizeLinear and DequantizeLinear",
    .options = make_options<Options>,
    .bind = make_policy<Replace>};

}  // namespace numemu::policies
