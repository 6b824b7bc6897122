//! Plots of several contenders in one frame.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

const COLOURS: [RGBColor; 11] = [
    RGBColor(200, 30, 30),
    RGBColor(30, 90, 180),
    RGBColor(20, 140, 90),
    RGBColor(150, 200, 90),
    RGBColor(140, 80, 170),
    RGBColor(220, 130, 30),
    RGBColor(90, 90, 90),
    RGBColor(0, 160, 190),
    RGBColor(180, 120, 150),
    RGBColor(120, 90, 60),
    RGBColor(0, 0, 0),
];

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Whose.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// What stands beside the lines.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Above.
    pub title: &'a str,
    /// Below.
    pub x: &'a str,
    /// At the left.
    pub y: &'a str,
    /// What to write at a value of x.
    pub label: fn(f64) -> String,
}

fn range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    (low, high.max(low * 1.01))
}

/// Draws lines into a file, both axes logarithmic.
///
/// # Errors
///
/// If the file cannot be written.
pub fn draw(path: &Path, frame: &Frame<'_>, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let points = lines.iter().flat_map(|line| &line.points);
    let (left, right) = range(points.clone().map(|point| point.0));
    let (low, high) = range(points.map(|point| point.1));
    let root = SVGBackend::new(path, (900, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(frame.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(84)
        .build_cartesian_2d((left..right).log_scale(), (low * 0.8..high * 1.2).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(frame.x)
        .y_desc(frame.y)
        .x_label_formatter(&|x| (frame.label)(*x))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .light_line_style(WHITE)
        .draw()?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let style = colour.stroke_width(if line.points.is_empty() { 1 } else { 2 });
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style))?
            .label(line.name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}
