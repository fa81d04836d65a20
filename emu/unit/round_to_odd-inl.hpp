// The sum of two doubles rounded to odd, so that a second rounding is the only one; per target.
#if defined(NUMEMU_ROUND_TO_ODD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMEMU_ROUND_TO_ODD_INL
#undef NUMEMU_ROUND_TO_ODD_INL
#else
#define NUMEMU_ROUND_TO_ODD_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// x + y rounded to odd: where the sum is inexact, its neighbour with an odd last bit. Rounding
/// that to 24 bits is rounding the exact sum (Boldo and Melquiond, IEEE Trans. Comput. 57(4), 2008:
/// 53 >= 24 + 2). The error of the sum is exact by Knuth's TwoSum; an infinite y gives it as NaN,
/// which is not taken for an error.
template <class D>
HWY_INLINE hn::Vec<D> AddToOdd(D d, hn::Vec<D> x, hn::Vec<D> y) {
  const hn::RebindToSigned<D> bits;
  const auto sum = hn::Add(x, y);
  const auto y_part = hn::Sub(sum, x);
  const auto error = hn::Add(hn::Sub(x, hn::Sub(sum, y_part)), hn::Sub(y, y_part));
  const auto one = hn::Set(bits, 1), code = hn::BitCast(bits, sum);
  const auto inexact = hn::Or(hn::Lt(error, hn::Zero(d)), hn::Gt(error, hn::Zero(d)));
  const auto even = hn::RebindMask(d, hn::Eq(hn::And(code, one), hn::Zero(bits)));
  // One unit away from zero where error and sum have the same sign, else toward it.
  const auto away = hn::BroadcastSignBit(hn::Xor(hn::BitCast(bits, error), code));
  const auto neighbour = hn::Add(code, hn::Or(away, one));
  return hn::IfThenElse(hn::And(inexact, even), hn::BitCast(d, neighbour), sum);
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // NUMEMU_ROUND_TO_ODD_INL
