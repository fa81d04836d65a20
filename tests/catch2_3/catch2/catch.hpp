// Catch2 3 as the one header that Catch2 2 has, with its names for what tests use.
#pragma once
#include <catch2/catch_all.hpp>
#include <string>

namespace Catch {
using namespace Matchers;
inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }
using TestEventListenerBase = EventListenerBase;
}  // namespace Catch
using Catch::Approx;
