// Questions and answers as text: the records of a vector file, D apart.
#pragma once
#include <string>
#include <string_view>

#include "emu/oracle/dots/dots.hpp"
#include "emu/oracle/record.hpp"

namespace numemu::oracle {

/// Checks that a unit can have these ports. Throws Error naming the port and what was expected.
void check_ports(const Ports&);

/// a b [sa sb] [e] c d [flags], as layout_of() gives it for a unit with these ports.
Layout record_layout(const Ports&);
/// d alone.
Layout answer_layout(const Ports&);

/// "# numemu-questions 1 a=float16 b=float16 c=float32 d=float32 k=16", and scale=, block=,
/// sparsity= where they apply.
std::string questions_header(const Ports&);
inline constexpr std::string_view kQuestionsBegin = "# numemu-questions ";
/// The words of a record without D: one line, with its end.
std::string question_text(const Ports&, const Dot&);

/// Record i of record_layout().
Dot dot_of(const Ports&, const Records&, std::int64_t i);

}  // namespace numemu::oracle
