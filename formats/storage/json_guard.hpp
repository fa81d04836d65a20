// Refuses JSON that nlohmann/json accepts silently: repeated keys, deep nesting, and zero bytes,
// which it takes for the end of the text.
#pragma once
#include <string>
#include <string_view>

namespace numemu {

/// Most levels of nesting in any file but safetensors headers.
inline constexpr int kDeepestJson = 64;

/// Walks a JSON text without building it. Throws Error "WHERE: ..." at a repeated key in
/// one object, at more than `deepest` levels of nesting and at a zero byte. Returns at the first
/// other mistake in the syntax, for the parser to report. (The parser's own callbacks would do the
/// same, but make it search a list from the front after every object in it.)
void guard_json(std::string_view text, const std::string& where, int deepest = kDeepestJson);

}  // namespace numemu
