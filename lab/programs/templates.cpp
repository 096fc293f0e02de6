// A source for compilers: maps, vectors, variants and shared pointers, instantiated for TYPES
// types, so that the compiler builds and drops a great many small trees.
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#ifndef TYPES
#define TYPES 3
#endif

// A different type for every N, so that nothing is instantiated twice.
template <int N> struct item {
    int number = N;
    double weight = 1;

    bool operator<(const item &other) const
    {
        return std::tie(number, weight) < std::tie(other.number, other.weight);
    }
};

template <int N> using value = std::variant<int, double, item<N>, item<N + 1000>>;

template <int N> struct registry {
    std::map<item<N>, std::vector<value<N>>> by_item;
    std::map<int, std::shared_ptr<item<N>>> by_number;

    void add(const item<N> &entry, value<N> what)
    {
        by_item[entry].push_back(std::move(what));
        by_number.emplace(entry.number, std::make_shared<item<N>>(entry));
    }

    double weigh() const
    {
        double total = 0;
        for (const auto &[entry, values] : by_item) {
            for (const auto &one : values) {
                total +=
                    entry.weight + std::visit([](const auto &held) { return sizeof held; }, one);
            }
        }
        for (const auto &[number, entry] : by_number) {
            total += number * entry->weight;
        }
        return total;
    }
};

template <int N> double run(const std::vector<int> &numbers)
{
    registry<N> all;
    for (int number : numbers) {
        item<N> entry;
        entry.number = number;
        all.add(entry, number % 2 ? value<N>(entry) : value<N>(number));
    }
    return all.weigh();
}

template <int... Numbers>
double run_all(const std::vector<int> &numbers, std::integer_sequence<int, Numbers...>)
{
    return (run<Numbers>(numbers) + ... + 0.0);
}

double measure_everything(const std::vector<int> &numbers)
{
    return run_all(numbers, std::make_integer_sequence<int, TYPES>());
}
