// The source that g++ compiles in `make try`: containers, variants and regular expressions, each
// instantiated for many types, so that the compiler builds and drops a great many small trees.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

// A different type for every N, so that nothing is instantiated twice.
template <int N> struct item {
    int number = N;
    std::string name = "item";

    bool operator<(const item &other) const
    {
        return std::tie(number, name) < std::tie(other.number, other.name);
    }
};

template <int N> using value = std::variant<int, double, std::string, item<N>, item<N + 100>>;

template <int N> struct registry {
    std::map<item<N>, std::vector<value<N>>> by_item;
    std::unordered_map<std::string, std::shared_ptr<item<N>>> by_name;
    std::optional<std::function<void(const item<N> &)>> observer;

    void add(const item<N> &entry, value<N> what)
    {
        by_item[entry].push_back(std::move(what));
        by_name.emplace(entry.name, std::make_shared<item<N>>(entry));
        if (observer) {
            (*observer)(entry);
        }
    }

    std::size_t weigh() const
    {
        std::size_t total = 0;
        for (const auto &[entry, values] : by_item) {
            for (const auto &one : values) {
                total += std::visit([](const auto &held) { return sizeof held; }, one);
            }
        }
        std::vector<item<N>> sorted;
        for (const auto &[name, entry] : by_name) {
            sorted.push_back(*entry);
        }
        std::stable_sort(sorted.begin(), sorted.end());
        return total + sorted.size();
    }
};

template <int N> std::size_t run(const std::string &text)
{
    registry<N> all;
    all.observer = [&](const item<N> &entry) { (void)entry; };
    std::regex pattern("([a-z]+)-([0-9]+)");
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end;
         ++match) {
        item<N> entry;
        entry.name = match->str(1);
        all.add(entry, value<N>(match->str(2)));
    }
    return all.weigh();
}

template <int... Numbers>
std::size_t run_all(const std::string &text, std::integer_sequence<int, Numbers...>)
{
    return (run<Numbers>(text) + ...);
}

#ifndef TYPES
#define TYPES 3
#endif

std::size_t measure_everything(const std::string &text)
{
    return run_all(text, std::make_integer_sequence<int, TYPES>());
}
