// The table of policies, made from the files of the folders that slots.def names, and their options
// as JSON.
#include "policies/policy.hpp"

#include <algorithm>
#include <cstring>

#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::policies {

#define NUMEMU_POLICY(name) extern const PolicyKind name;
#include "policies/policies.inc"
#undef NUMEMU_POLICY

namespace {

constexpr std::string_view kNone = "none";

std::vector<std::string> names_of(std::string_view key) {
  std::vector<std::string> names;
  for (const PolicyKind* kind : all_policies()) {
    if (kind->key == key && !kind->name.empty()) names.emplace_back(kind->name);
  }
  return names;
}

/// The policy of an object without a rule; null where the key has none.
const PolicyKind* usual_of(std::string_view key) {
  for (const PolicyKind* kind : all_policies()) {
    if (kind->key == key && (kind->usual || kind->name.empty())) return kind;
  }
  return nullptr;
}

/// The rule "NAME(A,B)" of a key, its arguments read into the options.
PolicyChoice read_call(const JsonReader& rule, std::string_view key, const std::string& text,
                       std::unique_ptr<PolicyOptions>& options) {
  const CallText call = parse_call(text);
  PolicyChoice choice;
  choice.kind = at(rule, [&] { return &find_policy(key, call.name); });
  options = choice.kind->options();
  read_arguments(call, options->list(), rule.where() + ": " + call.name);
  return choice;
}

}  // namespace

const PolicyOptions* Binding::find(std::string_view name) const {
  auto found = layers.find(name);
  if (found == layers.end()) found = layers.find(name.substr(0, name.rfind('.')));
  return found == layers.end() ? nullptr : found->second.get();
}

void Calibration::for_each(
    const std::function<void(std::int64_t, std::vector<net::Tensor>)>& use) const {
  constexpr std::int64_t kAtOnce = 32;
  for (std::int64_t first = 0; first < samples; first += kAtOnce)
    use(first, batch(first, std::min(kAtOnce, samples - first)));
}

const std::vector<const PolicyKind*>& all_policies() {
  static const std::vector<const PolicyKind*> kinds = {
#define NUMEMU_POLICY(name) &name,
#include "policies/policies.inc"
#undef NUMEMU_POLICY
  };
  return kinds;
}

const PolicyKind& find_policy(std::string_view key, std::string_view name) {
  for (const PolicyKind* kind : all_policies()) {
    if (kind->key == key && kind->name == name) return *kind;
  }
  std::vector<std::string> known = names_of(key);
  known.emplace_back(kNone);
  throw Error(unknown_name(key, name, known));
}

std::optional<PolicyChoice> read_policy(const JsonReader& given, std::string_view key,
                                        std::string_view plain) {
  if (given.is_null() || given.value() == kNone) return std::nullopt;
  const std::vector<std::string> names = names_of(key);
  const PolicyKind* const usual = usual_of(key);
  const bool only = names.empty() && usual != nullptr;
  std::unique_ptr<PolicyOptions> options;
  if (given.value().is_string() && !only) {
    const std::string text = given.text("");
    if (text == plain) return std::nullopt;
    PolicyChoice choice = read_call(given, key, text, options);
    choice.options = std::move(options);
    return choice;
  }
  if (!given.value().is_object()) {
    given.fail(only            ? "an object or null"
               : names.empty() ? "null: the key has no policy"
                               : "a rule such as \"" + names.front() + "\", an object or null");
  }
  PolicyChoice choice;
  std::vector<std::string> keys;
  if (!only) keys.emplace_back("rule");
  const JsonReader rule = given.member("rule");
  if (only || (usual != nullptr && usual->name.empty() && rule.is_null())) {
    choice.kind = usual;
    options = usual->options();
  } else {
    const bool none = usual == nullptr || given.value().empty();
    if (rule.is_null() && none && !given.value().empty()) given.fail("a key 'rule'");
    const std::string text = rule.text(std::string(none ? kNone : usual->name));
    if (text == kNone || text == plain) {
      given.require_keys({"rule"});
      return std::nullopt;
    }
    choice = read_call(rule, key, text, options);
  }
  const std::vector<Option> known = options->list();
  for (const Option& option : known) keys.emplace_back(option.key);
  given.require_keys(keys);
  for (const Option& option : known) read_option(given.member(std::string(option.key)), option);
  choice.options = std::move(options);
  return choice;
}

Json policy_json(const PolicyChoice& choice) {
  Json out = Json::object();
  if (!choice.kind->name.empty()) out["rule"] = std::string(choice.kind->name);
  // list() hands out pointers through which read_policy() writes; here they are only read.
  auto& options = const_cast<PolicyOptions&>(*choice.options);
  for (const Option& option : options.list()) out[std::string(option.key)] = option_json(option);
  return out;
}

std::string policy_text(const PolicyChoice& choice) {
  auto& options = const_cast<PolicyOptions&>(*choice.options);
  const std::unique_ptr<PolicyOptions> defaults = choice.kind->options();
  return call_text(choice.kind->name, options, *defaults);
}

void save_tensors(const std::string& prefix, const StateTensors& tensors, net::NamedState& state) {
  for (const auto& [name, values] : tensors) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    state.emplace_back(prefix + "/" + name, std::move(bytes));
  }
}

void load_tensors(const std::string& prefix, const net::NamedState& state, StateTensors& tensors) {
  tensors.clear();
  for (const auto& [name, bytes] : state) {
    if (!name.starts_with(prefix + "/")) continue;
    if (bytes.size() % sizeof(float) != 0)
      throw Error("state " + name + ": expected a multiple of 4 bytes");
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    tensors[name.substr(prefix.size() + 1)] = std::move(values);
  }
}

}  // namespace numemu::policies
