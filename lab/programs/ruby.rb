# ruby.rb ROUNDS: a tree of small objects is built, rewritten, turned into text and parsed again; a
# checksum of the text is printed. The numbers come from a fixed pseudo-random sequence.

Node = Struct.new(:name, :value, :children)

$state = 20

def random(below)
  $state = ($state * 69069 + 12345) % 4294967296
  $state / 65536 % below
end

def grow(depth)
  children = depth.zero? ? [] : Array.new(2 + random(4)) { grow(depth - 1) }
  Node.new("node-#{random(1000)}-#{"x" * random(60)}", random(100_000), children)
end

def write(node, text)
  text << "(" << node.name << " " << node.value.to_s
  node.children.each { |child| write(child, text) }
  text << ")"
end

def parse(text)
  stack = [Node.new("root", 0, [])]
  text.scan(/\(([^ ]+) (\d+)|\)/) do |name, value|
    if name
      node = Node.new(name.capitalize, value.to_i + 1, [])
      stack.last.children << node
      stack.push(node)
    else
      stack.pop
    end
  end
  stack.first.children.first
end

def count_names(node, counts = Hash.new { |hash, name| hash[name] = [] })
  counts[node.name[0, 8]] << node.value
  node.children.each { |child| count_names(child, counts) }
  counts
end

sum = 0
ARGV[0].to_i.times do
  text = write(parse(write(grow(6), +"")), +"")
  counts = count_names(parse(text)).sort.map { |name, values| "#{name}=#{values.sort.join("+")}" }
  sum = (sum * 31 + text.sum(32) + counts.join(";").sum(32)) % 4294967291
end
puts "checksum #{sum}"
