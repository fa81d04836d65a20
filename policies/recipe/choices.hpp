// The keys of a recipe that choose policies by name, for the network and for single layers.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policies/policy.hpp"

namespace numemu::policies {

/// A key of the recipe under which a policy is chosen (policies/slots.def).
struct PolicySlot {
  std::string_view key;    ///< "penalty", or "update.rule" for a member of an object
  bool of_layers = false;  ///< entries of `layers` may choose another one
  bool typed = false;      ///< the schema of roles or updates reads it (PolicyKind::chosen_by)
  std::string_view plain = "none";  ///< a name for no policy, beside "none"
  bool in_inference = false;        ///< its policies act in inference, too, but for exceptions
                                    ///< (PolicyKind::in_inference)
  bool of_products = false;         ///< its policies act on products, also on those inside a layer
  std::array<std::string_view, 3> beside = {};  ///< keys of its object that the schema reads

  /// "update" of "update.rule"; "" of one that is typed.
  std::string_view object() const { return typed ? "" : key.substr(0, key.find('.')); }
  /// "rule" of "update.rule": the choice is a text; "" for an object.
  std::string_view member() const {
    return typed || key.find('.') == key.npos ? "" : key.substr(key.find('.') + 1);
  }
};

/// Every slot, from the outermost policy to the innermost.
const std::vector<PolicySlot>& policy_slots();
Choices read_choices(const JsonReader&);
/// Writes canonical choices into the object; keys that are absent stay so. `explicit_none`: a key
/// that chooses no policy is written as null (entries of `layers`), else left out.
void write_choices(const Choices&, bool explicit_none, Json& out);

/// Whether a choice of the slot acts in inference too.
bool acts_in_inference(const PolicySlot&, const PolicyChoice&);

/// The place of a key among the slots; their number for one that has none.
std::size_t slot_of(std::string_view key);

/// The recipe with role keys of the top-level keys `saved` and `exchange` moved into `roles`, whose
/// names in the schema they are; a `saved` that chooses a policy stays. Throws Error where both are
/// given. An entry of `layers` has `saved` only.
Json with_role_keys_moved(const JsonReader& recipe,
                          const std::vector<std::string>& keys = {"saved", "exchange"});

}  // namespace numemu::policies
