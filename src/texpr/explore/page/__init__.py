"""Parts of a page, as HTML, and whole pages. Text is escaped in one place, `html`."""
