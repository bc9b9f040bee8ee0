//! SVG of our own to PNG. A font comes along, since a build machine often has none; it is touched only here.

use crate::error::{Error, Result};
use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Pixels for each unit of the SVG: pictures are looked at on dense screens.
const SCALE: f32 = 2.0;
/// Larger pictures are refused: 64 million pixels are 256 MB.
const PIXELS_MAX: f32 = 64e6;

/// A picture of a chart, at twice its size.
///
/// # Errors
/// A text that is no SVG, or an SVG of more than 64 million pixels.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let refuse = |what: &str| Error::bug(format!("a chart could not be drawn as PNG: {what}"));
    let mut fonts = usvg::fontdb::Database::new();
    // Hack is the font of that crate whose licence every distribution takes (MIT and Bitstream Vera).
    fonts.load_font_data(epaint_default_fonts::HACK_REGULAR.to_vec());
    let family = fonts.faces().next().and_then(|face| face.families.first()).map(|(name, _)| name.clone());
    fonts.set_sans_serif_family(family.unwrap_or_default());
    let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|cause| refuse(&cause.to_string()))?;
    let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
    if width * height > PIXELS_MAX {
        return Err(refuse(&format!("{width} times {height} pixels are too many")));
    }
    let mut pixels =
        tiny_skia::Pixmap::new(width.ceil() as u32, height.ceil() as u32).ok_or_else(|| refuse("it has no size"))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|cause| refuse(&cause.to_string()))
}
