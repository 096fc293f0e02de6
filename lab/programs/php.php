<?php
// php.php ROUNDS: builds, sorts, encodes, matches and drops arrays, objects and strings, and prints
// a checksum of the results. With USE_ZEND_ALLOC=0 every block comes from malloc.

final class Node
{
    /** @var Node[] */
    public array $children = [];

    public function __construct(public int $number, int $depth)
    {
        for ($i = 0; $depth > 0 && $i < 4; $i++) {
            $this->children[] = new Node($number * 4 + $i, $depth - 1);
        }
    }

    public function sum(): int
    {
        return array_reduce($this->children, fn($sum, $child) => $sum + $child->sum(),
            $this->number);
    }
}

$state = 20;

function random(int $below): int
{
    global $state;
    $state = ($state * 69069 + 12345) % 4294967296;
    return intdiv($state, 65536) % $below;
}

$total = hash_init('sha256');
for ($round = 0; $round < (int) $argv[1]; $round++) {
    $records = [];
    for ($i = 0; $i < 3000; $i++) {
        $records["key-" . random(2000)][] = ['id' => $i, 'text' => str_repeat('äb', random(40))];
    }
    ksort($records);
    $json = json_encode($records);
    $back = json_decode($json, true);
    $changed = preg_replace_callback('/key-(\d+)/', fn($found) => strrev($found[1]), $json);
    hash_update($total, $changed . serialize($back) . (new Node($round, 6))->sum());
    // Garbage that refers to itself.
    $first = new stdClass();
    $first->other = new stdClass();
    $first->other->other = $first;
    unset($first);
    gc_collect_cycles();
}
echo 'checksum ', hash_final($total), "\n";
