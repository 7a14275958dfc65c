use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::*;

fn text(width: usize, color: bool, write: impl FnOnce(&mut Document)) -> String {
    let mut doc = Document::new();
    write(&mut doc);
    doc.text(Style { width, color })
}

fn markdown(write: impl FnOnce(&mut Document)) -> String {
    let mut doc = Document::new();
    write(&mut doc);
    doc.markdown()
}

#[test]
fn words_wrap_under_their_label_and_keep_to_the_width() {
    let words = "one two three four five six seven eight nine ten eleven";
    let page = text(60, false, |doc| doc.entry("Do", &[(Tone::Plain, words)], 2));
    assert_eq!(
        page,
        "Do              one two three four five six seven eight nine\n                  ten eleven\n"
    );
}

#[test]
fn a_label_stands_by_itself_on_pages_of_less_than_48_columns() {
    let at = |width| {
        text(width, false, |doc| {
            doc.entry("Do", &[(Tone::Plain, "this")], 2);
            doc.remark(&[(Tone::Plain, "that")]);
        })
    };
    assert_eq!(at(47), "Do\n  this\n  that\n");
    assert_eq!(at(48), "Do              this\n                that\n");
}

#[test]
fn a_word_longer_than_the_page_stands_and_does_no_harm() {
    let words = "a-name-that-is-longer-than-twenty-columns x";
    let page = text(1, false, |doc| {
        doc.entry("Saved", &[(Tone::Plain, words)], 0);
    });
    assert_eq!(page, "Saved\n  a-name-that-is-longer-than-twenty-columns\n  x\n");
}

#[test]
fn spans_join_without_a_space_unless_they_bring_one() {
    let spans = [(Tone::Strong, "a"), (Tone::Plain, "b "), (Tone::Dim, "c")];
    assert_eq!(text(80, false, |doc| doc.line(&spans, 0)), "ab c\n");
}

#[test]
fn colour_is_used_only_where_asked_for_and_names_cannot_bring_their_own() {
    let page = text(80, false, |doc| {
        doc.line(&[(Tone::Strong, "host\x1b[31m")], 0);
    });
    assert_eq!(page, "host?[31m\n");
    let page = text(80, true, |doc| doc.line(&[(Tone::Strong, "host")], 0));
    assert_eq!(page, "\x1b[1mhost\x1b[0m\n");
}

/// A table with one row that is too wide for its columns, and another row with details below it.
fn table(least: usize) -> Table {
    let mut narrow = Document::new();
    narrow.heading("head");
    let heads = [(Tone::Strong, "head"), (Tone::Strong, "value")];
    let mut table = Table::new(&[6, 8]).head(&heads).least(least);
    table = table.narrow(narrow);
    for (label, value) in [("a", "12345678"), ("b", "123456789")] {
        let cells = [(Tone::Plain, label), (Tone::Plain, value)];
        let text = format!("is {value}");
        table.row_or(&cells, Entry::new(label, &[(Tone::Plain, &text)], 2));
        if label == "a" {
            let item = Item::new(&[(Tone::Plain, "below")]).depth(1);
            table.below(item.indent(2, 4));
        }
    }
    table
}

#[test]
fn a_row_that_does_not_fit_its_columns_is_an_entry() {
    let page = text(60, false, |doc| doc.table(table(60)));
    assert_eq!(page, "head  value\na     12345678\n  below\nb               is 123456789\n");
}

#[test]
fn a_page_that_is_too_narrow_for_a_table_shows_what_stands_in_for_it() {
    let page = text(59, false, |doc| doc.table(table(60)));
    let entry = "a               is 12345678\n  below\nb               is 123456789\n";
    assert_eq!(page, format!("head\n{entry}"));
}

#[test]
fn the_last_column_may_take_what_is_left_of_the_page() {
    let of = |value: &str| {
        text(20, false, |doc| {
            let mut table = Table::new(&[6, 0]);
            let cells = [(Tone::Plain, "a"), (Tone::Plain, value)];
            table.row_or(&cells, Entry::new("a", &[(Tone::Plain, "instead")], 2));
            doc.table(table);
        })
    };
    assert_eq!(of("12345678901234"), "a     12345678901234\n");
    assert_eq!(of("123456789012345"), "a\n  instead\n");
}

#[test]
fn a_label_has_its_value_beside_it_or_several_below_it() {
    let page = markdown(|doc| {
        doc.entry("one", &[(Tone::Plain, "a")], 2);
        doc.detail(&[(Tone::Dim, "why: "), (Tone::Plain, "b")], 2);
        doc.gap();
        doc.entry("two", &[(Tone::Plain, "a")], 2);
        doc.evidence("b");
        doc.gap();
        doc.entry("", &[(Tone::Good, "c")], 2);
        doc.evidence("d");
        doc.remark(&[(Tone::Plain, "e")]);
    });
    assert_eq!(
        page,
        "- **one:** a\n  - why: b\n- **two:**\n  - a\n    - b\n  - **c**\n    - d\n- e\n"
    );
}

#[test]
fn commands_stand_alone_in_one_block_and_are_not_escaped() {
    let page = markdown(|doc| {
        doc.entry("Do", &[(Tone::Plain, "this:")], 2);
        doc.detail_command((Tone::Plain, "a *b* \"c\" | d\x1b"), 0);
        doc.detail_command((Tone::Plain, "e"), 0);
        doc.detail(&[(Tone::Plain, "and so on")], 0);
        doc.command("Run", (Tone::Dim, "x ```` y"), 2);
    });
    assert_eq!(
        page,
        "- **Do:** this:\n  - ```sh\n    a *b* \"c\" | d?\n    e\n    ```\n  - and so on\n- **Run:**\n  \
         - `````sh\n    x ```` y\n    `````\n"
    );
    let long = "linerate show a-name --save /srv/records/of/this/host/and/no/other";
    let page = markdown(|doc| doc.command("Run", (Tone::Dim, long), 2));
    assert!(page.contains(&format!("\n    {long}\n")), "{page}");
}

#[test]
fn a_table_is_padded_and_what_belongs_to_its_rows_follows() {
    let page = markdown(|doc| {
        doc.line(&[(Tone::Dim, "before")], 0);
        doc.table(table(60));
        doc.heading("after #");
    });
    assert_eq!(
        page,
        "before\n\n| head | value     |\n| ---- | --------- |\n| a    | 12345678  |\n\
         | b    | 123456789 |\n\n- **a:**\n  - below\n\n## after \\#\n"
    );
}

#[test]
fn a_table_without_a_head_is_a_list() {
    let page = markdown(|doc| {
        let mut table = Table::new(&[6, 0]);
        let cells = [(Tone::Strong, "near"), (Tone::Plain, "x")];
        table.row_or(&cells, Entry::new("near", &[(Tone::Plain, "y")], 2));
        table.below(Item::new(&[(Tone::Plain, "z")]).depth(1));
        doc.table(table);
    });
    assert_eq!(page, "- **near:** y\n  - z\n");
}

/// Text as a hostile host or file may contain it: pieces of markup and addresses, and any other character.
fn hostile() -> impl Strategy<Value = String> {
    let markup = prop::sample::select(vec![
        "*", "_", "`", "|", "\\", "<", ">", "[", "]", "(", ")", "#", "-", "+", "1.", "~", "&lt;",
        "!", "\n", "\r", "\t", " ", "  ", "$", "@", ":", "http://x", "www.x", "<b>", "[a](b)",
        "```", "---", "a", "b", "é", "±", "\u{2028}", "\u{202e}", "\u{a0}",
    ]);
    let piece =
        prop_oneof![4 => markup.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn tone() -> impl Strategy<Value = Tone> {
    prop::sample::select(vec![Tone::Plain, Tone::Strong, Tone::Dim, Tone::Good, Tone::Warning])
}

type Spans2 = [(Tone, String); 2];

fn spans() -> impl Strategy<Value = Spans2> {
    [(tone(), hostile()), (tone(), hostile())]
}

/// A document with every kind of block, all with the same spans.
fn every_block(spans: &Spans2) -> Document {
    let body: Vec<Span<'_>> = spans.iter().map(|(tone, s)| (*tone, s.as_str())).collect();
    let [first, second] = [&spans[0].1, &spans[1].1];
    let mut doc = Document::new();
    doc.title(first);
    doc.line(&body, 2);
    doc.entry(first, &body, 2);
    doc.evidence(second);
    doc.detail_command((Tone::Plain, second), 0);
    doc.entry("", &body, 2);
    let item = Item::new(&body).head(spans[0].0, &[(first, 4.into())]);
    doc.item(item.indent(2, 4));
    doc.gap();
    doc.heading(second);
    let mut table = Table::new(&[8, 0]).head(&body).least(40);
    table.row_or(&body, Entry::new(first, &body, 2));
    table.below(Item::new(&body).depth(1).indent(2, 4));
    table.row(&body);
    doc.table(table);
    doc
}

/// Reads Markdown: returns the text of each block, and any markup that should not be there.
fn read(markdown: &str) -> (Vec<String>, Vec<String>) {
    let (mut texts, mut wrong) = (vec![String::new()], Vec::new());
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
    for event in
        Parser::new_ext(markdown, options | Options::ENABLE_TASKLISTS | Options::ENABLE_MATH)
    {
        let text = texts.last_mut().expect("never empty");
        match event {
            Event::Text(t) | Event::Code(t) => text.push_str(&t),
            Event::Start(
                Tag::Paragraph
                | Tag::Heading { .. }
                | Tag::Item
                | Tag::TableCell
                | Tag::CodeBlock(_),
            ) => texts.push(String::new()),
            Event::Start(
                Tag::List(None) | Tag::Table(_) | Tag::TableHead | Tag::TableRow | Tag::Strong,
            ) => {}
            Event::End(tag) if tag != TagEnd::Emphasis => {}
            other => wrong.push(format!("{other:?}")),
        }
    }
    texts.retain(|text| !text.is_empty());
    (texts, wrong)
}

/// The text that Markdown shows: unsafe characters become `?`, and white space becomes one space.
fn shown(text: &str) -> String {
    let safe: String = text.chars().map(clean).collect();
    linerate_test::unwrapped(&safe)
}

proptest! {
    #[test]
    fn no_value_is_markup_and_all_text_survives(spans in spans()) {
        let markdown = every_block(&spans).markdown();
        let (texts, wrong) = read(&markdown);
        prop_assert!(wrong.is_empty(), "{:?}\n{}", wrong, markdown);
        let body = shown(&format!("{}{}", spans[0].1, spans[1].1));
        let cells = [shown(&spans[0].1), shown(&spans[1].1)];
        let has = |part: &str| texts.iter().any(|text| shown(text) == part);
        prop_assert!(body.is_empty() || has(&body), "{:?}\n{}", texts, markdown);
        for cell in cells {
            prop_assert!(cell.is_empty() || has(&cell), "{:?}\n{}", texts, markdown);
        }
    }

    #[test]
    fn no_value_adds_or_takes_away_a_block_or_a_cell(spans in spans()) {
        let shape = |spans: &Spans2| {
            let text = every_block(spans).markdown();
            let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
            let starts = Parser::new_ext(&text, options).filter_map(|event| match event {
                Event::Start(Tag::CodeBlock(_)) => Some("code".to_owned()),
                // An empty item has no paragraph.
                Event::Start(Tag::Strong | Tag::Paragraph) => None,
                Event::Start(tag) => Some(format!("{tag:?}")),
                _ => None,
            });
            starts.collect::<Vec<_>>()
        };
        let filled = spans.each_ref().map(|(tone, text)| (*tone, format!("x{text}x")));
        let plain = [(Tone::Plain, "x".to_owned()), (Tone::Plain, "x".to_owned())];
        prop_assert_eq!(shape(&filled), shape(&plain));
    }

    #[test]
    fn markdown_has_no_trailing_space_no_colour_and_no_control_character(spans in spans()) {
        let markdown = every_block(&spans).markdown();
        for line in markdown.split('\n') {
            prop_assert_eq!(line.trim_end(), line);
            prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
        }
    }

    #[test]
    fn no_line_of_text_is_wider_than_the_page(
        words in prop::collection::vec("[a-z]{1,8}", 1..40),
        width in 0_usize..130,
    ) {
        let body = words.join(" ");
        let mut doc = Document::new();
        doc.line(&[(Tone::Plain, &body)], 2);
        doc.entry("label", &[(Tone::Strong, &body)], 4);
        doc.evidence(&body);
        let hang = Columns { wide: 10, narrow: 4 };
        doc.item(Item::new(&[(Tone::Plain, &body)]).head(Tone::Dim, &[("head", 6.into())]).indent(2, hang));
        let text = doc.text(Style { width, color: false });
        for line in text.lines() {
            prop_assert!(width_of(line) <= width.max(20), "{}: {:?}", width, line);
        }
        let all = text.split_whitespace().filter(|word| !["label", "-", "head"].contains(word));
        prop_assert_eq!(all.count(), 4 * words.len());
    }

    #[test]
    fn text_has_no_control_character_and_colour_changes_nothing_else(spans in spans(), width in 20_usize..100) {
        let doc = every_block(&spans);
        let plain = doc.text(Style { width, color: false });
        prop_assert!(!plain.chars().any(|c| c.is_control() && c != '\n'));
        let mut bare = doc.text(Style { width, color: true });
        for code in ["0", "1", "2", "1;32", "1;33"] {
            bare = bare.replace(&format!("\x1b[{code}m"), "");
        }
        // A cell of spaces at the end of a row is trimmed if no colour code follows it.
        let lines = |text: &str| text.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(lines(&bare), lines(&plain));
    }
}
