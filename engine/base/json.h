// JSON through cJSON, with its traps closed: whole input or error, depth at most 64, valid UTF-8 only, no NUL
// inside strings, no duplicate keys, keys compared with case, numbers printed so that they read back the
// same, 64-bit integers as strings. The only file that includes cJSON is json.c.
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct cJSON;
typedef struct cJSON json;

// Parses all of s[0..n). NULL and an error with the byte offset where it is not exactly one JSON value.
json *json_parse(const char *s, size_t n, struct err *e);
// The same for text that json_print() wrote and a checksum vouches for: without the checks on foreign text.
json *json_parse_own(const char *s, size_t n, struct err *e);
void json_free(json *j);
// Appends the value as one line without spaces.
void json_print(const json *j, struct str *out);

bool json_is_object(const json *j);
bool json_is_array(const json *j);
bool json_is_string(const json *j);
bool json_is_number(const json *j);

// Members; NULL or the given default where the key is absent or of another type.
json *json_get(const json *o, const char *key);
const char *json_str(const json *o, const char *key); // NULL where absent
const char *json_str_or(const json *o, const char *key, const char *otherwise);
double json_num(const json *o, const char *key, double otherwise);
int64_t json_int(const json *o, const char *key, int64_t otherwise); // number or decimal string; exact
bool json_bool(const json *o, const char *key, bool otherwise);
bool json_has(const json *o, const char *key);

// Walking: for (json *x = json_first(a); x; x = json_next(x))
json *json_first(const json *j);
json *json_next(const json *j);
const char *json_key(const json *j);
size_t json_count(const json *j);
// The value itself.
const char *json_string(const json *j); // NULL where it is no string
double json_number(const json *j, double otherwise);

// Building. A value that is put or pushed belongs to its container from then on. Strings that are no valid
// UTF-8 or hold NUL are cleaned (see text.h), so what is written can always be read back.
json *json_object(void);
json *json_array(void);
json *json_new_str(const char *s);
json *json_new_num(double x);  // not finite: null
json *json_new_int(int64_t x); // a string beyond 2^53
json *json_copy(const json *j);
void json_put(json *o, const char *key, json *value);
void json_put_str(json *o, const char *key, const char *s); // NULL puts nothing
void json_put_strn(json *o, const char *key, const char *s, size_t n);
void json_put_num(json *o, const char *key, double x);
void json_put_int(json *o, const char *key, int64_t x);
void json_put_bool(json *o, const char *key, bool x);
void json_push(json *a, json *value);
