# ruff: noqa: E501 - programs stand as they are
"""What is asked of ``flattenSpec`` fields of type ``jq``: programs, two blanks between them, each of one record."""

from __future__ import annotations

RECORD = (
    '{"t":0,"a":{"b":{"c":5},"l":[{"m":1,"k":"x"},{"m":2,"k":"y","c":7}]},"nums":[3,1,2],"s":"str","n":null,"o":{},'
    '"e":[],"d":1.5,"i":7,"neg":-7,"yes":true,"no":false,"mixed":[null,true,2,"z",[1],{"q":1},false,1.5],'
    '"words":["b","a","B","a"],"u":"Zü😀","num":"12.50","two words":"w","$x":4,"csv":"a, b,c","big":9223372036854775807,'
    '"large":1e300,"z":{"y":2,"x":1},"lists":[[1,2],[3,[4]]],"es":"","dash-ed":1,"pairs":[{"key":"p","value":1}]}'
)
PROGRAMS = r"""
.  .a  .a.b.c  .a.b  .s  .missing  .missing.more  .n  .n.x  .o  .e  .d  .yes  .no  .big  .large  .i  ."s"  ."two words"
.["s"]  .["two words"]  .a["b"].c  .a."b"."c"  .a.["b"]  ."$x"  .a . b . c  .dash-ed  .["a","s"]  .s?  .s.x?  .s.x  .i.x
.nums.x  .nums.x?  .[0]  .[0]?  . a  .a.b["c"]  .["a"]["b"]["c"]  .nums[0]  .nums[-1]  .nums[9]  .nums[-9]  .nums[1.7]
.nums[1:]  .nums[:1]  .nums[:-1]  .nums[-2:]  .nums[0:2]  .nums[5:]  .nums[:]  .nums[2:1]  .s[1:]  .s[:2]  .u[1:]  .u[2:3]
.s[0]  .n[0]  .n[1:]  .o[0]  .i[0]  .i[1:]  .nums["x"]  .nums[]  .a.l[].m  .o[]  .e[]  .n[]  .s[]  .s[]?  .a[]  .z[]
[.z[]]  [.nums[]]  [.a.l[].m]  [.a.l[].k]  .a.l[0].m  .a.l[1].c  [.a.l[].c]  [.a.l[]?.m]  [.mixed[]?]  ..  [..]  .[]
[.nums[0],.s]  [.s,.i,.n]  []  {}  [.e[]]  (.s)  ((.a)).b  .a.l[1:]|.[0]|.m  .a|.b|.c  .a | .b | .c  .a.b.c # comment
.nums | add  .words | add  .e | add  .lists | add  .mixed | add  .a | add  .s | add  .z | add  .n | add  .i | add
.s | length  .nums | length  .a | length  .n | length  .neg | length  .yes | length  .u | length  .e | length  .d | length
.a | keys  .z | keys  .nums | keys  .s | keys  .n | keys  .e | keys  .z | keys_unsorted  .o | keys  .z | to_entries
.pairs | from_entries  .z | with_entries(.value += 1)  .z | with_entries(.)  .z | map_values(. + 1)
.nums | map(. + 1)  .nums | map(. * 2)  .z | map(. + 1)  .a.l | map(.m)  .a.l | map(.k)  .e | map(.x)  .s | map(.)
.n | map(.)  .nums | map(., 9)  .nums | map(empty)  .a.l | map(.c)  .lists | map(length)  .nums | map(select(. != 1))
.nums[] | select(. > 1)  [.nums[] | select(. > 1)]  .a.l[] | select(.m == 2)  .a.l[] | select(.m == 2) | .k
.a.l[] | select(.k == "y") | .m  .a.l[] | select(.m > 9)  [.a.l[] | select(.c)]  .a.l | map(select(.m == 1)) | .[0].k
.s | select(.)  .n | select(.)  .i | select(true, true)  [.i | select(true, false, 1)]  .nums | select(length > 2) | .[0]
first(.nums[])  .nums | first  .nums | last  last(.nums[])  .e | first  .e | last  first(empty)  .n | first
.missing // "d"  .n // "d"  .no // "d"  .s // "d"  .e // 1  (.missing | .x) // 3  .nums[9] // 0  .a.x // .a.b.c
(.nums[] | select(. > 5)) // 0  .missing // .n // "last"  [.mixed[] // 0]  empty // 1  .s.x // 1  .e[] // 2  .n // empty
[.n // empty]  1 // 2  [1 // 2, 3]  .n // .n // 1 + 1  .i // 1 | .  .n // (1, 2)  [.n // (1, 2)]  [(.n, .i, .no, .s) // 9]
[(.n, .no) // (1, 2)]  .n // .no  .no // .n  .n // 1 == 1  1 + .n // 5  .n // "a" + "b"  [.mixed[]] // 1
.i + 1  .i - 1  .i * 2  .i / 2  .i / 7  .i % 4  .neg % 4  .i % -4  .d + 1  .d * 2  .i + .d  1 / 3  .i / 0  .i % 0  5 % 2.9
.d + .d  .d - .d  3.0  3.0 + 1  1.5 + 1.5  6 / 2  6 / 4  2 * 1.5  .i % 2.5  0 / 5  -0.0  0 * -1  .large + 1  .large - .large
.s + "x"  .s + .s  .s + 1  1 + .s  .n + 1  1 + .n  .n + .n  .s + .n  .nums + [4]  .nums - [1]  .nums - .s  .z + {"x": 9}
.z * {"x": 9}  .a * {"b": {"d": 1}}  .s * 2  .s * 0  .s * 1.5  2 * .s  .csv / ","  .s / 1  .s - "s"  .yes + 1  .n - 1  .n * 2
.big + 1  .big * 2  .big - 1  .big / 2  .big % 10  .big + 0  -.big  .large * 1e300  2147483647 + 1  2147483647 * 2
4294967296 * 4294967296  3000000000  -.i  -(.i)  -1  .i-1  .i -1  1.0  1.50  1e3  1E3  .5  5.  100000000000000000000  007
"q"  "\u00e9\n"  "\ud83d\ude00"  "\x"  'q'  true  false  null  "a\(.i)b"  "a\(.s, .i)"  ""
.i == 7  .i == 7.0  .i == "7"  .i != 7  .i < 8  .i <= 7  .i > .d  .s < "t"  .s < 1  .n < .no  .no < .yes  .yes < 1  1 < "a"
"a" < []  [] < {}  .nums == [3,1,2]  .nums == [3.0,1,2]  .z == {"x":1,"y":2}  .nums < [3,2]  .o < .z  {"a":2} < {"b":1}
{"a":2} < {"a":3}  "Z" < "a"  "ü" < "😀"  "\uffff" < "😀"  .big == 9223372036854775806  .big == 9223372036854775808.0
9007199254740993 == 9007199254740992  9007199254740993 < 9007199254740992.0  .i == .i == true  .i > 1 > 0  1 + 2 == 3
.s == "str" and .i == 7  .n and .yes  .n or .yes  .yes and .no  .e and .o  0 and 1  .yes | not  .n | not  .i | not
.i | not | not  .i > 1 and .i < 9 or .no  .s == "a" or .s == "str"  .no or .no and .yes  [(.yes, .no) and (.yes, .no)]
[(.yes, .no) or (.yes, .no)]  .no and .s.x  .yes or .s.x  .yes and empty  [.yes and empty]  [(1, 2) == (1, 2)]
if .i > 5 then "big" else "small" end  if .n then 1 else 2 end  if .no then 1 elif .yes then 2 else 3 end  if .e then 1 else 2 end
if .yes then 1 end  if .i == 7 then .s else empty end  if (.yes,.no) then 1 else 2 end  [if (.yes,.no) then 1 else 2 end]
if .s == "str" then .a.b.c else .n end | . + 1  if empty then 1 else 2 end  [if .yes then 1, 2 else 3 end]  if .i then 1
{a: .i}  {i}  {i, s}  {"a b": .s}  {(.s): 1}  {a: .nums[]}  [{a: .nums[]}]  {"s"}  {a: {b: .i}}  {a: .i, b: .s | length}
{@base64: 1}  {a: (.s | length)}  {"a": 1, "a": 2}  {b: 1, a: 2}  {a:.nums[0],b:.nums[1]}  {$x}  {if: 1}  {a: 1 + 2}  {a: 1,}
[{a: (1, 2), b: (3, 4)}]  {(.i): 1}  {("x", "y"): 1}  [{("x", "y"): 1}]  {a: .missing}  {"a": .e[]}  {missing}  {a: -1}  {1: 2}
{"a\(1)": 2}  {a: .n // 1}  {a: .i == 7}  {a: [.nums[]]}
.i | tostring  .s | tostring  .d | tostring  .nums | tostring  .a | tostring  .n | tostring  .yes | tostring  .large | tostring
1.0 | tostring  .big | tostring  .u | tostring  1e-7 | tostring  [1.0, 1e10, 0.1] | tostring  {"b": 1, "a": "ü\n"} | tostring
100000000000 | tostring  123456789.5 | tostring  1e17 | tostring  (.i / 2) | tostring  (.i / 7) | tostring  ["\u0001/"] | tostring
.num | tonumber  .i | tonumber  .s | tonumber  .n | tonumber  "7" | tonumber  " 7" | tonumber  "0x1F" | tonumber
"1e3" | tonumber  "-5" | tonumber  "" | tonumber  "NaN" | tonumber  "7." | tonumber  ".5" | tonumber  "+5" | tonumber
"9223372036854775808" | tonumber  "1.0" | tonumber  "007" | tonumber  "1d" | tonumber  "7 " | tonumber  .yes | tonumber
.s | type  .i | type  .d | type  .n | type  .yes | type  .nums | type  .a | type  .missing | type  [.mixed[] | type]
.words | join(",")  .nums | join(",")  .mixed | join("-")  .e | join(",")  .words | join(1)  [.s,.n,.yes,.d] | join(" ")
.s | join(",")  ["a"] | join(",")  .words | join(",", ";")  .n | join(",")  .z | join(",")  [1] | join(",")  [.n] | join(",")
.csv | split(",")  .csv | split(", ")  .s | split("")  .es | split(",")  .u | split("")  .i | split(",")  .csv | split(",") | .[0]
.csv | split(1)  .csv | split(".")  "a.b" | split(".")  ",a," | split(",")  .csv | split(",", ";")  "a,b" | split(",") | length
.u | ascii_downcase  .u | ascii_upcase  .s | ascii_upcase  .i | ascii_upcase  .s | ltrimstr("s")  .s | rtrimstr("r")
.s | ltrimstr("x")  .i | ltrimstr("7")  .s | ltrimstr(1)  .s | rtrimstr("")  .s | startswith("s")  .s | endswith("r")
.s | startswith("x")  .i | startswith("7")  .s | startswith(1)  .s | endswith(1)  .s | contains("t")  .nums | contains([1])
.a | contains({b:{c:5}})  .s | contains(1)  .words | contains(["b"])  .words | contains(["x"])  .i | contains(7)
.n | contains(.n)  .yes | contains(true)  .z | contains({"x": 2})  ["abc"] | contains(["b"])  .s | inside("a str")
.words | index("a")  .s | index("t")  .s | indices("t")  .s | rindex("t")  .words | indices("a")  .s | index("x")  .nums | index(1)
.a | has("b")  .a | has("x")  .nums | has(0)  .nums | has(9)  .s | has("x")  .a | has(0)  .nums | has("x")  .n | has("x")
.nums | any  .e | any  .mixed | all  .e | all  .nums | any(. > 2)  .nums | all(. > 0)  any(.nums[]; . > 2)  all(.nums[]; . > 2)
.mixed | any  .nums | all  .s | any  .z | any  .z | all(. > 0)
.nums | min  .nums | max  .e | min  .e | max  .words | min  .words | max  .mixed | max  .mixed | min  .a.l | min_by(.m)
.a.l | max_by(.m)  .s | max  .n | max  [1, 1.0] | max  [1.0, 1] | min  .nums | max_by(-.)  .e | max_by(.x)  .z | max
.nums | sort  .words | sort  .mixed | sort  .a.l | sort_by(.k)  .a.l | sort_by(-.m)  .words | unique  .a.l | unique_by(.k)
.nums | reverse  .s | reverse  .e | reverse  .n | reverse  .z | reverse  .lists | flatten  .lists | flatten(1)  .lists | flatten(-1)
.lists | flatten(0)  .s | flatten  .s | sort  .a.l | group_by(.k)  [1, 1.0, 2] | unique  [{"a":1},{"a":0}] | sort  .n | sort
.a.l | sort_by(.m, .k)  .nums | sort_by(. == 1)  ["b", "a", "é", "😀", "\uffff"] | sort  .z | sort  .n | unique
.d | floor  .d | ceil  .d | round  .d | sqrt  .neg | fabs  .neg | abs  .s | floor  .i | floor  2.5 | round  -2.5 | round
4 | sqrt  pow(2; 3)  .large | floor  -1.5 | floor  -0.5 | floor  .i | sqrt  .big | floor
.a | tojson  .s | tojson  .d | tojson  1.0 | tojson  .n | tojson  "{\"x\":1}" | fromjson  .s | fromjson  "1 2" | fromjson
"[1,2.0]" | fromjson  .i | fromjson  "" | fromjson  "{\"x\":{\"y\":1}}" | fromjson | .x.y  "NaN" | fromjson  "{a:1}" | fromjson
.mixed | map(values)  .mixed | map(nulls)  .mixed | map(numbers)  .mixed | map(strings)  .mixed | map(scalars)
.mixed | map(arrays)  .mixed | map(objects)  .mixed | map(booleans)  .mixed | map(iterables)  .n | values  [.n | values]
try .s.x catch "c"  try error("x") catch .  .s.x? // 5  try .s  (.s.x)?  [.mixed[] | .q?]  [.mixed[] | try .q catch "no"]
error("x")  error  [.s.x?]  [.s.x?, 1]  .a.b.c?  .s[]?.x  .a?.b?  [(1, error("x"), 2)?]  [.i, .s.x]  .i, .s.x  first(.i, .s.x)
.a.l as $l | $l[0].m  reduce .nums[] as $n (0; . + $n)  [range(3)]  [range(1; 3)]  range(2)  [limit(2; .nums[])]
until(. > 100; . * 2)  def f: 1; f  [recurse]  [paths]  .s |= "x"  .i += 1  .i = 1  del(.a)  getpath(["a","b"])  .a | path(.b)
env  input  now  .s | test("t")  .s | match("t")  .s | sub("t"; "x")  .s | gsub("t"; "x")  .s | explode  .s | @base64
.i | @json  .s | @text  .nums | @csv  $__loc__  $ENV  .s | ltrimstr  nothing  nothing(1)  .s | tostring(1)  .i | todate
splits(",")  .nums | combinations  .lists | transpose  .nums | nth(1)  nth(1; .nums[])  infinite  nan  .s | utf8bytelength
.words | IN("a")  .nums | indices(1)  foreach .nums[] as $n (0; . + $n)  .a | to_entries | map(.key)  .z | to_entries | .[0].value
.nums[0] + .nums[1] * 2  (.nums[0] + .nums[1]) * 2  10 - 2 - 3  2 * 3 % 4  8 / 4 / 2  1 == 1 == true  1, 2  [1, 2 | . + 1]
[(1, 2) + (10, 20)]  [(1, 2) * (10, 20)]  [(1, 2) - (10, 20)]  [1, (2, 3)]  .s, .i  [.nums[] as $x | $x]  .a.l | length > 1
.a.b.c,  | .a  .a b  .a[  .a[0  {a  "unclosed  .a)  (.a  [.a  ..a  .a..  .1  .a.1  .[ ]  .a[].b[].c  .a[]?.b?
.nums | .[1], .[2]  [.nums | .[1], .[2]]  .["a"].b  .a["b","l"]  [.a["b","l"]]  .nums[.i - 6]  .nums[0,1]  [.nums[0,1]]
.nums["a"]?  .z[.s]?  .a[.missing]  .nums[.n]  .z["x"]  .nums[1,0:2]  .nums[.nums[1]:]  .nums["0"]  .nums[true]  .nums[[1]]
.a |.b  .a.b| .c  (.a | .b).c  (.nums[] | . + 1)  [.nums[] | . + 1]  .nums[1:][0]  .nums[1:] | length  .a.l[-1].k  .a.l[0]["k"]
.foo_bar  .a::b  .Ab9  ._x  .and  .if  .a.and  .a.if  .not  . as $x | $x  {and: 1}  .a.l[].k | ascii_upcase  not  length  keys
tostring  type  empty  [empty]  add  values  map(.)  to_entries | length  .a.b | keys[0]  .a.l | last.k  .a.l | first | .k
has("a")  has("q")  .a as [$x] | $x  ?  .?  .[]?  .[-1]?  .s as $s | .i  @text "a"  @json  .s | length as $n | $n  isvalid(.s)
2 // 1 == 1  1 == 2 // 3  1 + 2 // 3  .no or 1 // 2  [.n // 1, 2]  .n // 1 and .no  .s.x.y?  .a.l.x.y?  [.s.x.y?]  [.a.l[].m.x?]
[.a.l[]["m"]?]  [.mixed[].q?]  "x" | tonumber? // 0  ["x" | tonumber?]  [1, 2 | select(. > 1)?]  try ("x" | tonumber)
{"zz": 1, "b": 2, "foo": 3, "a": 4} | tostring  {"k1":1,"k2":2,"x9":3,"Aa":4,"BB":5,"q":6,"w":7,"e":8,"r":9,"t":10,"y":11,"u":12,"i":13,"o":14} | keys_unsorted
[{"b":1,"a":2}[]]  {"b":1,"a":2} | map(.)  {"b":1,"a":2} | to_entries  {"value":1,"key":2} | tostring  {"é": 1, "😀": 2, "b": 3} | tostring
4.0 % 2  4 % 2.0  1.5 % 2  -5 % 3  5 % -3  .i % 3000000000  7.0 / 2  7 / 3.5  .i * 1.0  .i + 0.0  9007199254740993 + 0  9007199254740993 * 1.0
.5 + .5  1e3 + 1  1e18 + 0.0  1e19 + 0.0  1e19  -1e19 * 1  -(1.5)  -.d  -.s  -.n  -(1, 2)  1 - -1  1 - - 1  --1  - 1  2-1  2 -1  [-.i, 1]
.i | join(",")  .yes | join(",")  [1.0, 1e10] | join(",")  [true, null, "x"] | join("")  ["a", null, "b"] | join("-")  [null, null] | join("-")
[{"m":1,"k":"x"},{"m":1,"k":"y"}] | max_by(.m)  [{"m":1,"k":"x"},{"m":1,"k":"y"}] | min_by(.m)  [{"m":1,"k":"x"},{"m":1,"k":"y"}] | sort_by(.m)
[{"m":1,"k":"x"},{"m":1,"k":"y"}] | unique_by(.m)  [{"m":1,"k":"x"},{"m":1,"k":"y"}] | group_by(.m)  [3,1,3,2] | unique  [1.0, 1] | unique  [1, 1.0] | sort
[{"key":1,"value":2}] | from_entries  [{"key":"a"}] | from_entries  [{"name":"a","value":1}] | from_entries  [{"k":"a","v":1}] | from_entries
[{"Key":"a","Value":1}] | from_entries  [{"Name":"a","v":1}] | from_entries  [{"key":"a","name":"b","value":null,"Value":1,"more":2}] | from_entries
[{"key":null,"name":"b"}] | from_entries  [["a"]] | from_entries  ["a"] | from_entries  [{"K":"a"}] | from_entries  [{}] | from_entries
[{"key":null,"value":2}] | from_entries  [{"key":true,"value":2}] | from_entries  [{"key":"a","value":1},{"key":"a","value":2}] | from_entries  .z | with_entries(select(.value > 1))
.nums | to_entries  .n | to_entries  .s | to_entries  .z | with_entries({key: .key, value: 1})  .e | from_entries  .n | from_entries
"\u001f\u007f\u0080\u2028\t\"" | tojson  [1e-5, 0.001, 1e7, 123456.7, 1e21, 100.0] | tojson  1e7 | tostring  0.001 | tostring  [1, 1.0, -0.0] | tojson
. == .  .a == .a  [.a, .a] | unique | length  .i == .missing  null == false  [] == {}  "a" == "a"  0 == -0.0  0.1 + 0.2 == 0.3
"a,b" / ","  "abc" / ""  [1,2,1] - [1]  [1, 1.0] - [1]  [[1]] - [[1]]  {} + .n  .n + {}  {} - {}  {"a":{"b":1}} * {"a":{"c":2}}  {"a":1} * {"a":{"c":2}}
"ab" * 0.5  "ab" * -1  "ab" * 2.7  [1] * 2  .s * .i  null * "a"  {} * 2  [] / []  {"a": 1} + {"a": null}
[.[] | strings]  [.[] | numbers] | length  [.a[] | objects]  [.. | numbers] | length  [.a | ..]  .a | [.. | .m?]  [.a..]  [..] | length
.a.l | first.m  .nums | first + 1  first.a  [first(.nums[], .s)]  [last(empty)]  .s | last  .s | first  .z | first  .i | last  last(.nums[], .e[])
.nums | (.[0], .[1])  (.nums | .[0]) + 1  .nums | .[0] + .[1]  if .nums | length > 2 then "m" else "f" end  if .a then .b else .c end | . // "q"
.yes and (.i > 1)  (.yes and .i) > 1  .i > 1 and (.s | length) == 3  (.i > 1) | not  [.nums[] | if . > 1 then "hi" else "lo" end]  [.nums[] | (. > 1)]
.a.l | map({(.k): .m}) | add  .a.l | map({k, m})  .a.l | map(.k) | join("|")  .a.l | map(select(.k == "x").m) | .[0]  [.a.l[] | {k: .k, v: (.m + 1)}]
.a.l | map(.m) | add / length  (.nums | add) / (.nums | length)  .nums | length as $n | $n  .csv | split(",") | map(ltrimstr(" ")) | join(",")  .csv | split(",") | last
.s | length > 2  .s + "-" + (.i | tostring)  "\(.s)-\(.i)"  "\(1 + 1)"  "\(.a)"  "\("x")"  "a\(.missing)"  "\(.d)\(.e)"
.a | keys | join(",")  .a | keys | .[0]  .a | length == 2  .a | has("b") and has("l")  .a.l | length  (.a.l | length) + 1  .a.l | any(.m == 2)  .a.l | all(.m > 0)
.words | map(ascii_upcase)  .words | sort | unique  .words | map(. == "a") | any  .words | index("B")  .words | contains(["a", "b"])  .words[-2:] | join("")
.i | floor | tostring  .d | floor + 1  .num | tonumber + 1  (.num | tonumber) + 1  .num | tonumber | floor  .i | tostring | tonumber  .nums | map(tostring)
"\(.s, .i)x\(1, 2)"  ["\(.s, .i)x\(1, 2)"]  {(.s, "q"): (1, 2)}  [{(.s, "q"): (1, 2)}]  [.nums[] + .nums[]] | length  [(1, 2) // 3]  [(1, 2) < (2, 1)]
[if (true, false) then (1, 2) else 3 end]  [.nums[(0, 1)]]  [.a.l[(0, 1)]["m", "k"]]  [.a.l[0, 1] | .m]  [.nums[0:(1, 2)]]  .nums[1:null]  .nums[-1:]  .nums[0:-1] | add
.s | split("t")  .s | split("")[0]  .nums | flatten  .mixed | flatten  .mixed | map(type) | unique  .mixed | length  .lists | map(add)  [.lists[][0]]  .lists[][0]
[.lists[] | .[0]]  .lists | map(.[0]) | max  .lists | flatten | add  .z | keys[]  [.z | keys[]]  .z | map(.) | add  .z | add == 3  .z | length  .z | any(. > 1)
"""
MORE = ("\n.s\n| length\n", "#x\n.s", "", " ", "\t.i", ".i\u00a0")


def programs() -> list[str]:
    """Each once."""
    listed = [program for line in PROGRAMS.strip().splitlines() for program in line.split("  ")]
    return list(dict.fromkeys([*listed, *MORE]))
