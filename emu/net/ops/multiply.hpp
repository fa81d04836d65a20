// y = a b; da = g b, db = g a.
#pragma once
#include "emu/net/ops/broadcast.hpp"

namespace numemu::net {

class Multiply final : public Binary {
 public:
  Multiply() : Binary(true) {}
  std::string_view kind() const override { return "multiply"; }

 protected:
  void values(std::int64_t n, const float* a, const float* b, float* y) const override;
  void gradients(std::int64_t n, const float* a, const float* b, const float* g, float* da,
                 float* db) const override;
};

}  // namespace numemu::net
