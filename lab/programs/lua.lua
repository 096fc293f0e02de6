-- lua.lua ROUNDS: binary trees, strings and tables that live for a while and are dropped; a
-- checksum is printed. The numbers come from a fixed pseudo-random sequence.

local state = 20

local function random(below)
    state = (state * 69069 + 12345) % 4294967296
    return (state // 65536) % below
end

local function make_tree(depth)
    if depth == 0 then
        return {label = "leaf-" .. random(1000)}
    end
    return {left = make_tree(depth - 1), right = make_tree(depth - 1), label = "node-" .. depth}
end

local function weigh(tree)
    if not tree.left then
        return #tree.label
    end
    return 1 + weigh(tree.left) + weigh(tree.right)
end

-- Words to their numbers, kept in a table that grows from nothing.
local function count_words(number)
    local counts, order = {}, {}
    for _ = 1, number do
        local word = string.format("%s-%d", string.rep(string.char(97 + random(26)), random(50)),
                                   random(200))
        if not counts[word] then
            order[#order + 1] = word
        end
        counts[word] = (counts[word] or 0) + 1
    end
    table.sort(order)
    return table.concat(order, " "):gsub("(%a+)-(%d+)", "%2-%1"), counts
end

local sum = 0
for _ = 1, tonumber(arg[1]) do
    local trees = {}
    for number = 1, 8 do
        trees[number] = make_tree(9 + number % 3)
    end
    for _, tree in ipairs(trees) do
        sum = (sum * 31 + weigh(tree)) % 4294967291
    end
    local text = count_words(20000)
    for position = 1, #text, 97 do
        sum = (sum * 31 + text:byte(position)) % 4294967291
    end
end
print("checksum " .. sum)
