// Options of policies and tuning steps between their places, JSON and text.
#pragma once
#include <string>

#include "formats/storage/json_reader.hpp"
#include "policies/policy.hpp"

namespace numemu::policies {

/// Reads a value into the option's place; null leaves it. Throws Error naming the key.
void read_option(const JsonReader& key, const Option&);
Json option_json(const Option&);
std::string option_text(const Option&);
/// An argument of a call as the JSON value it stands for.
Json argument_json(const Option&, const std::string& text);

}  // namespace numemu::policies
