// Counts words: the second input of the row g++, unlike the first one in what it uses.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

int main()
{
    std::unordered_map<std::string, unsigned> counts;
    const std::regex word("[[:alpha:]]+(-[[:alpha:]]+)*");
    for (std::string line; std::getline(std::cin, line);)
        for (std::sregex_iterator it(line.begin(), line.end(), word), end; it != end; ++it) {
            std::string text = it->str();
            std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
                return static_cast<char>(std::tolower(c));
            });
            counts[text]++;
        }
    std::vector<std::pair<std::string, unsigned>> sorted(counts.begin(), counts.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    std::ostringstream out;
    for (const auto &[text, count] : sorted)
        out << count << ' ' << text << '\n';
    std::cout << out.str();
}
