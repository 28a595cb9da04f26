# ruff: noqa: E501 - what is asked stands in one line with its like
"""The odd neighbours of what ``druid_corpus`` asks of patterns: of times by Joda, of texts by Java,
of ``format``, and of numbers without an end."""

from __future__ import annotations

TIMES: dict[str, str] = {
    "yyyyMd": r""" "2024112" "20241112" "202411" "2024-1-1" """,
    "Md yyyy": r""" "112 2024" "1112 2024" "11 2024" """,
    "MMM-yyyy": r""" "mAr-2024" "MAR-2024" "march-2024" "Mar-+2024" "Marc-2024" """,
    "yy": r""" "24" "+24" "124" "2024" "4" "024" "12345678901" "x" """,
    "yyMM": r""" "2403" "24034" "+2403" "240" """,
    "YY-DDD": r""" "24-070" "24-366" "99-366" """,
    "xx-'W'ww": r""" "24-W10" "2020-W53" "24-W53" """,
    "hh:mm yyyy": r""" "08:15 2024" "12:15 2024" "00:15 2024" """,
    "HH a yyyy": r""" "20 AM 2024" "08 PM 2024" """,
    "dd e": r""" "10 3" """,
    "yyyy-ww-D": r""" "2024-10-70" """,
    "yyyy-MM-e": r""" "2024-03-7" """,
    "E yyyy": r""" "Tue 2024" "tuesday 2024" "TuE 2024" """,
    "Y-MM": r""" "2024-03" "+2024-03" """,
    "G yyyy": r""" "BC 0005" "ad 2024" "CE 2024" "Ad 2024" """,
    "yyyy C": r""" "2024 19" """,
    "Z yyyy": r""" "+01:0 2024" "+010 2024" "+01000 2024" "+0100005 2024" "+24 2024" "Z 2024" "z 2024" "+01:00: 2024" "+01:00:00.5 2024" "+01:60 2024" "GMT 2024" """,
    "ZZZ yyyy": r""" "UTC 2024" "America/Argentina/Buenos_Aires 2024" "Etc/GMT+5 2024" "EST5EDT 2024" "utc 2024" "America/X 2024" """,
    "yyyy-MM-dd HH:mm ZZZ": r""" "2024-03-10 02:30 America/New_York" "2024-11-03 01:30 America/New_York" """,
    "z yyyy": r""" "EDT 2024" "UT 2024" "GMT 2024" "gmt 2024" "Z 2024" "PSTX 2024" """,
    "zzzz yyyy": r""" "UTC 2024" """,
    "'year' yyyy": r""" "YEAR 2024" "year  2024" """,
    "s.S": r""" "5.7" "5.789" """,
    "yyyyyy-MM": r""" "2024-03" "12024-03" """,
    "yyyy-MM-ddd": r""" "2024-03-010" "2024-03-10" """,
    "x-M-d": r""" "2024-3-10" "2020-1-1" """,
    "yyyy-MM-dd EEE": r""" "2024-03-10 Mon" "2024-03-31 Mon" """,
    "w yyyy": r""" "1 2024" "52 2023" "53 2024" """,
    "D H": r""" "60 5" "0 5" """,
    "yyyy-MM-dd HH:mm Z": r""" "2023-09-31 08:15 +0100" "2023-09-30 08:15 +0100" "2023-02-29 08:15 Z" """,
    "Z yyyy-MM-dd": r""" "+0100 2023-09-31" "+0100 2023-09-30" """,
    "s.Syyyy": r""" "5.72024" "5.772024" """,
}

EXPRESSIONS: dict[str, str] = {
    "neighbours: times": r"""
timestamp_parse('24-070', 'yy-DDD') | timestamp_parse('2024-03-10 PST', 'yyyy-MM-dd z') | timestamp_parse('0044-03-15 BC', 'yyyy-MM-dd G') | timestamp_parse('2024', 'yyyy G') | timestamp_parse('7', 'd', 'Asia/Tokyo') | timestamp_parse('2024-10-7', 'xxxx-ww-e', 'Europe/Berlin') | timestamp_parse('12024-03', 'yyyy-MM') | timestamp_parse('0000-01-01', 'yyyy-MM-dd') | timestamp_parse('-0001-03-01', 'yyyy-MM-dd') | timestamp_parse('12024-03', 'yyyy-MM', 'Europe/Berlin') | timestamp_parse('292278994', 'yyyy') | timestamp_parse('x', '\'x\'')
timestamp_format(ms, 'z', 'UTC') | timestamp_format(ms, 'zzz Z', n) | timestamp_format(ms, 'z', 'Asia/Tokyo') | timestamp_format(ms, '-') | timestamp_format(ms, '\'a') | timestamp_format(ms, '\'a\'\'b\'') | timestamp_format(ms, '\'\'\'\'') | timestamp_format(ms, 'yyyy\'T') | timestamp_format(ms, '\'') | timestamp_format(ms, 'yyyy é MM')
""",
    "neighbours: format": r"""
format('%b|%B|%5b|%-6b|%.1b', l, d, n, a, b) | format('%b', e) | format('%h|%H', l, d) | format('%h', n) | format('%h', '') | format('%h', -1) | format('%10h|', a) | format('%#b', l) | format('%c', n) | format('%c', a) | format('%5c|', n) | format('%.1c', n)
format('%g', 0.0) | format('%g', 1e-5) | format('%g', 1e-4) | format('%g', 123456.5) | format('%g', 1234567.0) | format('%g', 999999.5) | format('%.0g', 2.5) | format('%.3g', 2.345) | format('%g', l) | format('%,g', 12345.678) | format('%10g|', d) | format('%-12g|', d) | format('%012g', d) | format('%(g', -2.5) | format('%#g', d) | format('%+g', d) | format('%g', -0.0)
format('%a', 0.0) | format('%a', -2.5) | format('%A', 0.1) | format('%a', 4.9e-324) | format('%a', 1e300) | format('%a', l) | format('%12a|', d) | format('%+a', d)
format('%.0e', 2.5) | format('%.2e', 0.00012345) | format('%e', 0.0) | format('%e', -1e100) | format('%,e', d) | format('%#.0e', d) | format('%#.0f', d) | format('%(e', -2.5) | format('%(f', -2.5) | format('%(,.2f', -1234.5) | format('%(f', d) | format('%(010.2f', -2.5) | format('%010.2f', -2.5) | format('%+.1f', d) | format('% .1f', d) | format('% f', -2.5)
format('%(d', l) | format('%(05d', neg) | format('%(8d|', neg) | format('%#o', l) | format('%#X', 255) | format('%#08x', 255) | format('%(x', neg) | format('%+x', l) | format('%#d', l) | format('%08x', l) | format('%-8x|', l) | format('%x', n) | format('%05d', n) | format('%-5d|', n) | format('%.2d', l) | format('%,d', 1234567) | format('%,012d', 1234567) | format('%d', d) | format('%x', a)
format('%-d', l) | format('%0d', l) | format('%-s', a) | format('%-05d', l) | format('%+ d', l) | format('%++d', l) | format('%--5d', l) | format('%5%|', l) | format('%-5%|', l) | format('%-%', l) | format('%5n', l) | format('%-n', l) | format('%#s', a) | format('%05s', a) | format('%.3s|', 'a') | format('%-<5s', a) | format('%s %-<5s|', a) | format('%2$s %s', a, l) | format('%i', l) | format('%1$', l) | format('%5', l) | format('100%') | format('%s') | format('%.s', a) | format('%5.s', a)
format('%tH:%<tM:%<tS', ms) | format('%tI %<tk %<tl %<tL %<tN %<tp %<Tp', ms) | format('%tz %<tZ %<ts %<tQ', ms) | format('%tB %<tb %<th %<tA %<ta %<TA', ms) | format('%tC %<ty %<tj %<tm %<td %<te', ms) | format('%tR %<tT %<tr', ms) | format('%tD %<tF', ms) | format('%tc', ms) | format('%Tc', ms) | format('%tY', -1) | format('%tY', -62135596800000) | format('%tx', ms) | format('%t', ms) | format('%tY', a) | format('%tY', d) | format('%tY', n) | format('%10tY|', ms) | format('%-10tY|', ms) | format('%.2tY', ms) | format('%010tY', ms) | format('%ts', -1500) | format('%tl', 1710028800000)
format('%s', json_query(o, '$.a')) | format('%b', o) | format('%d', o) | format('%10s|', o) | format('%s|%s', o, l) | format('%.1s', o) | format('%s', '%d') | format('%S', 'ß') | format('%B', n)
format('%<%', l) | format('%d%<%', l) | format('%d%<<d', l) | format('%2$%', l) | format('%d %<n', l) | concat('', 4.9e-324) | format('%s', 4.9e-324) | format('%e', 4.9e-324) | format('%f', 0.0 / 0) | format('%05.1f', d / 0) | format('%E', -d / 0)
""",
    "neighbours: patterns": r"""
regexp_extract(a, '\\x{62}') | regexp_extract('é', '\\xe9') | regexp_extract('é', '\\u00e9') | regexp_extract(s, '\\x{1F600}') | regexp_extract(s, '\\uD83D\\uDE00') | regexp_extract(a, '\\x6') | regexp_extract(a, '\\u62') | regexp_extract(a, '\\0') | regexp_extract(a, '\\08') | regexp_extract('b2', '\\01422') | regexp_extract(a, '\\0400') | regexp_extract(a, '[\\x61-\\x62]+') | regexp_extract(a, '[\\0141\\u0062]+') | regexp_extract(tab, '\\cJ') | regexp_extract(tab, '\\cI') | regexp_extract(a, '\\c') | regexp_extract(a, '\\x{110000}')
regexp_extract('a\u00a0b', '\\h') | regexp_extract('a b', '\\H+') | regexp_extract('a b', '[\\h]+') | regexp_extract(tab, '\\V+') | regexp_extract(tab, '[\\v]') | regexp_extract('a\u2028b', '\\v') | regexp_extract('a\r\nb', '\\R') | regexp_extract('a\r\nb', '\\Rb') | regexp_extract('a\r\nb', 'a\\R\\n') | regexp_replace('a\r\nb\nc', '\\R', '-') | regexp_extract(a, '[\\R]') | regexp_extract('a b', '[^\\h]+') | regexp_extract('a b', '[\\H]+') | regexp_extract('a b', '[^\\H]+')
regexp_extract(s, '\\p{Lower}+') | regexp_extract(s, '\\p{Upper}') | regexp_extract('a1_', '\\p{Alnum}+') | regexp_extract('a1_', '\\P{Alnum}') | regexp_extract('a !~', '\\p{Graph}+') | regexp_extract('a !', '\\p{Print}+') | regexp_extract(tab, '\\p{Blank}') | regexp_extract(tab, '\\p{Cntrl}') | regexp_extract('xFg', '\\p{XDigit}+') | regexp_extract('a\u000bb', '\\p{Space}') | regexp_extract('a b', '[\\p{Alpha}\\p{Space}]+') | regexp_extract(s, '[^\\p{Alpha}]+') | regexp_extract(a, '\\p{alpha}') | regexp_extract(a, '\\p{IsAlpha}+') | regexp_extract(s, '\\p{IsL}+') | regexp_extract(s, '\\p{IsLu}') | regexp_extract(s, '\\P{IsLatin}+') | regexp_extract(s, '\\p{islatin}+') | regexp_extract(s, '\\p{IsLATIN}+') | regexp_extract(s, '\\p{script=Latin}+') | regexp_extract(s, '\\p{sc=latin}+') | regexp_extract(s, '\\p{IsNonsense}') | regexp_extract(s, '[\\p{IsLatin} ]+') | regexp_extract(s, '\\p{gc=Lu}') | regexp_extract(s, '\\p{general_category=L}+') | regexp_extract(s, '\\p{Any}') | regexp_extract(s, '\\p{Lt}') | regexp_extract(s, '\\p{lu}') | regexp_extract(s, '\\p{Han}') | regexp_extract(s, '\\p{Cn}') | regexp_extract(a, '\\pa') | regexp_extract(a, '\\p{') | regexp_extract(a, '\\p{}')
regexp_extract(s, '(?i)\\p{Lu}+') | regexp_extract(s, '(?i)\\p{Upper}+') | regexp_extract(s, '(?i)[a-zé]+') | regexp_extract('éÉ', '(?i)É') | regexp_extract('éÉ', '(?i)[É]') | regexp_extract('éÉ', '(?iu)éé') | regexp_extract('ſK', '(?i)[a-z]+') | regexp_extract('ſK', '(?iu)sk') | regexp_extract('aBc', '(?i)[b-c]+') | regexp_extract('aBc', '(?i)[^b]+') | regexp_extract('AB', '(?i)a(?-i)b') | regexp_extract('AB', '(?i)a(?-i:B)') | regexp_extract('ABc', '((?i)a)b') | regexp_extract('ABC', '(?i)ab|c') | regexp_extract('xC', '(?i)ab|c') | regexp_extract('A.B', '(?i)\\Qa.b\\E') | regexp_extract('AB', '(?i)\\x61\\u0062') | regexp_extract('_A', '(?i)[^-a]') | regexp_extract('[', '(?i)[Z-a]') | regexp_extract('z', '(?i)[Z-a]') | regexp_extract('K', '(?i)k') | regexp_extract('AB', '(?i:a)b') | regexp_extract('AB', '(?i)(?:a(?-i))b')
regexp_extract('a\u0085b', '[^\\n]+') | regexp_extract('a\rb', '(?s)a.b') | regexp_extract('a\rb', '(?d)a.b') | regexp_extract('a\nb', '(?d)a.b') | regexp_extract('a\rb', '(?-s)a.b') | regexp_extract('a\rb', 'a[.]b|a\\Sb') | regexp_extract('a\u000bb', 'a\\Sb') | regexp_extract('a\u000bb', '[\\s]') | regexp_extract('a\u000bb', '[\\S]+') | regexp_extract('a\u000bb', '[^\\s]+') | regexp_extract('a\u000bb', '[^\\S]+') | regexp_extract('a\u00a0b', '\\s') | regexp_extract('a\rb', '^b') | regexp_extract('a\rb', '(?m)^b') | regexp_extract('a\rb', 'b$') | regexp_extract('a\rb', 'a$') | regexp_extract('a\r\nb', '.+') | regexp_extract('a\u2029b', '.+') | regexp_extract(tab, '(?dm)b$') | regexp_extract('a\r', 'a\\Z') | regexp_extract(a, '^abcabc\\Z') | regexp_extract('a\n', 'a\\z')
regexp_extract(a, '[a[b]c]+') | regexp_extract('a[b', '[a\\[]+') | regexp_extract(a, '[[a][b]]+') | regexp_extract(a, '[a-z&&b-c]+') | regexp_extract(a, '[a-z&&[bc]]+') | regexp_extract(a, '[a-z&&[^bc]]+') | regexp_extract(a, '[^a[b]]+') | regexp_extract(a, '[^a&&b]+') | regexp_extract(a, '[^a-b&&[^c]]') | regexp_extract(a, '[a-c&&b-d&&c-e]+') | regexp_extract('a&b', '[a&b]+') | regexp_extract('a&b', '[&&a]+') | regexp_extract('a&b', '[a&&]+') | regexp_extract(a, '[a-z&&[^b]&&[^c]]') | regexp_extract(a, '[a-b[^a-y]]+') | regexp_extract(s, '[\\p{L}&&[^e]]+') | regexp_extract(s, '[\\w&&[^\\d]]+') | regexp_extract(a, '[a[b]&&[b]]+') | regexp_extract(a, '[[b]') | regexp_extract(a, '[a&&&b]') | regexp_extract(a, '[a-\\d]+') | regexp_extract('a-1', '[a-\\d]+') | regexp_extract(a, '[\\Qab\\E]+') | regexp_extract(a, '[\\w-c]+') | regexp_extract('a b', '[a b]+') | regexp_extract(a, '[c-a]') | regexp_extract('a^', '[a^]+') | regexp_extract(a, '[^^]+') | regexp_extract(a, '[') | regexp_extract(a, '[]') | regexp_extract(a, '[a') | regexp_extract('a[', '[a[]') | regexp_extract('é1', '[\\w\\W]+') | regexp_extract('a]', '[\\]a]+') | regexp_extract(tab, '[\\t\\n]') | regexp_extract('a.b', '[\\.]') | regexp_extract(a, '[\\b]') | regexp_extract(a, '[\\y]') | regexp_extract('a#b', '(?x)a#b') | regexp_extract('😀b', '[😀-😃]b')
regexp_replace(a, '(a)(b)', '$11') | regexp_replace(a, '(a)(b)', '$21') | regexp_replace(a, '(b)', '$01') | regexp_replace(a, '(b)', '$2') | regexp_replace(a, '(b)', '$100') | regexp_replace('ABab', '(?i)a', 'x') | regexp_replace('a\rb', '.', 'x') | regexp_replace(a, '[a[b]]', '-') | string_to_array('a\u000bb c', '\\s') | string_to_array('aXbxc', '(?i)x') | string_to_array('a\r\nb', '\\R') | regexp_like('AB', '(?i)^ab$') | regexp_like(s, '(?iu)WÖRLD') | regexp_extract(a, '(?<x>b)\\k<x>') | regexp_extract(a, '(?<x>a)(?<x>b)') | regexp_extract(a, '(?<x1>b)', 1) | regexp_extract(a, '(?<x_1>b)', 1) | regexp_extract(a, '(?#c)b') | regexp_extract(a, '(?>b)c') | regexp_extract(a, '(?i') | regexp_extract(a, '(?z)b') | regexp_extract(a, '(?)b') | regexp_extract(a, '(?-)b') | regexp_extract(a, '(?i-)b') | regexp_extract(a, '(?:)b') | regexp_extract(a, '(?i)') | regexp_extract(a, 'b{0}c') | regexp_extract(a, 'b{2') | regexp_extract(a, 'b{a}') | regexp_extract(a, '(?U)\\w') | regexp_extract(a, '\\E') | regexp_extract('a\\b', '\\Qa\\b\\E') | regexp_extract(a, '\\Q\\Eb')
regexp_extract('bb', 'b(?d){2}') | regexp_extract('KK', 'K(?x)+') | regexp_extract(a, '[a-c&&[b]c]+') | regexp_extract(a, '[\\h&&[b][a]&]') | regexp_extract(a, '[a-c&&[b][c]]+') | regexp_extract(a, '[a-c&&b[c]]+') | regexp_extract(a, '[[a-c]&&[b]]+')
""",
}

# Of the metrics longSum, longMin and longLast.
ENDLESS = r""""-Infinity" "+Infinity" "+NaN" "-NaN" "nan" " NaN " "Na,N" "infinity" "INF" "NaNd" "Infinityf" "- Infinity" "x NaN" "1e999" "-1e999" 1e999"""
