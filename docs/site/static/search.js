// Opened from a folder, a browser lets no page read another: results are shown without excerpts then.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
