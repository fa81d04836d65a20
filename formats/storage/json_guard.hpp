// What nlohmann/json accepts in silence and we refuse: a key twice in one object, and deep nesting.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace numemu {

/// Walks a JSON text without building it: calls `twice` with a key that stands twice in one object
/// and `deep` at more than `deepest` levels of nesting; both must throw. Returns at the first
/// mistake in the syntax, for the parser to report. (The parser's own callbacks would do the same,
/// but make it search a list from the front after every object in it.)
void guard_json(std::string_view text, int deepest, const std::function<void()>& deep,
                const std::function<void(const std::string& key)>& twice);

}  // namespace numemu
