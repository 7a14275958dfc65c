//! Prints the facts of this machine, then the time that one row of all sources takes:
//! `cargo run --release -p linerate-session --example watch -- 127.0.0.1`
//!
//! If the second argument is a folder with another machine's /proc and /sys, the facts of that machine are printed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use linerate_host::{Live, Sources, facts};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let toward: IpAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1").parse()?;
    if let Some(root) = std::env::args().nth(2) {
        println!("{:#?}", facts(&Live::under(root.as_ref())?, toward));
        return Ok(());
    }
    let machine = Arc::new(Live::new());
    println!("{:#?}", facts(&*machine, toward));

    let mut sources = Sources::new(machine, toward);
    let own = i32::try_from(std::process::id())?;
    for thread in 0..8 {
        sources.watch_thread(&format!("s0/tx{thread}"), own);
    }
    let mut costs: Vec<u64> = (0..1000)
        .map(|row| {
            let began = Instant::now();
            sources.observe(row);
            u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
        })
        .collect();
    costs.sort_unstable();
    let (tables, gaps) = sources.take();
    for table in &tables {
        let columns: Vec<_> = table.columns.iter().map(|c| c.name.as_ref()).collect();
        println!(
            "{} `{}` {} rows: {}",
            table.source,
            table.subject,
            table.at.len(),
            columns.join(" ")
        );
    }
    println!("{gaps:#?}");
    println!("one row: {} us median, {} us p99", costs[500] / 1000, costs[990] / 1000);
    Ok(())
}
