#include "base/json.h"

#include "base/mem.h"
#include "base/text.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

// What cJSON would accept silently and we must not: checked on the text, before it is parsed.
static int text_check(const char *s, size_t n, struct err *e)
{
    if (!text_valid_utf8(s, n))
        return err_set(e, ERR_FAIL, "", "not valid UTF-8");
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == 0)
            return err_set(e, ERR_FAIL, "", "a NUL byte at offset %zu", i);
        if (!in_string) {
            if ((c == '{' || c == '[') && ++depth > MAX_DEPTH)
                return err_set(e, ERR_FAIL, "", "nested deeper than %d at offset %zu", MAX_DEPTH, i);
            if (c == '}' || c == ']')
                depth--;
            in_string = c == '"';
        } else if (c == '"') {
            in_string = false;
        } else if (c < 0x20) {
            return err_set(e, ERR_FAIL, "", "a raw control character in a string at offset %zu", i);
        } else if (c == '\\') {
            // cJSON takes any hex digit first and stops at a NUL: both spell \u0000.
            if (n - i > 5 && s[i + 1] == 'u' && strncmp(s + i + 2, "0000", 4) == 0)
                return err_set(e, ERR_FAIL, "", "\\u0000 in a string at offset %zu", i);
            i++;
        }
    }
    return 0;
}

static bool duplicate_keys(const cJSON *j)
{
    for (const cJSON *a = j->child; a; a = a->next) {
        if (cJSON_IsObject(j))
            for (const cJSON *b = j->child; b != a; b = b->next)
                if (strcmp(a->string, b->string) == 0)
                    return true;
        if (a->child && duplicate_keys(a))
            return true;
    }
    return false;
}

json *json_parse_own(const char *s, size_t n, struct err *e)
{
    // cJSON may look one byte past what it was given, and refuses trailing text only if it sees the NUL.
    char *copy = xstrndup(s, n);
    const char *end = NULL;
    cJSON *j = cJSON_ParseWithLengthOpts(copy, n + 1, &end, 1);
    if (!j)
        err_set(e, ERR_FAIL, "", "not one JSON value: stopped at offset %td of %zu", end ? end - copy : 0, n);
    free(copy);
    return j;
}

json *json_parse(const char *s, size_t n, struct err *e)
{
    if (text_check(s, n, e) < 0)
        return NULL;
    cJSON *j = json_parse_own(s, n, e);
    if (j && duplicate_keys(j)) {
        err_set(e, ERR_FAIL, "", "the same key twice in one object");
        cJSON_Delete(j);
        return NULL;
    }
    return j;
}

void json_free(json *j)
{
    cJSON_Delete(j);
}

static void print_string(const char *s, struct str *out)
{
    str_addc(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            str_addf(out, "\\%c", c);
        else if (c == '\n')
            str_add(out, "\\n");
        else if (c == '\t')
            str_add(out, "\\t");
        else if (c < 0x20 || c == 0x7f)
            str_addf(out, "\\u%04x", c);
        else
            str_addc(out, *s);
    }
    str_addc(out, '"');
}

static void print_number(double x, struct str *out)
{
    char text[40];
    if (!isfinite(x)) {
        str_add(out, "null");
        return;
    }
    if (x == floor(x) && fabs(x) < 9007199254740992.0) {
        snprintf(text, sizeof text, "%.0f", x);
    } else {
        // The fewest digits that read back as the same number.
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, x);
            if (strtod(text, NULL) == x)
                break;
        }
    }
    str_add(out, text);
}

void json_print(const json *j, struct str *out)
{
    if (cJSON_IsString(j)) {
        print_string(j->valuestring, out);
    } else if (cJSON_IsNumber(j)) {
        print_number(j->valuedouble, out);
    } else if (cJSON_IsBool(j)) {
        str_add(out, cJSON_IsTrue(j) ? "true" : "false");
    } else if (cJSON_IsArray(j) || cJSON_IsObject(j)) {
        bool object = cJSON_IsObject(j);
        str_addc(out, object ? '{' : '[');
        for (const cJSON *x = j->child; x; x = x->next) {
            if (object) {
                print_string(x->string, out);
                str_addc(out, ':');
            }
            json_print(x, out);
            if (x->next)
                str_addc(out, ',');
        }
        str_addc(out, object ? '}' : ']');
    } else {
        str_add(out, "null");
    }
}

bool json_is_object(const json *j)
{
    return cJSON_IsObject(j);
}

bool json_is_array(const json *j)
{
    return cJSON_IsArray(j);
}

bool json_is_string(const json *j)
{
    return cJSON_IsString(j);
}

bool json_is_number(const json *j)
{
    return cJSON_IsNumber(j);
}

json *json_get(const json *o, const char *key)
{
    return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

const char *json_str(const json *o, const char *key)
{
    return json_string(json_get(o, key));
}

const char *json_str_or(const json *o, const char *key, const char *otherwise)
{
    const char *s = json_str(o, key);
    return s ? s : otherwise;
}

double json_num(const json *o, const char *key, double otherwise)
{
    return json_number(json_get(o, key), otherwise);
}

int64_t json_int(const json *o, const char *key, int64_t otherwise)
{
    const json *j = json_get(o, key);
    if (cJSON_IsNumber(j) && fabs(j->valuedouble) <= 9007199254740992.0)
        return (int64_t)j->valuedouble;
    if (!cJSON_IsString(j))
        return otherwise;
    char *end;
    errno = 0;
    long long x = strtoll(j->valuestring, &end, 10);
    return errno || end == j->valuestring || *end ? otherwise : x;
}

bool json_bool(const json *o, const char *key, bool otherwise)
{
    const json *j = json_get(o, key);
    return cJSON_IsBool(j) ? cJSON_IsTrue(j) : otherwise;
}

bool json_has(const json *o, const char *key)
{
    return json_get(o, key) != NULL;
}

json *json_first(const json *j)
{
    return j ? j->child : NULL;
}

json *json_next(const json *j)
{
    return j->next;
}

const char *json_key(const json *j)
{
    return j->string;
}

size_t json_count(const json *j)
{
    size_t n = 0;
    for (const json *x = json_first(j); x; x = x->next)
        n++;
    return n;
}

const char *json_string(const json *j)
{
    return cJSON_IsString(j) ? j->valuestring : NULL;
}

double json_number(const json *j, double otherwise)
{
    return cJSON_IsNumber(j) ? j->valuedouble : otherwise;
}

static json *must(json *j)
{
    if (!j)
        abort();
    return j;
}

json *json_object(void)
{
    return must(cJSON_CreateObject());
}

json *json_array(void)
{
    return must(cJSON_CreateArray());
}

static json *string_of(const char *s, size_t n)
{
    if (text_valid_utf8(s, n) && !memchr(s, 0, n)) {
        char *copy = xstrndup(s, n);
        json *j = must(cJSON_CreateString(copy));
        free(copy);
        return j;
    }
    struct str clean = {0};
    text_clean(&clean, s, n, TEXT_BLOCK);
    json *j = must(cJSON_CreateString(str_c(&clean)));
    str_free(&clean);
    return j;
}

json *json_new_str(const char *s)
{
    return string_of(s, strlen(s));
}

json *json_new_num(double x)
{
    return must(isfinite(x) ? cJSON_CreateNumber(x) : cJSON_CreateNull());
}

json *json_new_int(int64_t x)
{
    if (x <= 9007199254740991 && x >= -9007199254740991)
        return must(cJSON_CreateNumber((double)x));
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)x);
    return must(cJSON_CreateString(text));
}

json *json_copy(const json *j)
{
    return must(cJSON_Duplicate(j, 1));
}

void json_put(json *o, const char *key, json *value)
{
    if (!cJSON_AddItemToObject(o, key, must(value)))
        abort();
}

void json_put_str(json *o, const char *key, const char *s)
{
    if (s)
        json_put(o, key, json_new_str(s));
}

void json_put_strn(json *o, const char *key, const char *s, size_t n)
{
    json_put(o, key, string_of(s, n));
}

void json_put_num(json *o, const char *key, double x)
{
    json_put(o, key, json_new_num(x));
}

void json_put_int(json *o, const char *key, int64_t x)
{
    json_put(o, key, json_new_int(x));
}

void json_put_bool(json *o, const char *key, bool x)
{
    json_put(o, key, must(cJSON_CreateBool(x)));
}

void json_push(json *a, json *value)
{
    if (!cJSON_AddItemToArray(a, must(value)))
        abort();
}
