//! Pages of the web, as text: fetched within limits, from public addresses only, and turned into Markdown.
//!
//! A name is resolved once for each request, every address it has is judged, and the connection goes to exactly these. Redirects
//! are followed on the same host, each judged anew; any other target is returned, not contacted. Nothing here asks a model or a
//! person, keeps a cookie or sends a credential, and no proxy is used: behind one, nobody could judge an address.

mod address;
mod body;
mod fetch;
mod html;
mod page_cache;
mod page_url;

pub use address::is_public;
pub use fetch::{FetchError, FetchLimits, FetchedPage, PageFetch, WebPage};
pub use html::markdown_of;
pub use page_cache::PageCache;
pub use page_url::PageUrl;
