"""Where a C++ source mentions which names, read from its tokens (batches.py)."""
import re

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
                   r'|[A-Za-z_]\w*|\d(?:[\w.]|\'\w)*|::|->|\S', re.S)
# Types among them may stand before the name that a declaration declares, the others may stand before a call.
TYPES = frozenset('auto bool char double float int long short signed unsigned void const constexpr inline static'.split())
KEYWORDS = TYPES | frozenset('''alignas alignof and and_eq asm bitand bitor break case catch class co_await co_return co_yield compl
concept consteval constinit continue decltype default delete do else enum explicit export extern false for friend goto if mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public requires return sizeof static_assert struct
switch template this throw true try typedef typename union using virtual volatile while xor xor_eq'''.split())
# Namespaces in which no source of ours declares anything: their names mean the same beside any of our declarations.
LIBRARIES = frozenset(['std', 'fmt', 'Catch'])


def is_name(token):
    return (token[0].isalpha() or token[0] == '_') and token not in KEYWORDS


def tokens_of(text):
    """Without comments and preprocessor lines, but for OpenMP's, each of which ends with a semicolon."""
    code = re.sub(r'^[ \t]*#[ \t]*(?!pragma[ \t]+omp)(?:[^\n]*\\\n)*[^\n]*', '', text, flags=re.M)
    code = re.sub(r'\b(using\s+namespace\s+)::', r'\1', code)
    code = re.sub(r'^([ \t]*#(?:[^\n]*\\\n)*[^\n]*)', r'\1;', code, flags=re.M)
    return [token for token in (match.group() for match in TOKEN.finditer(code)) if not token.startswith(('//', '/*'))]


def local_names(tokens):
    """Where names mean members of the class around them or parameters of the template around them: ranges of tokens by name."""
    found = {}
    for i, token in enumerate(tokens[:-1]):
        if token == 'template' and tokens[i + 1] == '<':
            behind = after_parameters(tokens, i + 1)
            names = [name for name, after in zip(tokens[i:behind], tokens[i + 1:]) if is_name(name) and after in (',', '>', '=')]
            names = [name for before, name in zip(tokens[i:], tokens[i + 1:behind]) if name in names
                     and (is_name(before) or before in TYPES or before in ('class', 'typename', '.'))]
            end = end_of_declaration(tokens, behind)
        elif token in ('struct', 'class', 'union') and tokens[i - 1] not in ('<', ',', 'enum', 'friend'):
            begin = next(j for j in range(i, len(tokens) + 1) if j == len(tokens) or tokens[j] in '{;(=)>')
            if begin == len(tokens) or tokens[begin] != '{':
                continue
            names, end = members(tokens, begin)
            i = begin
        else:
            continue
        for name in names:
            found.setdefault(name, []).append((i, end))
    return found


def members(tokens, i):
    """The names of the members of the class whose body begins at i, and where it ends."""
    names, depth, angles, value = [], 0, 0, False  # value: behind what ends the part of a declaration that has its name
    for j in range(i, len(tokens) - 1):
        before, token, after = tokens[j - 1], tokens[j], tokens[j + 1]
        depth += (token in '([{') - (token in ')]}')
        if depth == 0:
            return names, j
        if depth == 1 and token in ';}':
            value, angles = False, 0
        elif depth == 1 and (token in ('=', 'friend', 'operator') or token == ':' and before not in ('public', 'protected', 'private')):
            value = True
        elif depth == 1 and token in '<>' and (angles or is_name(before) or before == 'template'):
            angles += 1 if token == '<' else -1
        elif depth == 1 and is_name(token) and not value and not angles and (before in ('struct', 'class', 'union', 'enum', 'using') and tokens[j - 2] != 'friend' and after in '{:=;'
                            or after in '=;({[' and (is_name(before) or before in TYPES or before == '>' or before in '*&' and before != tokens[j - 2] and not tokens[j - 2][0].isdigit())):
            names.append(token)
    return names, len(tokens)


def after_parameters(tokens, i):
    """Where the template parameters that begin at i end: their names are known in their template alone."""
    angles = depth = 0
    while True:
        depth += (tokens[i] in '([{') - (tokens[i] in ')]}')
        if depth == 0:
            angles += (tokens[i] == '<') - (tokens[i] == '>')
            if angles == 0:
                return i + 1
        i += 1


def end_of_declaration(tokens, i):
    """Where the declaration that begins at i ends: at a semicolon or a closing brace outside of all brackets."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j] in '([{') - (tokens[j] in ')]}')
        if depth <= 0 and tokens[j] in ';}':
            return j
    return len(tokens)


class Mentions:
    """The names that occur as more than a member or a part of a library (std::exp)."""

    def __init__(self, tokens):
        self.names = {}      # each with what stands before its `::`: '' for nothing, '>' for a template
        self.called = {}     # the same of those before a `(` or `<`
        self.plain = {}      # the same of those not before a `::`
        self.position = {}   # where each occurs first
        self.braced = set()  # those called with an argument that begins with a brace
        self.first = set()   # those before a `::`, the first ones of qualified names
        self.directives = set()  # the namespaces of using-directives anywhere
        self.aliases = {}    # names of namespaces: the last names of what they stand for
        self.add(tokens)

    def add(self, tokens):
        library = False  # inside std::...::
        local = local_names(tokens)
        for i, token in enumerate(tokens):
            if not is_name(token):
                continue
            before, after = tokens[i - 1] if i else ';', tokens[i + 1] if i + 1 < len(tokens) else ';'
            library = before == '::' and library or before != '::' and token in LIBRARIES and after == '::'
            if before in ('.', '->') or library:
                continue
            qualifier = tokens[i - 2] if before == '::' and i > 1 and (is_name(tokens[i - 2]) or tokens[i - 2] in '>)') else ''
            if not qualifier and any(begin <= i < end for begin, end in local.get(token, ())):
                continue
            self.names.setdefault(token, set()).add(qualifier)
            self.position.setdefault(token, i)
            if after != '::':
                self.plain.setdefault(token, set()).add(qualifier)
            elif before != '::':
                self.first.add(token)
            declares = is_name(before) or before in TYPES  # two names in a row: `Type name(`
            if after == '<' or after == '(' and not declares:
                self.called.setdefault(token, set()).add(qualifier)
            if after == '(' and self._braced(tokens, i + 1):
                self.braced.add(token)
            if before == 'namespace' and after == '=':
                self.aliases.setdefault(token, set()).add(tokens[tokens.index(';', i) - 1])
            if before == 'namespace' and i > 1 and tokens[i - 2] == 'using':
                self.directives.add(''.join(tokens[i:tokens.index(';', i)]))

    @staticmethod
    def _braced(tokens, i):
        """Whether one of the arguments that begin at i begins with a brace."""
        depth = 0
        for before, token in zip(tokens[i:], tokens[i + 1:]):
            depth += (before in '([{') - (before in ')]}')
            if depth == 0:
                return False
            if depth == 1 and token == '{' and before in '(,':
                return True
        return False
