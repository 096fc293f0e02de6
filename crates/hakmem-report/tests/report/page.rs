//! A page as its elements, read as a browser reads it.

use std::collections::BTreeMap;

use html5gum::{DefaultEmitter, Token, Tokenizer};

/// Elements that have no end.
const VOID: [&str; 7] = ["br", "col", "hr", "img", "input", "link", "meta"];

pub struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    /// What it says, with what lies in it.
    pub text: String,
    /// The element that it lies in.
    parent: Option<usize>,
}

pub struct Page {
    elements: Vec<Element>,
    /// What is wrong with its form.
    pub errors: Vec<String>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }

    /// `tag.class#id[attribute][attribute=value]`, each part once or more, or not at all.
    fn is(&self, selector: &str) -> bool {
        let start = |part: &str| part.find(['.', '#', '[']).unwrap_or(part.len());
        let (tag, mut rest) = selector.split_at(start(selector));
        if !tag.is_empty() && tag != self.name {
            return false;
        }
        while let Some(kind) = rest.chars().next() {
            let (part, others) = rest[1..].split_at(start(&rest[1..]));
            rest = others;
            let holds = match kind {
                '.' => self
                    .attribute("class")
                    .is_some_and(|classes| classes.split_whitespace().any(|class| class == part)),
                '#' => self.attribute("id") == Some(part),
                _ => match part.trim_end_matches(']').split_once('=') {
                    Some((name, value)) => self.attribute(name) == Some(value),
                    None => self.attribute(part.trim_end_matches(']')).is_some(),
                },
            };
            if !holds {
                return false;
            }
        }
        true
    }
}

impl Page {
    pub fn parse(text: &str) -> Page {
        let (mut elements, mut errors) = (Vec::<Element>::new(), Vec::new());
        let mut open: Vec<usize> = Vec::new();
        let text_of = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        for token in Tokenizer::new_with_emitter(text, emitter) {
            match token.unwrap() {
                Token::StartTag(tag) => {
                    let name = text_of(&tag.name);
                    let attributes = tag.attributes.iter();
                    if !tag.self_closing && !VOID.contains(&name.as_str()) {
                        open.push(elements.len());
                    }
                    elements.push(Element {
                        name,
                        attributes: attributes
                            .map(|(name, value)| (text_of(name), text_of(value)))
                            .collect(),
                        text: String::new(),
                        parent: open
                            .iter()
                            .rev()
                            .copied()
                            .find(|&index| index < elements.len()),
                    });
                }
                Token::EndTag(tag) => {
                    let name = text_of(&tag.name);
                    match open.pop() {
                        Some(last) if elements[last].name == name => (),
                        last => errors.push(format!("{name} ends element {last:?}")),
                    }
                }
                Token::String(text) => {
                    for &index in &open {
                        elements[index].text += &text_of(&text);
                    }
                }
                Token::Error(error) => errors.push(error.to_string()),
                Token::Comment(_) | Token::Doctype(_) => (),
            }
        }
        errors.extend(
            open.iter()
                .map(|&index| format!("{} has no end", elements[index].name)),
        );
        Page { elements, errors }
    }

    /// The elements that one of the selectors finds, which are parted by commas: each a path of
    /// elements that lie in one another, parted by spaces.
    pub fn select(&self, selectors: &str) -> Vec<&Element> {
        let finds = |element: &Element| {
            selectors.split(", ").any(|path| {
                let mut steps = path.split(' ').rev();
                let mut ends = element.is(steps.next().unwrap());
                let mut at = element.parent;
                for step in steps {
                    while at.is_some_and(|index| !self.elements[index].is(step)) {
                        at = self.elements[at.unwrap()].parent;
                    }
                    ends &= at.is_some();
                    at = at.and_then(|index| self.elements[index].parent);
                }
                ends
            })
        };
        self.elements
            .iter()
            .filter(|element| finds(element))
            .collect()
    }
}
