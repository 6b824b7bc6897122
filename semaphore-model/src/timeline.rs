//! An execution as a page: threads as lanes, permits as moving colours.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::trace::{Moment, What, Where, line};

const COLOURS: [&str; 8] =
    ["#d1495b", "#00798c", "#edae49", "#30638e", "#7a5195", "#2e8b57", "#ff7c43", "#5c5c5c"];
const ROW: usize = 22;
const LANE: usize = 250;
const TOP: usize = 60;
const LEFT: usize = 50;

/// Text in HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Which lane a place is drawn in: the permits that are free, the line, and then the threads.
fn lane(place: Where) -> usize {
    match place {
        Where::Free => 0,
        Where::Part(_) | Where::Granted(_) => 1,
        Where::Hand(thread) | Where::Held(thread) => 2 + thread,
    }
}

/// Each permit is one of a kind: moves as few as explain the counts.
fn settle(permits: &mut Vec<Where>, places: &[(Where, u64)]) {
    let mut wanted: BTreeMap<Where, u64> = places.iter().copied().collect();
    let mut moving = Vec::new();
    for (permit, place) in permits.iter().enumerate() {
        match wanted.get_mut(place) {
            Some(n) if *n > 0 => *n -= 1,
            _ => moving.push(permit),
        }
    }
    let mut open = wanted.into_iter().flat_map(|(place, n)| (0..n).map(move |_| place));
    let mut gone = Vec::new();
    for permit in moving {
        match open.next() {
            Some(place) => permits[permit] = place,
            None => gone.push(permit),
        }
    }
    permits.extend(open);
    for permit in gone.into_iter().rev() {
        permits.remove(permit);
    }
}

/// The drawing: time goes down. A square is a permit; hollow, it is in the hand of a running call, or only
/// reserved for a request.
pub fn svg(log: &[Moment], places: &[Vec<(Where, u64)>]) -> String {
    let shown: Vec<(usize, String)> = (log.iter().enumerate())
        .filter_map(|(at, moment)| Some((at, line(&moment.what, false)?)))
        .collect();
    let threads = log.iter().map(|moment| moment.thread).max().unwrap_or(0);
    let width = LEFT + (3 + threads) * LANE;
    let height = TOP + (shown.len() + 1) * ROW;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"monospace\" font-size=\"10\">\n"
    );
    for column in 0..3 + threads {
        let name = match column {
            0 => "available".to_owned(),
            1 => "reserved, for a request".to_owned(),
            2 => "set up".to_owned(),
            _ => format!("thread {}", column - 2),
        };
        let x = LEFT + column * LANE;
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"30\" font-size=\"14\" font-weight=\"bold\">{name}</text>\
             <line x1=\"{}\" y1=\"40\" x2=\"{}\" y2=\"{height}\" stroke=\"#ddd\"/>",
            x - 8,
            x - 8
        );
    }
    let mut permits: Vec<Where> = Vec::new();
    let mut next = 0;
    for (row, (at, text)) in shown.iter().enumerate() {
        while next <= *at {
            if let Some(places) = places.get(next) {
                settle(&mut permits, places);
            }
            next += 1;
        }
        let y = TOP + row * ROW;
        let x = LEFT + (2 + log[*at].thread) * LANE;
        let weight = if matches!(log[*at].what, What::Writes(_)) { "normal" } else { "bold" };
        let _ = writeln!(
            svg,
            "<text x=\"4\" y=\"{}\" fill=\"#999\">{row}</text><text x=\"{x}\" y=\"{}\" font-weight=\"{weight}\">{}</text>",
            y + 10,
            y + 10,
            escape(text)
        );
        let mut used: BTreeMap<usize, usize> = BTreeMap::new();
        for (permit, place) in permits.iter().enumerate() {
            let column = lane(*place);
            let nth = used.entry(column).or_default();
            let x = if column < 2 {
                LEFT + column * LANE + *nth * 16
            } else {
                LEFT + (column + 1) * LANE - 26 - *nth * 16
            };
            *nth += 1;
            let colour = COLOURS[permit % COLOURS.len()];
            let (fill, note) = match place {
                Where::Free | Where::Held(_) => (colour, String::new()),
                Where::Hand(_) => ("none", String::new()),
                Where::Part(request) => ("none", format!("part of {request}")),
                Where::Granted(request) => (colour, format!("granted to {request}")),
            };
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"2\"><title>permit {permit}: {place:?}</title></rect>"
            );
            if !note.is_empty() {
                let _ = writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{}\" fill=\"{colour}\">{note}</text>",
                    LEFT + LANE + 60 + (*nth - 1) * 90,
                    y + 10
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The drawing as a page of its own.
pub fn page(title: &str, verdict: &str, log: &[Moment], places: &[Vec<(Where, u64)>]) -> String {
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n\
         <style>body {{ font-family: sans-serif; margin: 1em }} pre {{ background: #f6f6f6; padding: 1em }}</style>\n\
         <h1>{0}</h1>\n<p>Time goes down, a line for each call that begins or returns and for each change of the \
         state word S, of a waiter's word (#slot) or of N. A filled square is a permit that is free, in a lease \
         or granted; a hollow one is on its way, in the hand of a running call or with a request that lacks \
         more.</p>\n<pre>{1}</pre>\n{2}",
        escape(title),
        escape(verdict),
        svg(log, places)
    )
}
