// What gdb looks into: a program with templates, classes and lambdas of the standard library.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

struct shape {
    virtual ~shape() = default;
    virtual double area() const = 0;
};

template <int Sides> struct polygon : shape {
    explicit polygon(double side) : side(side)
    {
    }
    double area() const override
    {
        return side * Sides;
    }
    double side;
};

static std::map<std::string, std::vector<int>> fill(int count)
{
    std::map<std::string, std::vector<int>> index;
    for (int i = 0; i < count; i++) {
        index["word" + std::to_string(i % 7)].push_back(i);
    }
    return index;
}

int main()
{
    std::vector<std::unique_ptr<shape>> shapes;
    shapes.push_back(std::make_unique<polygon<3>>(1.5));
    shapes.push_back(std::make_unique<polygon<4>>(2.5));
    auto index = fill(40);
    std::regex words("[a-z]+([0-9])");
    std::function<bool(const std::string &)> known = [&](const std::string &name) {
        return std::regex_match(name, words) && index.count(name) != 0;
    };
    std::cout << known("word3") << known("other") << index.at("word3").back() << '\n';
    return shapes.size() == 2 ? 0 : 1;
}
