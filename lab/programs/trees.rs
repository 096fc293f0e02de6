//! trees ROUNDS: threads build maps of strings, boxes and vectors, and pass them on to the main
//! thread, which drops them; prints a checksum. It is what the row compiles, and then runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::thread;

enum Tree {
    Leaf(String),
    Node(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn new(depth: u32, number: u64) -> Tree {
        if depth == 0 {
            return Tree::Leaf(format!("leaf {number}"));
        }
        let half = |side| Box::new(Tree::new(depth - 1, number * 2 + side));
        Tree::Node(half(0), half(1))
    }

    fn sum(&self) -> u64 {
        match self {
            Tree::Leaf(text) => text.bytes().map(u64::from).sum(),
            Tree::Node(left, right) => left.sum().wrapping_mul(31).wrapping_add(right.sum()),
        }
    }
}

fn index(number: u64) -> BTreeMap<String, Vec<u64>> {
    let mut positions: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut state = number;
    for position in 0..3000 {
        state = (state * 69069 + 12345) % 4294967296;
        positions.entry(state / 65536 % 500).or_default().push(position);
    }
    positions.into_iter().map(|(word, list)| (format!("word {word}"), list)).collect()
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let (sender, receiver) = mpsc::channel();
    let crew: Vec<_> = (0..4)
        .map(|thread| {
            let sender = sender.clone();
            thread::spawn(move || {
                for round in 0..rounds {
                    let number = thread * rounds + round;
                    sender.send((number, index(number), Tree::new(10, number))).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let mut total = 0u64;
    // What another thread built is dropped here.
    for (number, positions, tree) in receiver {
        let text: usize = positions.iter().map(|(word, list)| word.len() * list.len()).sum();
        total = total.wrapping_add(tree.sum() ^ (text as u64 + number));
    }
    crew.into_iter().for_each(|thread| thread.join().unwrap());
    println!("checksum {total}");
}
