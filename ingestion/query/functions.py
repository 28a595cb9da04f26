"""The functions that a statement may call, by DuckDB's names. All others are refused.

Not here: what reads files, settings, variables, sequences or tables by name, what takes SQL as an argument, and what
depends on chance. What makes large values out of small ones is allowed: the process has limits.
"""

from __future__ import annotations

from ingestion.decode.scalar_functions import ALLOWED

_MORE_SCALARS = """
bar format format_bytes formatreadablesize levenshtein damerau_levenshtein lpad printf range generate_series repeat
rpad list_any_value list_append list_apply list_avg list_count list_filter list_first list_flatten list_grade_up
list_intersect list_last list_max list_median list_min list_mode list_prepend list_product list_reduce list_resize
list_reverse list_string_agg list_sum list_transform list_where list_zip apply filter flatten array_append array_apply
array_filter array_intersect array_prepend array_reduce array_resize array_reverse array_transform array_zip reduce
unnest struct_insert struct_keys struct_values map_concat array_agg json_merge_patch json_pretty json_structure
width_bucket gamma lgamma factorial nextafter now today current_date current_time current_timestamp
get_current_timestamp transaction_timestamp localtimestamp localtime error date timestamp to_base bin to_binary
from_binary list_cosine_similarity ilike_escape
"""
_AGGREGATES = """
any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_min arg_min_null
argmax argmin avg bit_and bit_or bit_xor bitstring_agg bool_and bool_or corr count count_if count_star countif
covar_pop covar_samp entropy favg first fsum group_concat histogram histogram_exact kahan_sum kurtosis kurtosis_pop
last list listagg mad max max_by mean median min min_by mode product quantile quantile_cont quantile_disc regr_avgx
regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop
stddev_samp string_agg sum sum_no_overflow sumkahan sumkbn var_pop var_samp variance weighted_avg wavg
json_group_array json_group_object json_group_structure
"""
_WINDOWS = """
row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead first_value last_value nth_value fill
"""
# These are Headgate's own: see ``stored_sketches``.
_SKETCHES = """
sketch_distinct sketch_quantile sketch_rank
"""
SKETCH_FUNCTIONS = tuple(_SKETCHES.split())
FUNCTIONS = ALLOWED | frozenset(" ".join((_MORE_SCALARS, _AGGREGATES, _WINDOWS, *SKETCH_FUNCTIONS)).split())
TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series"})
