"""JSON texts, good and bad, each with its one right verdict.

A row is a name, the bytes, and either the value or the fault. Rows named ``y_`` are JSON that every
reader takes, ``n_`` is no JSON at all, ``i_`` is where readers differ and this library has decided.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sansmcp.errors import PeerFault
from sansmcp.wire.jsoncodec import JsonValue

BAD: Final = PeerFault.INVALID_JSON
UTF8: Final = PeerFault.INVALID_UTF8
DEEP: Final = PeerFault.JSON_TOO_DEEP


class Text(NamedTuple):
    name: str
    data: bytes
    value: JsonValue = None
    fault: PeerFault | None = None


def good(name: str, data: bytes, value: JsonValue) -> Text:
    return Text(name, data, value)


def bad(name: str, data: bytes, fault: PeerFault = BAD) -> Text:
    return Text(name, data, None, fault)


def nested(depth: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(depth - 1):
        value = [value]
    return value


def nested_objects(depth: int) -> JsonValue:
    value: JsonValue = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


STRUCTURE: Final = (
    good("y_empty_object", b"{}", {}),
    good("y_empty_array", b"[]", []),
    good("y_null", b"null", None),
    good("y_true", b"true", True),
    good("y_false", b"false", False),
    good("y_space_everywhere", b' \t\r\n{ "a" :\t[ 1 ,\r\n2 ] } \r\n', {"a": [1, 2]}),
    good("y_empty_key", b'{"":0}', {"": 0}),
    good("y_keys_keep_their_order", b'{"b":1,"a":2}', {"b": 1, "a": 2}),
    good("y_brackets_in_strings", b'["[{[{", "]}", "\\"[", "\\\\"]', ["[{[{", "]}", '"[', "\\"]),
    bad("n_empty", b""),
    bad("n_space", b" "),
    bad("n_two_values", b"1 2"),
    bad("n_two_objects", b"{}{}"),
    bad("n_text_after", b'{"a":1}x'),
    bad("n_bracket_after", b"[]]"),
    bad("n_comma_after", b"[],"),
    bad("n_nul_after", b"1\x00"),
    bad("n_nul", b"\x00"),
    bad("n_vertical_tab", b"\x0b1"),
    bad("n_form_feed", b"1\x0c"),
    bad("n_no_break_space", b"\xc2\xa01"),
    bad("n_line_separator_outside", b"\xe2\x80\xa81"),
    bad("n_byte_order_mark", b"\xef\xbb\xbf1"),
    bad("n_object_open", b"{"),
    bad("n_object_close", b"}"),
    bad("n_array_open", b"["),
    bad("n_array_unclosed", b"[1"),
    bad("n_array_closed_as_object", b"[1}"),
    bad("n_object_closed_as_array", b'{"a":1]'),
    bad("n_trailing_comma_array", b"[1,]"),
    bad("n_trailing_comma_object", b'{"a":1,}'),
    bad("n_leading_comma", b"[,1]"),
    bad("n_double_comma", b"[1,,2]"),
    bad("n_missing_comma", b"[1 2]"),
    bad("n_missing_colon", b'{"a" 1}'),
    bad("n_double_colon", b'{"a"::1}'),
    bad("n_missing_value", b'{"a":}'),
    bad("n_missing_key", b"{:1}"),
    bad("n_key_only", b'{"a"}'),
    bad("n_number_as_key", b"{1:2}"),
    bad("n_word_as_key", b"{a:1}"),
    bad("n_comment", b"/* */1"),
    bad("n_line_comment", b"1//"),
    bad("n_single_quotes", b"'a'"),
    bad("n_capital_true", b"True"),
    bad("n_half_true", b"tru"),
    bad("n_half_null", b"nul"),
    bad("n_word", b"undefined"),
    bad("n_chatter", b"Starting server on port 0"),
)

NUMBERS: Final = (
    good("y_zero", b"0", 0),
    good("y_negative", b"-1", -1),
    good("y_minus_zero_is_an_integer", b"-0", 0),
    good("y_minus_zero_fraction", b"-0.0", -0.0),
    good("y_exponent", b"1e2", 100.0),
    good("y_exponent_signs", b"[1E+2,1e-2]", [100.0, 0.01]),
    good("y_exponent_zeros", b"1e0000000000000000000001", 10.0),
    good("y_fraction", b"0.1", 0.1),
    good("y_past_2_to_53", b"9007199254740993", 9007199254740993),
    good("y_past_2_to_63", b"9223372036854775808", 9223372036854775808),
    good("y_largest_64_bit", b"18446744073709551615", 18446744073709551615),
    good("y_past_2_to_64", b"18446744073709551616", 18446744073709551616),
    good("y_past_minus_2_to_63", b"-9223372036854775809", -9223372036854775809),
    good("y_many_digits", b"1" * 640, int("1" * 640)),
    good("i_longest_integer", b"7" * 4300, int("7" * 4300)),
    good("i_longest_negative_integer", b"-" + b"7" * 4300, -int("7" * 4300)),
    bad("i_integer_too_long", b"7" * 4301),
    bad("i_negative_integer_too_long", b"-" + b"7" * 4301),
    bad("i_integer_too_long_inside", b'{"a":[' + b"7" * 5000 + b"]}"),
    good("i_underflow", b"1e-400", 0.0),
    good("i_underflow_huge_exponent", b"-1e-99999999999999999999", -0.0),
    good("i_zero_with_huge_exponent", b"0e99999", 0.0),
    good("y_largest_float", b"1.7976931348623157e308", 1.7976931348623157e308),
    good("y_rounds_to_largest_float", b"1.7976931348623158e308", 1.7976931348623157e308),
    good("y_smallest_float", b"5e-324", 5e-324),
    good("y_rounds_to_smallest_float", b"2.5e-324", 5e-324),
    good("y_half_even", b"9007199254740993.0", 9007199254740992.0),
    good(
        "y_hard_to_round", b"[1e23,8.5e22,2.2250738585072011e-308]", [1e23, 8.5e22, 2.2250738585072011e-308]
    ),
    good("y_long_fraction", b"0." + b"3" * 500, float("0." + "3" * 500)),
    good("y_long_integer_small_exponent", b"1" * 400 + b"e-400", float("1" * 400 + "e-400")),
    bad("i_overflow", b"1e400"),
    bad("i_overflow_negative", b"-1e400"),
    bad("i_overflow_by_rounding", b"1.7976931348623159e308"),
    bad("i_overflow_long_fraction", b"1" * 400 + b".0"),
    bad("i_overflow_huge_exponent", b"1e99999999999999999999"),
    bad("i_overflow_inside", b'{"a":[{"b":1e400}]}'),
    bad("n_nan", b"NaN"),
    bad("n_infinity", b"Infinity"),
    bad("n_minus_infinity", b"-Infinity"),
    bad("n_nan_inside", b'{"structuredContent":{"score":NaN}}'),
    bad("n_plus", b"+1"),
    bad("n_minus_alone", b"-"),
    bad("n_minus_space", b"- 1"),
    bad("n_leading_zero", b"01"),
    bad("n_negative_leading_zero", b"-01"),
    bad("n_no_integer_part", b".5"),
    bad("n_no_fraction_part", b"1."),
    bad("n_point_exponent", b"1.e2"),
    bad("n_exponent_without_digits", b"1e"),
    bad("n_exponent_sign_only", b"1e+"),
    bad("n_hexadecimal", b"0x1"),
    bad("n_underscore", b"1_000"),
    bad("n_fullwidth_digit", "１".encode()),
    bad("n_arabic_digit", "٣".encode()),
)

STRINGS: Final = (
    good("y_escapes", rb'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t'),
    good(
        "y_solidus", rb'{"mimeType":"image\/png","data":"\/9j\/"}', {"mimeType": "image/png", "data": "/9j/"}
    ),
    good("y_unicode_escape", rb'"\u20ac\u20AC"', "€€"),
    good("y_nul_escape", rb'"\u0000"', "\x00"),
    good("y_pair_escape", rb'"\ud83d\ude00"', "😀"),
    good("y_pair_escape_mixed_case", rb'"\uD83D\uDe00"', "😀"),
    good("y_utf8", '"é€😀"'.encode(), "é€😀"),
    good("y_utf8_key", '{"é":1}'.encode(), {"é": 1}),
    good("y_largest_code_point", b'"\xf4\x8f\xbf\xbf"', "\U0010ffff"),
    good("y_noncharacter", b'"\xef\xbf\xbf"', "\uffff"),
    good("y_byte_order_mark_inside", b'"\xef\xbb\xbf"', "\ufeff"),
    good("y_delete", b'"\x7f"', "\x7f"),
    good("y_line_separators", b'"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85"', "\u2028\u2029\x85"),
    good("i_lone_high_surrogate", rb'"\ud800"', "\ud800"),
    good("i_lone_low_surrogate", rb'"\udc00"', "\udc00"),
    good("i_lone_surrogate_in_key", rb'{"\ud800":1}', {"\ud800": 1}),
    good("i_two_high_surrogates", rb'"\ud83d\ud83d"', "\ud83d\ud83d"),
    good("i_reversed_pair", rb'"\ude00\ud83d"', "\ude00\ud83d"),
    good("i_high_surrogate_then_text", rb'"\ud83dx"', "\ud83dx"),
    good("i_high_surrogate_then_escape", rb'"\ud83d\n"', "\ud83d\n"),
    good("i_high_surrogate_then_character", b'"\\ud83d\xe2\x82\xac"', "\ud83d€"),
    good("i_pair_after_high_surrogate", rb'"\ud83d\ud83d\ude00"', "\ud83d😀"),
    bad("n_unclosed", b'"a'),
    bad("n_quote_alone", b'"'),
    bad("n_backslash_at_the_end", b'"\\'),
    bad("n_escaped_end", rb'"\"'),
    bad("n_unknown_escape", rb'"\x41"'),
    bad("n_escaped_quote_single", rb'"\'"'),
    bad("n_capital_unicode_escape", rb'"\U0041"'),
    bad("n_short_unicode_escape", rb'"\u12"'),
    bad("n_no_hex", rb'"\u00zz"'),
    bad("n_space_in_escape", rb'"\u 123"'),
    bad("n_sign_in_escape", rb'"\u+123"'),
    bad("n_prefix_in_escape", rb'"\u0x12"'),
    bad("n_underscore_in_escape", rb'"\u1_23"'),
    bad("n_half_pair_broken", rb'"\ud83d\u"'),
    bad("n_raw_nul", b'"\x00"'),
    bad("n_raw_tab", b'"\t"'),
    bad("n_raw_newline", b'"a\nb"'),
    bad("n_raw_carriage_return", b'"a\rb"'),
    bad("n_raw_unit_separator", b'"\x1f"'),
    bad("n_raw_control_in_key", b'{"\x01":1}'),
)

UTF8_FAULTS: Final = (
    bad("n_ff", b'"\xff"', UTF8),
    bad("n_ff_fe", b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff\xfe"}', UTF8),
    bad("n_ff_in_key", b'{"\xff":1}', UTF8),
    bad("n_ff_outside", b"\xff", UTF8),
    bad("n_ff_after", b"[1]\xff", UTF8),
    bad("n_continuation_alone", b'"\x80"', UTF8),
    bad("n_cut_in_string", b'"\xe2\x82"', UTF8),
    bad("n_cut_at_the_end", b'"\xe2\x82', UTF8),
    bad("n_overlong_nul", b'"\xc0\x80"', UTF8),
    bad("n_overlong_solidus", b'"\xe0\x80\xaf"', UTF8),
    bad("n_encoded_surrogate", b'"\xed\xa0\x80"', UTF8),
    bad("n_encoded_surrogate_pair", b'"\xed\xa0\xbd\xed\xb8\x80"', UTF8),
    bad("n_past_the_last_code_point", b'"\xf4\x90\x80\x80"', UTF8),
    bad("n_five_bytes", b'"\xf8\x88\x80\x80\x80"', UTF8),
    bad("n_latin_1", b'"caf\xe9"', UTF8),
    bad("n_utf16", '{"a":1}'.encode("utf-16"), UTF8),
    bad("n_utf16_without_mark", '{"a":1}'.encode("utf-16-le")),
    bad("n_utf32", '{"a":1}'.encode("utf-32"), UTF8),
)

DEPTH: Final = (
    good("y_deepest_array", b"[" * 128 + b"]" * 128, nested(128)),
    good("y_deepest_object", b'{"a":' * 127 + b"{}" + b"}" * 127, nested_objects(128)),
    good("y_wide_but_flat", b"[" + b"[]," * 999 + b"[]]", [[] for _ in range(1000)]),
    good("y_wide_with_strings", b"[" + b'["]["],' * 999 + b'["]["]]', [["]["] for _ in range(1000)]),
    good("y_brackets_of_a_string", b'["' + b"[" * 1000 + b'"]', ["[" * 1000]),
    good("y_brackets_behind_escapes", b'["' + b'\\"[\\\\{' * 300 + b'"]', ['"[\\{' * 300]),
    bad("i_array_too_deep", b"[" * 129 + b"]" * 129, DEEP),
    bad("i_object_too_deep", b'{"a":' * 128 + b"{}" + b"}" * 128, DEEP),
    bad("i_mixed_too_deep", b'[{"a":' * 65 + b"0" + b"}]" * 65, DEEP),
    bad("i_too_deep_at_the_end", b"[" + b"[]," * 1000 + b"[" * 128 + b"]" * 129, DEEP),
    bad("i_too_deep_behind_strings", b"[" + b'"\\\\","[[","]",' * 500 + b"[" * 128 + b"]" * 129, DEEP),
    bad("i_too_deep_and_unclosed", b"[" * 200, DEEP),
    bad("i_too_deep_for_any_stack", b"[" * 100_000, DEEP),
    bad("i_objects_too_deep_for_any_stack", b'{"a":' * 100_000, DEEP),
    bad("i_closed_too_deep_for_any_stack", b"[" * 100_000 + b"]" * 100_000, DEEP),
    bad("n_not_deep_but_unclosed", b"[" + b"[]," * 1000),
    bad("n_only_closing", b"]" * 1000),
)

DUPLICATES: Final = (
    good("i_same_key_twice", b'{"a":1,"a":2}', {"a": 2}),
    good("i_same_key_keeps_its_place", b'{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
    good("i_same_key_escaped", rb'{"a":1,"\u0061":2}', {"a": 2}),
    good("i_same_key_inside", b'[{"x":{"id":1,"id":2}}]', [{"x": {"id": 2}}]),
)
"""Refused with DUPLICATE_KEY where duplicates are."""

TEXTS: Final = (*STRUCTURE, *NUMBERS, *STRINGS, *UTF8_FAULTS, *DEPTH, *DUPLICATES)
