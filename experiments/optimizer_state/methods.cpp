#include "experiments/optimizer_state/methods.hpp"

#include <fmt/format.h>

namespace numemu::experiments::optimizer_state {
namespace {

constexpr const char *kRne = "rne", *kSr = "sr(16)";

Json stored(const std::string& format, const char* rounding) {
  return {{"format", format}, {"rounding", rounding}};
}

Json masters(const char* rounding) { return {{"master", "bfloat16"}, {"rounding", rounding}}; }

}  // namespace

std::vector<Method> methods(std::int64_t block) {
  const auto of = [&](const char* element) {
    return fmt::format("group({},{},float32)", element, block);
  };
  // No sign, no infinity: three bits of significand and the range of float8_e5m2.
  const std::string int8 = of("int8"), uint8 = of("uint8"), e4m3 = of("float8_e4m3fn"),
                    e5m2 = of("float8_e5m2"), e5m3 = of("e5m3+finite+unsigned");
  const auto split = [&](const std::string& first, const std::string& second,
                         const char* rounding) {
    return Json{
        {"roles",
         {{"state", {{"first", stored(first, rounding)}, {"second", stored(second, rounding)}}}}}};
  };
  const auto whole = [&](const char* rounding) {
    return Json{{"roles", {{"state", stored("bfloat16", rounding)}}}};
  };
  Json all = split(int8, e5m3, kSr);
  all["update"] = masters(kSr);
  using Expected = Method::Expected;
  return {{"float32", Json::object()},
          {"state int8", split(int8, int8, kRne), Expected::harmful, int8},
          {"state int8, second uint8", split(int8, uint8, kRne), Expected::harmful, uint8},
          {"state int8, second uint8, sr", split(int8, uint8, kSr), Expected::harmful, uint8, true},
          {"state int8, second e5m3", split(int8, e5m3, kRne), Expected::nothing, e5m3},
          {"state int8, second e5m3, sr", split(int8, e5m3, kSr), Expected::harmless, e5m3, true},
          {"state e4m3, second e5m2", split(e4m3, e5m2, kRne), Expected::nothing, e5m2},
          {"state e4m3, second e5m2, sr", split(e4m3, e5m2, kSr), Expected::harmless, e5m2, true},
          {"state bfloat16", whole(kRne), Expected::nothing},
          {"state bfloat16, sr", whole(kSr), Expected::harmless},
          {"masters bfloat16", {{"update", masters(kRne)}}, Expected::harmful, "", false, true},
          {"masters bfloat16, sr", {{"update", masters(kSr)}}, Expected::harmless, "", true, true},
          {"masters bfloat16, state int8, second e5m3, sr", std::move(all), Expected::harmless,
           e5m3, true, true}};
}

}  // namespace numemu::experiments::optimizer_state
