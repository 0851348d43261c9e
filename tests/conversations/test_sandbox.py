"""Hostile templates end in one error, within bounds of time and memory that the system enforces."""

from __future__ import annotations

import json
import subprocess
import sys

from packtool.conversations.record import ConversationError
from packtool.conversations.template import ChatTemplate

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
SECONDS = 120
"""Of CPU time for all attacks together, several times what they take."""
MEMORY = 1 << 30

NAMES = "{% set n = namespace(x='ab', y=[], z=3) %}"
MANY = NAMES + "{% for i in range(90) %}"
ATTACKS = (
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(10**9) %}x{% endfor %}",
    "{{ 'a'.center(10**9) }}",
    "{{ 'a'|center(10**9) }}",
    "{{ 'a'.ljust(99999999) }}",
    "{{ 'a'.zfill(99999999) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ '%.999999999f' % 1 }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ '{:{}}'.format(1, 999999999) }}",
    "{{ '%999999999d'|format(1) }}",
    "{{ '{0:{w}}'.format(1, w=999999999) }}",
    "{{ '{x:>99999999}'.format_map({'x':1}) }}",
    "{{ '\\t'.expandtabs(10**9) }}",
    "{{ ('a'*1000).replace('', 'b'*100000) }}",
    "{{ ('a'*1000)|replace('a', 'b'*100000) }}",
    "{{ ('b'*100000).join('a'*100000) }}",
    "{{ ('a'*100000)|join('b'*100000) }}",
    "{{ ['a'*900000]*900 }}",
    "{{ (['a'*900000]*900)|join }}",
    "{{ (['a'*900000]*900)|string }}",
    "{{ (['a'*900000]*900)|tojson }}",
    MANY + "{% set n.x = n.x ~ n.x %}{% endfor %}",
    MANY + "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    MANY + "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x|tojson }}",
    MANY + "{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
    MANY + "{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x in [n.x, 1] }}{{ n.x|length }}{{ n.x|unique|list }}",
    MANY + "{% set n.x = {'a': n.x, 'b': n.x} %}{% endfor %}{{ n.x ~ '' }}",
    MANY + "{% set n.z = n.z * n.z %}{% endfor %}",
    MANY + "{% set n.z = n.z ** n.z %}{% endfor %}",
    "{{ 5|round(-999999999) }}",
    "{{ 5|round(999999999, 'floor') }}",
    "{{ (1).to_bytes(999999999) }}",
    "{{ 1|batch(999999999,'x')|list }}",
    "{{ [1]|batch(999999999,'x')|list }}",
    "{{ [1]|slice(999999999)|list }}",
    "{{ ('a\n'*100000)|indent(999999) }}",
    "{{ ('a\n'*100000)|indent('x'*100000) }}",
    "{{ {'a':{'b':[1]*9000}}|tojson(indent=999999) }}",
    "{{ lipsum(n=100000) }}",
    "{{ [1,2]|random }}",
    "{{ ('ab '*300000)|wordwrap(1) }}",
    "{{ ('<'*300000)|striptags }}",
    "{{ ('a.b@c.d '*100000)|urlize }}",
    "{% for i in range(99999) %}{% set x = 'a' * 1000000 %}{% endfor %}",
    "{% for i in range(99999) %}{% set x = range(99999)|list %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% if b == b ~ 'x' %}{% endif %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% set c = b[1:] %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% set c = b[:] == b[::-1] %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% set c = 'b' in b %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% set c = b.count('aab') %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% set c = b is in(b) %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% set c = b|upper %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{{ b }}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% set r %}{% for i in range(99999) %}{{ b }}{% endfor %}{% endset %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% set c = b.split('a') %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for i in range(99999) %}{% set c = b|list %}{% endfor %}",
    "{% set b = 'a' * 1000000 %}{% for c in b %}{% endfor %}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    NAMES + "{% block a %}{% if n.z < 40 %}{{ self.a() }}{{ self.a() }}{% endif %}{% endblock %}",
    "{% macro f(n) %}{% call g(n) %}{{ n }}{% endcall %}{% endmacro %}{% macro g(n) %}{% if n %}"
    "{{ f(n-1) }}{{ caller() }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% for i in [1,2] recursive %}{{ loop([1,2]) }}{% endfor %}",
    "{{ [[1]]|sum(start=[]) }}",
    NAMES + "{% for i in range(17) %}{% set n.y = n.y + [[1]*1000] %}{% endfor %}{{ (n.y*50)|sum(start=[])|length }}",
    "{{ dict.fromkeys(range(99999), 'a'*1000000) }}",
    "{{ 'a'.translate({97: 'b'*1000000}) }}",
    "{{ strftime_now('%9999999d') }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ joiner('a'*100) }}{{ raise_exception('x'*9000000) }}",
    "{{ ('f'*1000000)|int(base=16) + 1 }}",
    "{{ ('f'*1000000)|int(base=16) }}",
    "{{ ['a','b']|map('center', 99999999)|list }}",
    "{{ [999999999]|map('round', -99999999)|list }}",
    "{{ range(99999)|map('string')|map('center',200)|join }}",
    "{{ (range(99999)|list)|tojson(indent=200) }}",
    "{{ ('%s'*2000) % (('a'*900,)*2000) }}",
    "{{ '{0}{0}{0}{0}{0}{0}{0}{0}'.format('a'*1000000) }}",
    "{{ ('{0}'*1000).format('a'*1000000) }}",
    "{{ '%(a)s%(a)s%(a)s' % {'a': 'b'*1000000} }}",
    "{{ ('%(a)s'*800) % {'a': 'b'*1000000} }}",
    "{{ 'a\\t'.expandtabs(tabsize=10**9) }}",
    "{{ (('<'*300000)|safe).striptags() }}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "{{ " + "[" * 5000 + "1" + "]" * 5000 + " }}",
    "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "{{ " + "-" * 100_000 + "1 }}",
    "x" * (2 << 20),
    "{% set r %}{% for i in range(99999) %}" + "x" * 500_000 + "{% endfor %}{% endset %}",
)


def attack() -> None:
    """Print what becomes of each attack."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    found = []
    for source in ATTACKS:
        try:
            found.append(f"rendered: {ChatTemplate(source).render(TALK).text[:200]}")
        except ConversationError as error:
            found.append(str(error))
    sys.stdout.write(json.dumps(found))


def test_hostile_templates_are_refused_within_bounds() -> None:
    command = [sys.executable, "-c", "from tests.conversations.test_sandbox import attack; attack()"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    for source, found in zip(ATTACKS, json.loads(done.stdout), strict=True):
        assert found.startswith("the chat template "), (source[:100], found)
        assert "\n" not in found
        assert len(found) < 500


def test_what_harmless_templates_do_is_done() -> None:
    """Formats, methods and filters that are weighed give what Python gives."""
    sources = {
        "{{ '%s-%05.1f' % ('a', 1.5) }}": "a-001.5",
        "{{ '{:>4}|{x}'.format(1, x='é') }}": "   1|é",
        "{{ 'a,b'.split(',') | join('; ') }}": "a; b",
        "{{ 'aXbX' | replace('X', '--') }}{{ 'aXb'.replace('X', '-', 1) }}": "a--b--a-b",
        "{{ 'ab' | center(6) }}{{ 'x'.ljust(3) }}|": "  ab  x  |",
        "{{ messages | map(attribute='content') | list }}": "['Hi', 'Ho']",
        "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}": "1",
        "{{ {'b': [1, {}]} | tojson(indent=2) }}": '{\n  "b": [\n    1,\n    {}\n  ]\n}',
        "{{ [3, 1, 2] | sort }}{{ [1, 2] + [3] }}{{ [0] * 3 }}{{ 7 // 2 }}{{ 2 ** 10 }}": "[1, 2, 3]" * 2
        + "[0, 0, 0]31024",
        "{{ 'a\nb' | indent(2) }}{{ 'abc'[::-1] }}{{ 'abc'[1:] }}": "a\n  bcbabc",
        "{{ [1, 2, 3] | sum }}{{ [1, 2, 3] | sum(start=4) }}": "610",
        "{{ '-'.join(['a', 'b']) }}{{ ['a'] | join }}": "a-ba",
        "{{ 'abc' | upper ~ 'b' in 'abc' }}{{ 1 < 2 < 3 }}{{ 'a' in 'abc' }}": "FalseTrueTrue",
    }
    for source, expected in sources.items():
        assert ChatTemplate(source).render(TALK).text == expected, source
