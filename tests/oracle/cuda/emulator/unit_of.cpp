#include "tests/oracle/cuda/emulator/unit_of.hpp"

#include <algorithm>
#include <cctype>

#include "emu/unit/unit.hpp"
#include "formats/error.hpp"

namespace numemu::oracle::recording {
namespace {

bool exists(const std::string& unit) {
  try {
    return unit::find_unit(unit).row().name == unit;  // short forms would find others
  } catch (const Error&) {
    return false;
  }
}

const char* family(Kind kind) {
  switch (kind) {
    case Kind::mma:
    case Kind::mmasp:
    case Kind::mmabs:
      return "mma";
    case Kind::wgmma:
    case Kind::wgmmasp:
      return "wgmma";
    default:
      return "tcgen05";
  }
}

std::string types(const Instruction& i) {
  std::string text = info(i.a).name;
  if (i.b != i.a) text += std::string("x") + info(i.b).name;
  text += std::string(".") + info(i.d).name;
  if (i.block != 0) text += (i.scale == Element::ue4m3 ? ".nv" : ".mx") + std::to_string(i.block);
  return text;
}

}  // namespace

std::string unit_of(const std::string& chip, const Instruction& i) {
  const bool halves = i.a == Element::f16 && i.k == 4;
  if (i.c != i.d || i.kind == Kind::cvt || (halves && chip != "V100")) return "";
  std::string prefix = "nvidia." + chip + "." + family(i.kind);
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  std::string ending = types(i);
  if (i.sparsity != Sparsity::dense) ending += ".sp24";
  if (i.satfinite) ending += ".satfinite";
  for (const std::string& shape : {".k" + std::to_string(i.kept()) + ".", std::string(".")}) {
    std::string unit = prefix;
    unit += shape;
    unit += ending;
    if (exists(unit)) return unit;
  }
  return "";
}

}  // namespace numemu::oracle::recording
