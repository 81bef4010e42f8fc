// Choosing models and keeping budgets; model sections; URLs; prices.
#include "t.h"

#include "base/json.h"
#include "models/ensemble.h"
#include "models/model.h"

static void better_models_are_asked_more(void)
{
    struct arm arms[] = {{"good", 1, false, 20, 20, 2.0, 200, 1.0},
                         {"slow", 1, false, 20, 20, 2.0, 2000, 1.0},
                         {"useless", 1, false, 20, 20, 0.0, 200, 1.0},
                         {"new", 1, false, 0, 0, 0, 0, 0}};
    struct arm_score s[4];
    ensemble_score(arms, 4, s);
    CHECK(s[0].chance > s[1].chance);
    CHECK(s[1].chance > s[2].chance);
    CHECK_NEAR(s[3].score, 1, 0);
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        CHECK(s[i].chance > 0.03); // nobody is starved
        sum += s[i].chance;
    }
    CHECK_NEAR(sum, 1, 1e-12);
    // Dollars count where all are known, and only then.
    struct arm dear[] = {{"cheap", 1, false, 20, 20, 1.0, 200, 0.1},
                         {"dear", 1, false, 20, 20, 1.0, 200, 10}};
    ensemble_score(dear, 2, s);
    CHECK(s[0].chance > s[1].chance);
    dear[0].usd = NAN;
    ensemble_score(dear, 2, s);
    CHECK_NEAR(s[0].chance, s[1].chance, 1e-12);
    // The engineer's weight is a factor.
    struct arm same[] = {{"a", 3, false, 20, 20, 1.0, 200, 1}, {"b", 1, false, 20, 20, 1.0, 200, 1}};
    ensemble_score(same, 2, s);
    CHECK_NEAR(s[0].chance, 0.75, 1e-12);
}

static void the_choice_is_drawn_and_repeats(void)
{
    struct arm arms[] = {{"a", 1, false, 5, 5, 1, 10, NAN},
                         {"b", 1, true, 5, 5, 9, 10, NAN},
                         {"c", 0, false, 5, 5, 9, 10, NAN},
                         {"d", 1, false, 5, 5, 1, 10, NAN}};
    int count[4] = {0};
    for (uint64_t i = 0; i < 400; i++) {
        int x = ensemble_choose(arms, 4, (struct draw){7, i}, "model");
        CHECK_INT(x, ensemble_choose(arms, 4, (struct draw){7, i}, "model"));
        count[x]++;
    }
    CHECK(count[0] > 150 && count[3] > 150);
    CHECK_INT(count[1] + count[2], 0); // busy, and without weight
    arms[0].busy = arms[3].busy = true;
    CHECK_INT(ensemble_choose(arms, 4, (struct draw){7, 1}, "model"), -1);
    CHECK_INT(ensemble_choose(arms, 0, (struct draw){7, 1}, "model"), -1);
}

static void budgets_hold_with_requests_under_way(void)
{
    struct budget b = {.usd = 1.0, .spent_usd = 0.5};
    struct flight none = {0}, some = {4, 0.4, 1000};
    struct str why = {0};
    CHECK(budget_allows(&b, &none, 0.1, 10, &why));
    CHECK(budget_allows(&b, &some, 0.1, 10, &why));
    CHECK(!budget_allows(&b, &some, 0.11, 10, &why));
    CHECK(strstr(str_c(&why), "$1.00") && strstr(str_c(&why), "4 requests under way"));
    str_clear(&why);
    CHECK(!budget_allows(&b, &none, NAN, 10, &why)); // unknown is not zero
    CHECK(strstr(str_c(&why), "price is unknown"));
    b.usd = 0;
    CHECK(budget_allows(&b, &none, NAN, 10, &why));
    b.tokens = 5000;
    b.spent_tokens = 3995;
    CHECK(!budget_allows(&b, &some, NAN, 10, &why));
    CHECK(budget_allows(&b, &some, NAN, 5, &why));
    str_clear(&why);
    b.usd = 5;
    budget_forecast(&b, 400, 0.01, 0.02, 5000, &why);
    CHECK_STR(
        str_c(&why),
        "about 400 requests, 2 million tokens, $4.00 to $8.00; the budget of $5.00 lasts for 250 requests at "
        "least; the budget of 5000 tokens lasts for about 1");
    str_clear(&why);
    budget_forecast(&b, 400, NAN, NAN, 0, &why);
    CHECK(strstr(str_c(&why), "price unknown"));
    str_free(&why);
}

static int load(struct model *m, const char *text, err_list *errors)
{
    json *j = json_parse(text, strlen(text), NULL);
    int r = model_load(m, "m", j, "config.ini", errors);
    json_free(j);
    return r;
}

static void sections_are_read_and_mistakes_named(void)
{
    struct model m;
    err_list errors = {0};
    CHECK(load(&m,
               "{\"url\":\"https://a.example/v1\",\"model\":\"x\",\"temperature\":\"0.2 "
               "0.7\",\"parallel\":\"4\",\"price_in\":\"2\","
               "\"price_out\":\"8\",\"stream\":\"no\",\"header\":\"X-Title: "
               "k\",\"body\":\"{\\\"a\\\":1}\",\"max_tokens\":\"1000\"}",
               &errors) == 0);
    CHECK_INT(m.temperatures, 2);
    CHECK_NEAR(m.temperature[1], 0.7, 0);
    CHECK_INT(m.parallel, 4);
    CHECK_INT(m.max_limit, 4000);
    CHECK(!m.stream && isnan(m.top_p) && json_has(m.body, "a"));
    CHECK_NEAR(model_price(&m, 1000, -1, 100), (2000 + 800) * 1e-6, 1e-15);
    CHECK(isnan(model_price(&m, -1, -1, 100)));
    m.price_out = NAN;
    CHECK(isnan(model_price(&m, 1000, 0, 100)));
    model_free(&m);
    static const struct {
        const char *section, *says;
    } bad[] = {
        {"{}", "has no url"},
        {"{\"url\":\"localhost:8080\",\"model\":\"x\"}", "expected http:// or https://"},
        {"{\"url\":\"ftp://h/\",\"model\":\"x\"}", "expected http:// or https://"},
        {"{\"url\":\"http://u:p@h/\",\"model\":\"x\"}", "password"},
        {"{\"url\":\"http://h/\"}", "has no model"},
        {"{\"url\":\"http://h/\",\"model\":\"x\",\"key\":\"sk-1\"}", "keys never stand in a file"},
        {"{\"url\":\"http://h/\",\"model\":\"x\",\"header\":\"Authorization: Bearer x\"}",
         "keys never stand in a file"},
        {"{\"url\":\"http://h/\",\"model\":\"x\",\"header\":\"api-key: {key}\"}", "there is no key"},
        {"{\"url\":\"http://h/\",\"model\":\"x\",\"temperatur\":\"1\"}", "did you mean temperature?"},
        {"{\"url\":\"http://h/\",\"model\":\"x\",\"temperature\":\"3\"}", "from 0 to 2"},
        {"{\"url\":\"http://h/\",\"model\":\"x\",\"parallel\":\"0\"}", "from 1 to 256"},
        {"{\"url\":\"http://h/\",\"model\":\"x\",\"stream\":\"1\"}", "yes or no"},
        {"{\"url\":\"http://h/\",\"model\":\"x\",\"body\":\"[1]\"}", "expected a JSON object"},
        {"{\"url\":\"http://h/\",\"model\":\"x\",\"key_env\":\"A\",\"key_cmd\":\"b\"}", "both"},
    };
    for (size_t i = 0; i < countof(bad); i++) {
        errors.n = 0;
        CHECK(load(&m, bad[i].section, &errors) < 0);
        bool found = false;
        for (size_t k = 0; k < errors.n; k++)
            found |= strstr(errors.v[k].msg, bad[i].says) != NULL;
        if (!found)
            printf("# no \"%s\": %s\n", bad[i].says, errors.n ? errors.v[0].msg : "");
        CHECK(found);
        model_free(&m);
    }
    vec_free(&errors);
}

static void urls_are_joined(void)
{
    static const struct {
        const char *base, *want, *other;
    } cases[] = {
        {"https://api.openai.com", "https://api.openai.com/v1/chat/completions",
         "https://api.openai.com/chat/completions"},
        {"https://api.openai.com/", "https://api.openai.com/v1/chat/completions",
         "https://api.openai.com/chat/completions"},
        {"https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions",
         "https://api.openai.com/chat/completions"},
        {"https://api.openai.com/v1///", "https://api.openai.com/v1/chat/completions",
         "https://api.openai.com/chat/completions"},
        {"http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions", "http://h:1/chat/completions"},
        {"http://h:1/v1/chat", "http://h:1/v1/chat/completions", "http://h:1/chat/completions"},
        {"https://openrouter.ai/api", "https://openrouter.ai/api/v1/chat/completions",
         "https://openrouter.ai/api/chat/completions"},
        {"https://h/api/paas/v4", "https://h/api/paas/v4/chat/completions", NULL},
        {"https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions", NULL},
        {"https://h/vllm", "https://h/vllm/v1/chat/completions", "https://h/vllm/chat/completions"},
        {"https://h/openai/deployments/g?api-version=2024-10-21",
         "https://h/openai/deployments/g/v1/chat/completions?api-version=2024-10-21",
         "https://h/openai/deployments/g/chat/completions?api-version=2024-10-21"},
        {"http://[::1]:8080", "http://[::1]:8080/v1/chat/completions", "http://[::1]:8080/chat/completions"},
        {"https://h/x/chat/completions", "https://h/x/chat/completions", NULL},
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct model m = {.url = strdup(cases[i].base)};
        struct str at = {0};
        model_endpoint(&m, &at);
        CHECK_STR(str_c(&at), cases[i].want);
        str_clear(&at);
        m.learned.other_path = true;
        model_endpoint(&m, &at);
        if (cases[i].other)
            CHECK_STR(str_c(&at), cases[i].other);
        str_free(&at);
        free(m.url);
    }
}

int main(void)
{
    T(better_models_are_asked_more);
    T(the_choice_is_drawn_and_repeats);
    T(budgets_hold_with_requests_under_way);
    T(sections_are_read_and_mistakes_named);
    T(urls_are_joined);
    T_END;
}
