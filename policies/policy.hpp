// A policy: one file that names its recipe key, lists its options, answers hooks and keeps its own
// state. The build finds it; nothing else names it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "emu/net/tensor.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/options.hpp"

namespace numemu::net {
struct TrainOptions;
}

namespace numemu::policies {

class BoundRecipe;
class Recipe;
struct LayerRecipe;

using PolicyOptions = OptionSet;

/// The layers that chose a policy, and what it may know of the run. All outlive the policy.
struct Binding {
  const BoundRecipe& recipe;  ///< with the network
  std::string where;          ///< starts messages
  /// By node, and by product of a node (net::GemmLayer). Kinds without options have null pointers.
  std::map<std::string, std::shared_ptr<const PolicyOptions>, std::less<>> layers;

  /// The options of the layer `name`, or of the one that the parameter `name` ("conv1.weight")
  /// belongs to; null where it did not choose the policy.
  const PolicyOptions* find(std::string_view name) const;
  /// find() as the policy's own type.
  template <class Options>
  const Options* of(std::string_view name) const {
    return static_cast<const Options*>(find(name));
  }
};

/// The float32 inputs of calibration samples [first, first + count), one tensor per graph input.
using CalibrationBatch =
    std::function<std::vector<net::Tensor>(std::int64_t first, std::int64_t count)>;

/// What a frozen recipe is calibrated on.
struct Calibration {
  std::int64_t samples = 0;
  CalibrationBatch batch;

  /// Calls use(first, inputs) for all samples, a few at a time, so that memory does not grow with
  /// their number.
  void for_each(
      const std::function<void(std::int64_t first, std::vector<net::Tensor> inputs)>& use) const;
};

/// Numerics that answer some hooks for the layers that chose the policy and pass all others on.
///
/// The operands of a product pass through the policies that override `product`, the outermost
/// first: each calls inner().product() with a copy of the product whose sides read other tensors or
/// carry a scale, then works on the result.
class Policy : public net::Forwarding {
 public:
  Policy(Binding binding, net::Numerics& inner) : Forwarding(inner), binding_(std::move(binding)) {}

  /// Freezes for inference: from here on weights do not change, and what a policy makes of one it
  /// makes once. Called from the outermost policy to the innermost. Default: nothing.
  virtual void freeze(const net::Graph&, const Calibration&) {}
  /// Throws Error, with `where` at its start, if the policy does not serve training.
  virtual void require_trainable(const std::string& /*where*/) const {}
  /// Throws Error if the policy does not serve these options of a training run.
  virtual void require_options(const std::string& /*where*/, const net::TrainOptions&) const {}

 protected:
  const Binding& binding() const { return binding_; }

 private:
  Binding binding_;
};

/// Below such a policy weights may be released in inference once the roles hold their codes
/// (policies/numerics/recipe_numerics.hpp). A base class beside Policy.
class LeavesWeights {
 public:
  virtual ~LeavesWeights() = default;
};

/// Calibration below such a policy sees other numbers than the float32 network's, so that recipes
/// with and without it share nothing.
class RewritesInputs {
 public:
  virtual ~RewritesInputs() = default;
  /// Rewrites a float32 input of a layer (its left operand), samples from number `first_sample` on,
  /// as `product` does in inference: policies below calibrate on that.
  virtual void read_input(std::string_view layer, std::int64_t first_sample,
                          net::Tensor& x) const = 0;
};

/// A row of the table of policies.
struct PolicyKind {
  std::string_view key;      ///< of the recipe: "penalty", "update.rule"; see policy_slots()
  std::string_view name;     ///< the value of the rule; "": of an object without a rule
  std::string_view summary;  ///< what it does, for help and docs
  std::string_view source;   ///< publication
  std::unique_ptr<PolicyOptions> (*options)() = nullptr;
  /// The policy on top of `inner`. Throws Error, naming both, where another part of the recipe
  /// contradicts it.
  std::unique_ptr<Policy> (*bind)(Binding, net::Numerics& inner) = nullptr;
  /// For keys that the schema of roles or updates reads (`options` is null): whether a layer's
  /// recipe chooses the policy. Null: the value of the key names it.
  bool (*chosen_by)(const Recipe&, const LayerRecipe&) = nullptr;
  /// An object of the key without a `rule` chooses this policy; at most one of a key.
  bool usual = false;
  /// Whether the policy with these options acts in inference too. Null: as those of its key do
  /// (PolicySlot::in_inference).
  bool (*in_inference)(const PolicyOptions&) = nullptr;
};

/// The usual `bind` of a row, beside make_options(): a policy that contradicts nothing.
template <class Made>
std::unique_ptr<Policy> make_policy(Binding binding, net::Numerics& inner) {
  return std::make_unique<Made>(std::move(binding), inner);
}

/// Every policy, in the order of keys, then of file names.
const std::vector<const PolicyKind*>& all_policies();
/// The policy of that key and name; throws Error with the nearest name, or with all of them.
const PolicyKind& find_policy(std::string_view key, std::string_view name);

/// A policy with its options as read from a recipe.
struct PolicyChoice {
  const PolicyKind* kind = nullptr;
  std::shared_ptr<const PolicyOptions> options;
};

/// "NAME", "NAME(A,B)", {"rule": "NAME", "KEY": VALUE, ...}, or {"KEY": VALUE, ...} for a key with
/// an unnamed policy or a usual one. null, "none", `plain` and {} without a rule choose no policy.
/// Throws Error naming the key.
std::optional<PolicyChoice> read_policy(const JsonReader&, std::string_view key,
                                        std::string_view plain = "none");
/// The choices of an object (a whole recipe, or an entry of `layers`), one for each of
/// policy_slots(): absent where the key is, an empty choice where the key chooses no policy.
using Choices = std::vector<std::optional<std::optional<PolicyChoice>>>;
/// The canonical object: every option, defaults too.
Json policy_json(const PolicyChoice&);
/// The canonical text "NAME(A,B)", without arguments that are defaults at the end.
std::string policy_text(const PolicyChoice&);

/// Tensors by name as a policy's state: "PREFIX/NAME" holds their bytes. The prefix is
/// recipe/KEY/RULE, as in "recipe/update/delayed": by it a stage of a recipe finds what it takes
/// over (staged_numerics.hpp).
using StateTensors = std::map<std::string, std::vector<float>, std::less<>>;
void save_tensors(const std::string& prefix, const StateTensors&, net::NamedState&);
/// Replaces `tensors` by those of the state. Throws Error naming one that is damaged.
void load_tensors(const std::string& prefix, const net::NamedState&, StateTensors& tensors);

}  // namespace numemu::policies
