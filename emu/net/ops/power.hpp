// y = net::pow(a, b); da = g b a^(b - 1), db = g y ln a (0 where a = 0 and b >= 0).
#pragma once
#include "emu/net/ops/broadcast.hpp"

namespace numemu::net {

class Power final : public Binary {
 public:
  Power() : Binary(true) {}
  std::string_view kind() const override { return "power"; }

 protected:
  void values(std::int64_t n, const float* a, const float* b, float* y) const override;
  void gradients(std::int64_t n, const float* a, const float* b, const float* g, float* da,
                 float* db) const override;
};

}  // namespace numemu::net
