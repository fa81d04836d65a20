"""Prints each expression of the given C++ sources that draws from a random source twice.

C++ leaves the order of arguments and operands open, and compilers differ, so a random source with a
state is read once in a full expression: `const bool negative = dice.flip();`. Declarators, and the
operands of `&&`, `||` and `?:` outside parentheses, are in order and count apart.
A source is an object of a class that counts in a member what it has drawn from formats/random.hpp
(Dice, Draws); reading is to name it, or to call a function or lambda of the file that names one
which it has not been given.
usage: single_draws.py <LIST, a path on each line
"""
import re
import sys

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    r'|^[ \t]*#(?:[^\n\\]|\\.)*|[A-Za-z_]\w*|\d(?:[\w.]|\'(?=\w))*|::|->|\+\+|--|&&|\|\||\S',
    re.S | re.M)
OPEN = {'(': ')', '[': ']', '{': '}'}
CONTROL = ('if', 'while', 'switch', 'for')
RANDOM = re.compile(r'\bRandomSource\b|\bphilox\s*\(')
COUNTS = re.compile(r'\b\w+_\s*\+\+|\+\+\s*\w+_\b|\b\w+_\s*\+=')


def tokens_of(text):
    line, at = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count('\n', at, match.start())
        at = match.start()
        token = match.group()
        if not token.startswith(('//', '/*')) and not token.lstrip().startswith('#'):
            yield ('""' if token[0] in '"\'' or token.startswith('R"') else token), line


def tree_of(tokens):
    """Nested lists: a token is (text, line), a group [opening, line, parts]."""
    stack = [['', 0, []]]
    for token, line in tokens:
        if token in OPEN:
            stack.append([token, line, []])
        elif token in OPEN.values() and len(stack) > 1:
            group = stack.pop()
            stack[-1][2].append(group)
        else:
            stack[-1][2].append((token, line))
    return stack[0][2]


def is_group(part, opening):
    return isinstance(part, list) and part[0] == opening


def is_block(part):
    """Statements, not a list of values: a semicolon, or a block, stands directly inside."""
    return is_group(part, '{') and (not part[2] or any(
        (isinstance(p, tuple) and p[0] == ';') or is_block(p) for p in part[2] if p != part))


def expressions(parts):
    """The full expressions and declarators of a block, and those of the blocks inside it."""
    run, control = [], False
    for i, part in enumerate(parts):
        if is_block(part):
            yield from expressions(part[2])
            after = parts[i + 1] if i + 1 < len(parts) else (';', 0)
            if not (isinstance(after, list) and after[0] == '(') and \
                    not (isinstance(after, tuple) and after[0] in (';', ',', '.')):
                yield run
                run = []
        elif control and is_group(part, '('):
            yield from expressions(part[2])
            run, control = [], False
        elif isinstance(part, list):
            run.append(part)
            for inner in blocks_inside(part):
                yield from expressions(inner[2])
        elif part[0] in CONTROL:
            control = True
        elif part[0] in (';', ',', '&&', '||', '?', ':'):
            yield run
            run = []
        elif part[0] != 'constexpr':
            run.append(part)
    yield run


def blocks_inside(group):
    for part in group[2]:
        if is_block(part):
            yield part
        elif isinstance(part, list):
            yield from blocks_inside(part)


def flat(parts, blocks=False):
    for part in parts:
        if isinstance(part, tuple):
            yield part
        elif blocks or not is_block(part):
            yield part[0], part[1]
            yield from flat(part[2], blocks)
            yield OPEN[part[0]], part[1]


def named_blocks(parts):
    """(kind, name, head, block) of classes, functions and lambdas with a name, at any depth."""
    head = []
    for part in parts:
        if is_block(part):
            texts = [t for t, _ in flat(head)]
            kind, name = None, None
            if texts and texts[0] in ('class', 'struct') and '(' not in texts and len(texts) > 1:
                kind, name = 'class', texts[1]
            elif '=' in texts and '[' in texts[texts.index('='):]:
                kind, name = 'function', texts[texts.index('=') - 1]
            elif '(' in texts and texts[0] not in CONTROL + ('else', 'do', 'catch'):
                kind, name = 'function', texts[texts.index('(') - 1]
            if kind is not None and re.match(r'\w', name or ''):
                yield kind, name, head, part
            yield from named_blocks(part[2])
            head = []
        elif isinstance(part, tuple) and part[0] in (';', 'public', 'private', 'protected'):
            head = []
        elif isinstance(part, tuple) and part[0] == ':' and len(head) < 2:
            head = []
        else:
            if isinstance(part, list):
                yield from named_blocks(part[2])
            head.append(part)


def text_of(parts):
    return ' '.join(t for t, _ in flat(parts, True))


def variables(tokens, types):
    """Names declared with one of the types."""
    texts = [t for t, _ in tokens]
    names = set()
    for i, text in enumerate(texts[:-2]):
        if text in types:
            at = i + (2 if texts[i + 1] == '&' else 1)
            if re.match(r'[A-Za-z_]', texts[at]) and texts[at] not in ('const', 'class'):
                names.add(texts[at])
    return names


def reads(expression, names, functions, types):
    texts = [t for t, _ in flat(expression)]
    count = 0
    for i, text in enumerate(texts):
        before = texts[i - 1] if i else ''
        after = texts[i + 1] if i + 1 < len(texts) else ''
        declared = before in types or (before == '&' and i > 1 and texts[i - 2] in types)
        if text in names and not declared and before not in ('.', '->', '::') and after != '::':
            count += 1
        elif text in functions and after == '(' and before not in ('.', '->', '::') and \
                not re.match(r'[A-Za-z_>&*]', before if before != 'return' else ''):
            count += 1
    return count


def check(path, tree, types):
    names = variables(list(flat(tree, True)), types)
    blocks = list(named_blocks(tree))
    functions = set()
    for kind, name, _, block in blocks:
        if kind == 'class' and name in types:
            # The methods of the source itself draw wherever they are called without an object.
            functions |= {n for k, n, head, _ in named_blocks(block[2]) if k == 'function'
                          and 'const' not in [t for t, _ in flat(head)][-1:] and n != name}
    while True:
        found = set()
        for kind, name, head, block in blocks:
            if kind == 'function' and name not in functions:
                own = variables(list(flat(head)) + list(flat(block[2], True)), types)
                inner = {n for _, n, _, _ in named_blocks(block[2])}
                if any(reads(e, names - own, functions - inner, types)
                       for e in expressions(block[2])):
                    found.add(name)
        if not found - functions:
            break
        functions |= found
    for expression in expressions(tree):
        if expression and reads(expression, names, functions, types) > 1:
            line = next(l for _, l in flat(expression))
            print(f'{path}:{line}: draws twice in one expression: draw in statements, in order')


def included(path, texts, seen):
    """The path and all files of the list that it includes."""
    if path in texts and path not in seen:
        seen.add(path)
        for header in re.findall(r'^#include "([^"]+)"', texts[path], re.M):
            included(header, texts, seen)
    return seen


def main():
    texts, types = {}, {}
    for path in sys.stdin.read().split('\n'):
        if path:
            with open(path, encoding='utf-8') as file:
                texts[path] = file.read()
    for path, text in texts.items():
        if not (RANDOM.search(text) and COUNTS.search(text)):
            continue
        for kind, name, _, block in named_blocks(tree_of(tokens_of(text))):
            body = text_of(block[2])
            if kind == 'class' and RANDOM.search(body) and COUNTS.search(body):
                types.setdefault(path, set()).add(name)
    names = set().union(*types.values())
    for path, text in texts.items():
        if any(name in text for name in names):
            known = set().union(*(types.get(p, ()) for p in included(path, texts, set())))
            if known:
                check(path, tree_of(tokens_of(text)), known)


if __name__ == '__main__':
    main()
