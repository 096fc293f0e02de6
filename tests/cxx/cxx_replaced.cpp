/* A program that replaces new and delete of one object, and nothing else, as one that counts its
 * objects does. By the standard all other forms, new[], nothrow, sized and array delete, lead to
 * its own: behaviour 5. Its blocks have a header, so a form that does not is given the inside of a
 * block. Linked three ways; it prints nothing unless something is wrong.
 */
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

struct alignas(64) wide {
    int number;
};

constexpr std::size_t header = 64;
long news, deletes, refusals;
bool refuse;

void *count_new(std::size_t size)
{
    news++;
    if (refuse) {
        refusals++;
        throw std::bad_alloc();
    }
    char *start = static_cast<char *>(std::aligned_alloc(header, size + header));
    return start ? start + header : throw std::bad_alloc();
}

void count_delete(void *block)
{
    if (!block)
        return;
    deletes++;
    std::free(static_cast<char *>(block) - header);
}

int failures;

void expect(const char *what, long changed_news, long changed_deletes, long expected)
{
    if (changed_news == expected && changed_deletes == expected)
        return;
    std::printf(
        "%s: %ld new and %ld delete reached the program, not %ld\n", what, changed_news,
        changed_deletes, expected);
    failures++;
}

template <typename Body> void check(const char *what, long expected, Body body)
{
    const long news_before = news, deletes_before = deletes;
    body();
    expect(what, news - news_before, deletes - deletes_before, expected);
}

} // namespace

void *operator new(std::size_t size)
{
    return count_new(size);
}

void operator delete(void *block) noexcept
{
    count_delete(block);
}

void *operator new(std::size_t size, std::align_val_t)
{
    return count_new(size);
}

void operator delete(void *block, std::align_val_t) noexcept
{
    count_delete(block);
}

int main()
{
    int *volatile one;
    wide *volatile aligned;
    std::string *volatile strings;
    check("new", 1, [&] { one = new int, delete one; });
    check("new[]", 1, [&] { one = new int[9], delete[] one; });
    check("new[] with destructors", 1, [&] { strings = new std::string[9], delete[] strings; });
    check("nothrow", 1, [&] { one = new (std::nothrow) int, operator delete(one, std::nothrow); });
    check("nothrow[]", 1, [&] {
        one = new (std::nothrow) int[9], operator delete[](one, std::nothrow);
    });
    check("sized", 1, [&] { one = new int, operator delete(one, sizeof(int)); });
    check("sized[]", 1, [&] { one = new int[9], operator delete[](one, 9 * sizeof(int)); });
    check("aligned", 1, [&] { aligned = new wide, delete aligned; });
    check("aligned[]", 1, [&] { aligned = new wide[9], delete[] aligned; });
    check("aligned nothrow", 1, [&] { aligned = new (std::nothrow) wide, delete aligned; });
    check("aligned nothrow[]", 1, [&] { aligned = new (std::nothrow) wide[9], delete[] aligned; });
    check("containers", 2, [&] { std::vector<int>(100), std::string(100, 'x'); });
    refuse = true;
    /* A compiler may leave out a call whose result goes nowhere. */
    bool none = !(one = new (std::nothrow) int);
    none = !(one = new (std::nothrow) int[9]) && none;
    none = !(aligned = new (std::nothrow) wide) && none;
    none = !(aligned = new (std::nothrow) wide[9]) && none;
    if (!none || refusals != 4) {
        std::printf("nothrow: %ld of 4 refusals came through as NULL\n", refusals);
        failures++;
    }
    return failures != 0;
}
