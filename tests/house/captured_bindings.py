"""Prints each lambda of the given C++ sources that uses a structured binding from outside: `const auto& [key, value] = *it;`.

C++20 allows it, gcc compiles it, clang before 16 does not. A capture of its own is accepted by both: `[&value = value]`.
usage: captured_bindings.py <LIST, a path on each line
"""
import re
import sys

from single_draws import OPEN, tokens_of

CLOSE = {close: open for open, close in OPEN.items()}


def pairs_of(texts):
    """The place of each closing bracket by that of its opening one."""
    found, open_at = {}, []
    for i, text in enumerate(texts):
        if text in OPEN:
            open_at.append(i)
        elif text in CLOSE and open_at:
            found[open_at.pop()] = i
    return found


def is_lambda(texts, i):
    """Whether the `[` at i begins a lambda, and no subscript, attribute or binding."""
    before = texts[i - 1] if i else ';'
    return before == 'return' or not re.match(r'\w|""|[\])\[]', before) and 'auto' not in texts[max(0, i - 3):i] and texts[i + 1] != '['


def end_of_statement(texts, pairs, i):
    while i < len(texts) and texts[i] != ';':
        if texts[i] == '{':
            return pairs.get(i, len(texts))
        i = pairs.get(i, i) + 1
    return i


def scopes(texts, pairs):
    """Each structured binding: its names, and where those are known."""
    around = []  # the blocks and parentheses around i
    for i, text in enumerate(texts):
        while around and pairs.get(around[-1], len(texts)) <= i:
            around.pop()
        if text == '[' and i in pairs and 'auto' in texts[max(0, i - 3):i] and texts[i - 1] in ('auto', '&', '&&'):
            names = [name for name in texts[i:pairs[i]] if re.match(r'[A-Za-z_]', name)]
            end = pairs.get(around[-1], len(texts)) if around else len(texts)
            if around and texts[around[-1]] == '(':  # of a for, an if or a switch
                end = end_of_statement(texts, pairs, end + 1)
            yield names, pairs[i], end
        if text in OPEN:
            around.append(i)


def lambdas(texts, pairs, begin, end):
    """The lambdas between two places: their captures, and where their parameters begin and their bodies end."""
    for i in range(begin + 1, end):
        if texts[i] == '[' and i in pairs and is_lambda(texts, i):
            behind = pairs[i] + 1
            body = behind
            while body < end and texts[body] not in '{;,)':
                body = pairs.get(body, body) + 1
            if body < end and texts[body] == '{' and body in pairs:
                yield texts[i + 1:pairs[i]], behind, body, pairs[body]


def check(path, tokens):
    texts = [text for text, _ in tokens]
    pairs = pairs_of(texts)
    for names, begin, end in scopes(texts, pairs):
        for captures, parameters, body, last in lambdas(texts, pairs, begin, end):
            for name in names:
                listed = [after for before, text, after in zip([',', *captures], captures, [*captures[1:], ',']) if text == name and before in (',', '&')]
                if '=' in listed or name in texts[parameters:body]:
                    continue
                used = [i for i in range(body, last) if texts[i] == name and texts[i - 1] not in ('.', '->', '::') and texts[i + 1] != '::']
                if used or ',' in listed:
                    print(f'{path}:{tokens[used[0] if used else begin][1]}: a lambda uses the structured binding {name}: capture [&{name} = {name}]')


if __name__ == '__main__':
    for line in sys.stdin.read().split('\n'):
        if line:
            with open(line, encoding='utf-8') as file:
                text = file.read()
            if re.search(r'\bauto\s*&*\s*\[', text):
                check(line, list(tokens_of(text)))
