"""What an expression of a spec may call: functions of their arguments alone, that build nothing large out of little.

Not here, and so refused: what reads files, settings, variables or sequences, sleeps or logs; what depends on chance or
on the clock, as a record that is read again must become the same row; what takes functions or SQL as arguments; what
makes long texts or lists out of a number (repeat, lpad, range, format); and what takes as long as two texts' lengths
multiplied (levenshtein and its like, json_merge_patch). What grows is bounded in ``expression_size``.
"""

from __future__ import annotations

_OPERATORS = "+ - * / // % ^ ** & | ~ << >> || -> ->> ~~ !~~ ~~* !~~* ~~~ ^@ @> <@ && @ !"
_NUMBERS = """
abs acos acosh asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees divide even exp fdiv floor
fmod gcd greatest greatest_common_divisor isfinite isinf isnan lcm least least_common_multiple ln log log10 log2 mod
multiply pi pow power radians round round_even sign signbit sin sinh sqrt subtract add tan tanh trunc xor
"""
_TEXTS = """
array_extract ascii base64 bit_length char_length character_length chr concat concat_ws contains encode decode ends_with
from_base64 from_hex hamming hash hex ilike_escape instr jaccard jaro_similarity jaro_winkler_similarity lcase left
left_grapheme len length length_grapheme like_escape lower ltrim md5 mismatches nfc_normalize not_ilike_escape
not_like_escape octet_length ord parse_dirname parse_dirpath parse_filename parse_path position prefix regexp_escape
regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array replace reverse
right right_grapheme rtrim sha1 sha256 split split_part starts_with str_split str_split_regex string_split
string_split_regex string_to_array strip_accents strlen strpos substr substring substring_grapheme suffix to_base64
to_hex translate trim ucase unhex unicode upper url_decode url_encode
"""
_TIMES = """
age century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth
dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear julian last_day
make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns microsecond millennium millisecond minute month
monthname nanosecond quarter second strftime strptime time_bucket to_days to_hours to_microseconds to_milliseconds
to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years try_strptime week weekday weekofyear year
yearweek timezone
"""
_VALUES = """
array_contains array_has array_has_all array_has_any array_length array_position array_to_string cardinality element_at
from_json if ifnull json json_array json_array_length json_contains json_exists json_extract json_extract_path
json_extract_path_text json_extract_string json_keys json_object json_quote json_type json_valid
json_value list_cat list_concat list_contains list_distinct list_element list_extract list_has list_has_all
list_has_any list_indexof list_pack list_position list_reverse_sort list_slice list_sort list_unique list_value map
map_contains map_extract map_extract_value map_keys map_values nullif row row_to_json struct_extract struct_pack to_json
typeof array_slice array_sort array_unique array_distinct array_value array_concat array_cat map_from_entries
"""
ALLOWED = frozenset(" ".join((_OPERATORS, _NUMBERS, _TEXTS, _TIMES, _VALUES)).split())

# Of these the result is a number, a boolean, a time, a name or a hash, whatever the arguments are.
_SMALL = """
- * / // % ^ ** ~~ !~~ ~~* !~~* ~~~ ^@ @> <@ && @ ! abs acos acosh asin asinh atan atan2 atanh bit_count cbrt ceil
ceiling cos cosh cot degrees divide even exp fdiv floor fmod gcd greatest_common_divisor isfinite isinf isnan lcm
least_common_multiple ln log log10 log2 mod multiply pi pow power radians round round_even sign signbit sin sinh sqrt
subtract tan tanh trunc ascii bit_length char_length character_length chr contains ends_with hamming hash ilike_escape
instr jaccard jaro_similarity jaro_winkler_similarity len length length_grapheme like_escape md5 mismatches
not_ilike_escape not_like_escape octet_length ord position prefix regexp_full_match regexp_matches sha1 sha256
starts_with strlen strpos suffix unicode age century date_diff date_part date_sub date_trunc datediff datepart datesub
datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era hour
isodow isoyear julian last_day make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns microsecond
millennium millisecond minute month monthname nanosecond quarter second strptime time_bucket to_days to_hours
to_microseconds to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years try_strptime
week weekday weekofyear year yearweek timezone array_contains array_has array_has_all array_has_any array_length
array_position cardinality json_array_length json_contains json_exists json_type json_valid list_contains list_has
list_has_all list_has_any list_indexof list_position list_unique array_unique map_contains typeof
"""
SMALL = frozenset(_SMALL.split())
