#include "emu/oracle/recording/probe.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "emu/oracle/probes/probes.hpp"

namespace numemu::oracle::recording {
namespace {

/// The registry's name of an element type.
std::string format_name(Element e) {
  switch (e) {
#define NUMEMU_GPU_FORMAT(element, format) \
  case Element::element:                   \
    return format;
    NUMEMU_GPU_FORMAT(f64, "float64")
    NUMEMU_GPU_FORMAT(f32, "float32")
    NUMEMU_GPU_FORMAT(tf32, "tfloat32")
    NUMEMU_GPU_FORMAT(f16, "float16")
    NUMEMU_GPU_FORMAT(bf16, "bfloat16")
    NUMEMU_GPU_FORMAT(e5m2, "float8_e5m2")
    NUMEMU_GPU_FORMAT(e4m3, "float8_e4m3fn")
    NUMEMU_GPU_FORMAT(ue4m3, "float8_e4m3fn")
    NUMEMU_GPU_FORMAT(ue8m0, "float8_e8m0fnu")
    NUMEMU_GPU_FORMAT(e3m2, "float6_e3m2fn")
    NUMEMU_GPU_FORMAT(e2m3, "float6_e2m3fn")
    NUMEMU_GPU_FORMAT(e2m1, "float4_e2m1fn")
#undef NUMEMU_GPU_FORMAT
    default:
      return (info(e).has_sign ? "int" : "uint") + std::to_string(info(e).bits);
  }
}

/// As the registry's record, which the program on a GPU machine has not.
Format format_from(Element e) {
  const ElementInfo type = info(e == Element::ue4m3 ? Element::e4m3 : e);
  Format f;
  f.name = format_name(e);
  f.kind = is_integer(e) ? numemu::Kind::integer : numemu::Kind::floating;
  f.is_signed = type.has_sign;
  f.bits = e == Element::tf32 ? 19 : type.bits;
  f.exponent_bits = type.exponent_bits;
  f.mantissa_bits = f.kind == numemu::Kind::integer ? 0 : type.mantissa_bits;
  f.bias = type.bias;
  f.container_shift = e == Element::tf32 ? 13 : 0;
  if (type.specials == Specials::ieee) f.specials = numemu::Specials::ieee;
  if (type.specials == Specials::one_nan || type.specials == Specials::exponent)
    f.specials = numemu::Specials::nan1;
  if (type.specials == Specials::exponent) f.field_zero = FieldZero::scale;
  return f;
}

constexpr Element kElements[] = {
#define NUMEMU_GPU_ELEMENT(name, ...) Element::name,
#include "emu/oracle/recording/instructions/elements.def"
#undef NUMEMU_GPU_ELEMENT
};

/// Codes of float32 registers whose 13 low bits are set, and the factor beside them.
struct LowBits {
  const char* name;
  std::uint64_t code, times;
};
constexpr std::uint64_t kOne = 0x3f800000;
constexpr LowBits kLowBits[] = {{"one", 0x3f801fff, kOne},
                                {"half-ulp", 0x3f801000, kOne},
                                {"odd-half-ulp", 0x3f803000, kOne},
                                {"below-half-ulp", 0x3f800fff, kOne},
                                {"minus", 0xbf801fff, kOne},
                                {"largest", 0x7f7fffff, kOne},
                                {"subnormal", 0x00001fff, 0x7f000000},
                                {"nan-or-infinity", 0x7f800001, kOne},
                                {"nan-times-zero", 0x7f800001, 0}};

void add_low_bits(const Instruction& i, const Ports& ports, std::vector<Probe>& all) {
  const auto add = [&](const std::string& id, std::uint64_t a, std::uint64_t b) {
    Probe probe = probe_of(i, *Draft(ports).dot());
    probe.id = "tf32-low-bits." + id;
    probe.question = "tf32-low-bits";
    probe.a[0] = a;
    probe.b[0] = b;
    all.push_back(std::move(probe));
  };
  for (const LowBits& each : kLowBits) {
    add(std::string("a-") + each.name, each.code, each.times);
    if (&each < kLowBits + 3) add(std::string("b-") + each.name, each.times, each.code);
  }
}

}  // namespace

const Format& element_format(Element e) {
  static const std::vector<Format> kFormats = [] {
    std::vector<Format> all;
    for (const Element each : kElements) all.push_back(format_from(each));
    return all;
  }();
  return kFormats[static_cast<std::size_t>(e)];
}

Ports ports_of(const Instruction& i) {
  Ports ports;
  ports.a = &element_format(i.a);
  ports.b = &element_format(i.b);
  if (!is_integer(i.d)) {
    ports.c = &element_format(i.c);
    ports.d = &element_format(i.d);
  }
  ports.bits = info(i.d).bits;
  ports.k = i.k;
  if (i.block != 0) ports.scale = &element_format(i.scale);
  ports.block = i.block;
  if (i.sparsity != Sparsity::dense) ports.sparsity = {i.group() / 2, i.group()};
  return ports;
}

Probe probe_of(const Instruction& i, const oracle::Dot& dot) {
  Probe probe;
  const int shift_a = element_format(i.a).container_shift,
            shift_b = element_format(i.b).container_shift;
  for (const std::uint64_t code : dot.a) probe.a.push_back(code << shift_a);
  for (const std::uint64_t code : dot.b) probe.b.push_back(code << shift_b);
  probe.c = dot.c;
  probe.scale_a = dot.scale_a;
  probe.scale_b = dot.scale_b;
  const auto kept = static_cast<std::size_t>(i.group() / 2);
  for (std::size_t first = 0; first < dot.kept.size(); first += kept) {
    const std::uint8_t* place = dot.kept.data() + first;
    const int word = i.sparsity == Sparsity::one_of_two      ? (place[0] == 0 ? 0b0100 : 0b1110)
                     : i.sparsity == Sparsity::pairs_of_four ? place[0] / 2 | place[2] / 2 << 2
                                                             : place[0] | place[1] << 2;
    probe.metadata.push_back(static_cast<std::uint8_t>(word));
  }
  return probe;
}

std::vector<Probe> probes(const Instruction& i) {
  const Ports ports = ports_of(i);
  std::vector<Probe> all;
  for (const AskedDot& question : oracle::probes(ports)) {
    all.push_back(probe_of(i, question.dot));
    all.back().id = question.id;
    all.back().question = question.aspect;
  }
  if (i.a == Element::tf32) add_low_bits(i, ports, all);
  return all;
}

}  // namespace numemu::oracle::recording
